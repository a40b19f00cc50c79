// expect: HasAxis
// There is something to flatten.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Input = Shape<2, 3>;
#else
using Input = Shape<6>;
#endif

auto result(Graph<float>& g, const Var<Input>& x) { return flatten(g, x); }
