// expect: 'KernelIsPositive
// G1: a kernel has at least one cell.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index kernel = 2;
#else
constexpr Index kernel = 0;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return max_pool<Sliding{.kernel = {kernel, 2}}>(x); }
