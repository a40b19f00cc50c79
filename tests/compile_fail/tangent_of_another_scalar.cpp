// expect: 'ScalarsAgree
// A tangent has the scalar of its input.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Other = double;
#else
using Other = float;
#endif

auto pushed = max_pool_jvp<Sliding{.kernel = {2}}>(Tensor<double, Shape<4>>(), Tensor<Other, Shape<4>>());
