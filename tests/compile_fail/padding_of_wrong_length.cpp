// expect: 'AxesAreLegal
// G7: one padding, or one per pooled axis.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Pads padding{1, 1};
#else
constexpr Pads padding{1, 1, 1};
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return avg_pool<Sliding{.kernel = {2, 2}, .padding = padding}>(x);
}
