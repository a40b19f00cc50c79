// expect: 'Field
// An integer average rounds: it has a value and no derivative.
#include "cenote/spec.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = std::int32_t;
#endif

void result(const Geometry& g, View<const T> x, View<const T> gy, View<T> gx) { spec::vjp(Average{}, g, x, gy, gx); }
