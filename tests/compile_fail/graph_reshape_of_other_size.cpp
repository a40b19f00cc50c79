// expect: ElementsAgree
// A reshape keeps the number of elements.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using To = Shape<3, 2>;
#else
using To = Shape<4, 2>;
#endif

auto result(Graph<float>& g, const Var<Shape<2, 3>>& x) { return reshape<To>(g, x); }
