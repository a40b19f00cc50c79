// expect: 'PaddingCanBeRemoved
// G7: no more cells can be removed than there are.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index padding = 4;
#else
constexpr Index padding = 5;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return unpad<Pads{padding, 2}>(x); }
