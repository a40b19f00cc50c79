// expect: ShapesAgree
// Sums are of equal shapes.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Second = Shape<2, 3>;
#else
using Second = Shape<3, 2>;
#endif

auto result(Graph<float>& g, const Var<Shape<2, 3>>& a, const Var<Second>& b) { return add(g, a, b); }
