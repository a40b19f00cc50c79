// expect: 'AxesAreLegal
// G7: as many kernel entries as axes are named.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr PerAxis kernel = {2, 2};
#else
constexpr PerAxis kernel = {2, 2, 2};
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return max_pool<Sliding{.kernel = kernel, .axes = {0, 1}}>(x); }
