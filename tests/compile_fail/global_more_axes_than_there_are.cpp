// expect: 'AxesAreLegal
// G5: there are three axes to pool.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr int last = 3;
#else
constexpr int last = 4;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return global_max_pool<Global{.last = last, .keep = false}>(x); }
