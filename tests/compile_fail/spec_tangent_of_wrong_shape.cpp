// expect: 'TangentHasInputShape
// A tangent has the shape of the input.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Tangent = Tensor<float, Shape<3, 8, 8>>;
#else
using Tangent = Tensor<float, Shape<8, 8>>;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x, const Tangent& dx) {
  return spec::jvp<Sliding{.kernel = {2, 2}}>(SmoothMax{.beta = 2}, x, dx);
}
