// expect: 'TangentHasInputShape
// A tangent has the shape of the input, its identity axes included.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Tangent = Tensor<float, Shape<3, 8, 8>>;
#else
using Tangent = Tensor<float, Shape<1, 8, 8>>;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const Tangent& dx) {
  return adaptive_avg_pool_jvp<Adaptive{.output = {3, 3}}>(x, dx);
}
