// expect: 'StrideIsPositive
// G1: a window moves by at least one cell.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index stride = 1;
#else
constexpr Index stride = 0;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) {
  return spec::jvp<Sliding{.kernel = {2, 2}, .stride = stride}>(Average{}, x, x);
}
