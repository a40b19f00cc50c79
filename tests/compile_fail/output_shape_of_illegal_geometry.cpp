// expect: 'WindowFits
// G2: an illegal geometry has no output shape, either.
#include "cenote/static.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Index kernel = 8;
#else
constexpr Index kernel = 9;
#endif

using Result = OutputShape<Sliding{.kernel = {kernel}, .stride = 1}, Shape<3, 8>>;
static_assert(std::is_same_v<Result, Shape<3, 1>>);
