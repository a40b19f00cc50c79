// expect: DifferentiableOn
// A rational smooth max does not compile, in a graph either.
#include "cenote/graph.hpp"
#include "cenote/rational.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = double;
#else
using T = Rational;
#endif

auto result(Graph<T>& g, const Handle& x) { return smooth_max_pool(g, x, {.kernel = {2}}, {.beta = 1}); }
