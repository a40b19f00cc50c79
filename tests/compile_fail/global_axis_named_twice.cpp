// expect: 'AxesAreLegal
// G7: each axis is pooled once.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index axis = 0;
#else
constexpr Index axis = 1;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return global_sum_pool<Global{.axes = {1, axis}}>(x); }
