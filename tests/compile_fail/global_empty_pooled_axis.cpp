// expect: 'PooledAxesAreNotEmpty
// G7: there is no average of nothing.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using S = Shape<0, 4>;
#else
using S = Shape<4, 0>;
#endif

auto result(const Tensor<float, S>& x) { return global_avg_pool<Global{.last = 1}>(x); }
