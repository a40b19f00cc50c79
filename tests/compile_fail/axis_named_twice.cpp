// expect: 'AxesAreLegal
// G7: each axis is pooled once; -1 and 2 are the same axis here.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index axis = 1;
#else
constexpr Index axis = 2;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return max_pool<Sliding{.kernel = {2, 2}, .axes = {axis, -1}}>(x);
}
