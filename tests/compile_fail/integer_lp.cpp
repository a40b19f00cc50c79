// expect: 'OperatorOn
// expect: Lp
// Integers have no roots.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = std::int64_t;
#endif

auto result(const Tensor<T, Shape<5>>& x) { return adaptive_lp_pool<Adaptive{.output = {2}}>(x, {.p = 2}); }
