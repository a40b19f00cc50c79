// expect: Transcendental
// Rationals have no exponential.
#include "cenote/graph.hpp"
#include "cenote/rational.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = double;
#else
using T = Rational;
#endif

auto result(Graph<T>& g, const Handle& x) { return cenote::exp(g, x); }
