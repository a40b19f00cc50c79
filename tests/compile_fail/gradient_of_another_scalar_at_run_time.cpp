// expect: 'ScalarsAgree
// A gradient has the scalar of its input, at run time too.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Other = double;
#else
using Other = float;
#endif

auto pulled = max_pool_vjp(Tensor<double>({4}), Tensor<Other>({2}), {.kernel = {2}});
