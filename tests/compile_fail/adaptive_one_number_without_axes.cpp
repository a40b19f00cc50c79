// expect: 'AxesAreLegal
// G7: one number does not say how many axes it is meant for.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr PerAxis output = {3};
#else
constexpr PerAxis output = 3;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return adaptive_max_pool<Adaptive{.output = output}>(x); }
