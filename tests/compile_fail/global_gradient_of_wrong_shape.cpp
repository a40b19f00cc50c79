// expect: 'GradientHasOutputShape
// G5: where the pooled axes are dropped, the gradient does not have them either.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using OutputGradient = Tensor<float, Shape<3>>;
#else
using OutputGradient = Tensor<float, Shape<3, 1, 1>>;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const OutputGradient& gy) {
  return global_max_pool_vjp<Global{.last = 2, .keep = false}>(x, gy);
}
