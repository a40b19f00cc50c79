// expect: 'TangentHasInputShape
// A tangent has the shape of the input.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Tangent = Tensor<float, Shape<3, 8, 8>>;
#else
using Tangent = Tensor<float, Shape<3, 4, 4>>;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const Tangent& dx) {
  return max_pool_jvp<Sliding{.kernel = {2, 2}}>(x, dx);
}
