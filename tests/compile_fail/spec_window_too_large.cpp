// expect: 'WindowFits
// G2: with floor rounding the kernel fits into the padded input; the gradient's shape does not matter before.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index kernel = 8;
#else
constexpr Index kernel = 9;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const Tensor<float, Shape<3, 8, 1>>& gy) {
  return spec::vjp<Sliding{.kernel = {1, kernel}}>(Sum{}, x, gy);
}
