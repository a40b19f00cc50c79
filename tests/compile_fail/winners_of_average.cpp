// expect: 'Selecting
// M6: no single tap decides an average.
#include "cenote/linearize.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Op = Max;
#else
using Op = Average;
#endif

auto result(const Linearization<Op, float>& derivative) { return derivative.winners(); }
