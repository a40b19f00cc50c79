// expect: ConvolutionFits
// The weights have the channels of the input.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Weights = Shape<4, 3, 3, 3>;
#else
using Weights = Shape<4, 1, 3, 3>;
#endif

auto result(Graph<float>& g, const Var<Shape<2, 3, 8, 8>>& x, const Var<Weights>& weights) {
  return conv<Convolution{.padding = 1}>(g, x, weights);
}
