// expect: MatricesFit
// The columns of the first matrix are the rows of the second.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Second = Shape<3, 4>;
#else
using Second = Shape<4, 3>;
#endif

auto result(Graph<float>& g, const Var<Shape<2, 3>>& a, const Var<Second>& b) { return matmul(g, a, b); }
