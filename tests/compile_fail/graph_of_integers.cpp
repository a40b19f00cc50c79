// expect: a graph differentiates
// Integers have no derivatives.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = int;
#endif

Graph<T> graph;
