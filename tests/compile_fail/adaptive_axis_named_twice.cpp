// expect: 'AxesAreLegal
// G7: each axis is pooled once.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index axis = 1;
#else
constexpr Index axis = 2;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return adaptive_min_pool<Adaptive{.output = 3, .axes = {2, axis}}>(x);
}
