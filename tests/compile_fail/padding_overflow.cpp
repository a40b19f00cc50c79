// expect: 'SizesFitIn64Bits
// G7: the padded size is a 64-bit number.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index high = (Index{1} << 62);
#else
constexpr Index high = std::numeric_limits<Index>::max();
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return max_pool<Sliding{.kernel = {2}, .stride = Index{1} << 62, .padding = {{1, high}}}>(x);
}
