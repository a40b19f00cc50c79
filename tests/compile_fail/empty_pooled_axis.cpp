// expect: 'PooledAxesAreNotEmpty
// G7: only axes that are not pooled may be empty.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using S = Shape<0, 4>;
#else
using S = Shape<4, 0>;
#endif

auto result(const Tensor<float, S>& x) { return max_pool<Sliding{.kernel = {1}}>(x); }
