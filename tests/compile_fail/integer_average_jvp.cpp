// expect: 'Field
// An integer average rounds: it has a value and no derivative.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = int;
#endif

auto result(const Tensor<T>& x) { return avg_pool_jvp(x, x, {.kernel = {2, 2}}); }
