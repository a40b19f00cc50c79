// expect: 'WindowFits
// G2: with floor rounding the kernel fits into the padded input.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index kernel = 10;
#else
constexpr Index kernel = 11;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return max_pool<Sliding{.kernel = {kernel, 2}, .padding = 1}>(x);
}
