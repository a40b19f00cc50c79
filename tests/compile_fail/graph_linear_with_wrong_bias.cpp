// expect: WeightsAndBiasFit
// A bias has a number per output.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Bias = Shape<10>;
#else
using Bias = Shape<64>;
#endif

auto result(Graph<float>& g, const Var<Shape<8, 64>>& x, const Var<Shape<10, 64>>& w, const Var<Bias>& b) {
  return linear(g, x, w, b);
}
