// expect: 'Field
// An integer average rounds: it has a value and no derivative.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = double;
#else
using T = std::uint8_t;
#endif

auto result(const Tensor<T, Shape<4>>& x, const Tensor<T, Shape<2>>& gy) {
  return avg_pool_vjp<Sliding{.kernel = {2}}>(x, gy);
}
