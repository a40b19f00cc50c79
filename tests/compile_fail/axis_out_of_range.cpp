// expect: 'AxesAreLegal
// G7: an input of three axes has none with the number 3.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index axis = 2;
#else
constexpr Index axis = 3;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return avg_pool<Sliding{.kernel = {2}, .axes = {axis}}>(x); }
