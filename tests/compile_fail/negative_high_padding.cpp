// expect: 'PaddingIsNotNegative
// G1: each end of an axis has its own padding; neither may be negative.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index high = 0;
#else
constexpr Index high = -1;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return sum_pool<Sliding{.kernel = {3}, .padding = {{1, high}}}>(x);
}
