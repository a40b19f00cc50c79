// expect: 'AxesAreLegal
// G7: one stride, or one per pooled axis.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr PerAxis stride = {2, 2};
#else
constexpr PerAxis stride = {2, 2, 2};
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return max_pool<Sliding{.kernel = {2, 2}, .stride = stride}>(x); }
