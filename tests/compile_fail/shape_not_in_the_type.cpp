// expect: 'StaticReadable
// A geometry in the template arguments needs an input whose shape is in its type.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
using Input = Tensor<float, Shape<3, 8, 8>>;
#else
using Input = Tensor<float>;
#endif

auto result(const Input& x) { return max_pool<Sliding{.kernel = {2, 2}}>(x); }
