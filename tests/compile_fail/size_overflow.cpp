// expect: 'SizesFitIn64Bits
// G7: a dilated kernel of 2^62 * 3 + 1 cells is no 64-bit number.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index dilation = 1;
#else
constexpr Index dilation = 3;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return max_pool<Sliding{
      .kernel = {(Index{1} << 62) + 1}, .stride = Index{1} << 62, .dilation = dilation, .rounding = Rounding::ceil}>(x);
}
