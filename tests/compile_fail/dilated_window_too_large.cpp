// expect: 'WindowFits
// G2: what must fit is the dilated kernel.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index dilation = 7;
#else
constexpr Index dilation = 8;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return min_pool<Sliding{.kernel = {2}, .dilation = dilation}>(x);
}
