// expect: ConvolutionFits
// A window is no larger than the padded input.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Convolution options{.padding = 1};
#else
constexpr Convolution options{};
#endif

auto result(Graph<float>& g, const Var<Shape<1, 1, 3, 3>>& x, const Var<Shape<1, 1, 5, 5>>& weights) {
  return conv<options>(g, x, weights);
}
