// expect: 'OutputIsPositive
// G4: an adaptive axis has at least one output.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index output = 9;
#else
constexpr Index output = 0;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return spec::forward<Adaptive{.output = {output}}>(Lp{.p = 3}, x);
}
