// expect: 'AxesAreLegal
// G7: one number does not say how many axes it is meant for.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr PerAxis kernel = {2, 2};
#else
constexpr PerAxis kernel = 2;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return max_pool<Sliding{.kernel = kernel}>(x); }
