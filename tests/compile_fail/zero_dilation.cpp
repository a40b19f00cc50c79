// expect: 'DilationIsPositive
// G1: the taps of a window are at least one cell apart.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index dilation = 2;
#else
constexpr Index dilation = 0;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return max_pool<Sliding{.kernel = {2, 2}, .dilation = dilation}>(x);
}
