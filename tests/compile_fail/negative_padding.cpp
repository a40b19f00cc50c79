// expect: 'PaddingIsNotNegative
// G1: padding adds cells; it cannot remove them.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index padding = 1;
#else
constexpr Index padding = -1;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return avg_pool<Sliding{.kernel = {3, 3}, .padding = padding}>(x);
}
