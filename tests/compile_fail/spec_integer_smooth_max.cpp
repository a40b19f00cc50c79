// expect: 'OperatorOn
// expect: SmoothMax
// Integers have neither exp nor log.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using T = float;
#else
using T = std::int32_t;
#endif

auto result(const Tensor<T, Shape<4>>& x) { return spec::forward<Sliding{.kernel = {2}}>(SmoothMax{.beta = 1}, x); }
