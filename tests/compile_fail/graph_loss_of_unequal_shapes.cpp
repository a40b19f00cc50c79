// expect: ShapesAgree
// Logits and targets have one shape.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Targets = Shape<8, 10>;
#else
using Targets = Shape<8>;
#endif

auto result(Graph<float>& g, const Var<Shape<8, 10>>& logits, const Var<Targets>& targets) {
  return softmax_cross_entropy(g, logits, targets);
}
