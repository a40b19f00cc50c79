// expect: ShapesJoin
// Arrays agree on every axis but the one they are joined along.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr int axis = 1;
#else
constexpr int axis = 0;
#endif

auto result(Graph<float>& g, const Var<Shape<2, 3>>& a, const Var<Shape<2, 5>>& b) {
  return concatenate<axis>(g, a, b);
}
