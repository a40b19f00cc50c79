// expect: 'OperatorOn
// expect: SmoothMax
// Integers have neither exp nor log.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = int;
#endif

auto result(const Tensor<T>& x) { return global_smooth_max_pool(x, {.last = 2}, {.beta = 2}); }
