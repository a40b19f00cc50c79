// expect: 'WindowFits
// G3: ceil rounding leaves at least one window; a kernel of 11 over 8 cells needs a stride above 3.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index stride = 4;
#else
constexpr Index stride = 3;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return max_pool<Sliding{.kernel = {11}, .stride = stride, .rounding = Rounding::ceil}>(x);
}
