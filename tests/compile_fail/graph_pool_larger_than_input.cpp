// expect: WindowFits
// A window is no larger than the padded input.
#include "cenote/graph.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Sliding windows{.kernel = {2, 2}};
#else
constexpr Sliding windows{.kernel = {9, 9}};
#endif

auto result(Graph<float>& g, const Var<Shape<3, 8, 8>>& x) { return max_pool<windows>(g, x); }
