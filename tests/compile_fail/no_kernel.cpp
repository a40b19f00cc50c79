// expect: 'AxesAreLegal
// G7: a sliding window has a kernel.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Sliding windows{.kernel = {2}, .stride = 2};
#else
constexpr Sliding windows{.stride = 2};
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return max_pool<windows>(x); }
