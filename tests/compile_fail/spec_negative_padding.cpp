// expect: 'PaddingIsNotNegative
// G1: padding adds cells; it cannot remove them.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index low = 1;
#else
constexpr Index low = -2;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return spec::forward<Sliding{.kernel = {2}, .padding = {{low, 0}}}>(SmoothMax{.beta = 2}, x);
}
