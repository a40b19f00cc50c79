// expect: 'GradientHasOutputShape
// A gradient has the shape of the output.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using OutputGradient = Tensor<float, Shape<3, 3, 5>>;
#else
using OutputGradient = Tensor<float, Shape<3, 5, 3>>;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const OutputGradient& gy) {
  return adaptive_max_pool_vjp<Adaptive{.output = {3, 5}}>(x, gy);
}
