// expect: 'AxesAreLegal
// G7: -3 is the first of three axes, -4 is none.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index axis = -3;
#else
constexpr Index axis = -4;
#endif

auto result(const Tensor<float, Shape<3, 8, 8>>& x) { return spec::forward<Global{.axes = {axis}}>(Max{}, x); }
