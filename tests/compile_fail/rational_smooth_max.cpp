// expect: 'OperatorOn
// expect: SmoothMax
// The logarithm of a rational is none.
#include "cenote/pool.hpp"
#include "cenote/rational.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = double;
#else
using T = Rational;
#endif

auto result(const Tensor<T>& x) { return smooth_max_pool(x, {.kernel = {2, 2}}, {.beta = 2}); }
