// expect: 'AxesAreLegal
// G7: a kernel of four entries needs four axes.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr PerAxis kernel = {1, 2, 2};
#else
constexpr PerAxis kernel = {1, 1, 2, 2};
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return sum_pool<Sliding{.kernel = kernel}>(x); }
