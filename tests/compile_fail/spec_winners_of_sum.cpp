// expect: 'Selecting
// M6: no single tap decides a sum.
#include "cenote/linearize.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Max op;
#else
constexpr Sum op;
#endif

auto result(const Geometry& g, View<const float> x) { return spec::winners<float>(op, g, x); }
