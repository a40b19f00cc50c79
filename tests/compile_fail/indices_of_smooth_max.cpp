// expect: 'Selecting
// M6: no single tap decides a smooth maximum.
#include "cenote/linearize.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Op = Min;
#else
using Op = SmoothMax;
#endif

auto result(const Linearization<Op, double>& derivative) { return derivative.indices(); }
