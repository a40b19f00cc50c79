// expect: 'Scalar
// A scalar has + - * / > ==.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
struct T {};
#endif

auto result(const Tensor<T>& x) { return max_pool(x, {.kernel = {2}}); }
