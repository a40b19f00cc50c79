// expect: 'AxesAreLegal
// G5: a global pool says which axes, or how many of the last ones.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr int last = 2;
#else
constexpr int last = 0;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return global_avg_pool<Global{.last = last}>(x); }
