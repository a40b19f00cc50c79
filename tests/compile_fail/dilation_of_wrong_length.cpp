// expect: 'AxesAreLegal
// G7: one dilation, or one per pooled axis; {2} is a list of one.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr PerAxis dilation = 2;
#else
constexpr PerAxis dilation = {2};
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return max_pool<Sliding{.kernel = {2, 2}, .dilation = dilation}>(x);
}
