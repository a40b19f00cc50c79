// expect: 'OutputIsPositive
// G4: an adaptive axis has at least one output.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index output = 1;
#else
constexpr Index output = 0;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return adaptive_avg_pool<Adaptive{.output = {3, output}}>(x); }
