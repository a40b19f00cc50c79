// expect: 'GradientHasOutputShape
// A gradient has the shape of the output.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using OutputGradient = Tensor<float, Shape<3, 4, 4>>;
#else
using OutputGradient = Tensor<float, Shape<3, 8, 8>>;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const OutputGradient& gy) {
  return max_pool_vjp<Sliding{.kernel = {2, 2}}>(x, gy);
}
