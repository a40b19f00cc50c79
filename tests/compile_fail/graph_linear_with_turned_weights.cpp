// expect: WeightsFit
// Weights are outputs by inputs.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Weights = Shape<10, 64>;
#else
using Weights = Shape<64, 10>;
#endif

auto result(Graph<float>& g, const Var<Shape<8, 64>>& x, const Var<Weights>& weights) { return linear(g, x, weights); }
