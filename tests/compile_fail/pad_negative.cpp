// expect: 'PaddingIsLegal
// Padding is not negative.
#include "cenote/pool.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index cells = 1;
#else
constexpr Index cells = -1;
#endif

auto padded = pad<Pads(cells)>(Tensor<double, Shape<4>>());
