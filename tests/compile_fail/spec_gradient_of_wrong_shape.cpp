// expect: 'GradientHasOutputShape
// G3: ceil rounding gives one output more.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using OutputGradient = Tensor<float, Shape<3, 8, 3>>;
#else
using OutputGradient = Tensor<float, Shape<3, 8, 2>>;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const OutputGradient& gy) {
  return spec::vjp<Sliding{.kernel = {3}, .rounding = Rounding::ceil}>(Average{}, x, gy);
}
