// expect: 'Field
// Derivatives are for scalars that divide.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = std::int16_t;
#endif

auto result(const Tensor<T>& x, const Tensor<T>& gy) { return global_max_pool_vjp(x, gy, {.last = 1}); }
