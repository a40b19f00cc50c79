// expect: 'OperatorOn
// expect: SmoothMax
// The logarithm of a fraction is none; shape in the type.
#include "cenote/fraction.hpp"
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = Fraction;
#endif

auto result(const Tensor<T, Shape<4, 4>>& x) { return smooth_max_pool<Sliding{.kernel = {2, 2}}>(x, {.beta = 2}); }
