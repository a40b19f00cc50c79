// expect: 'DifferentiableOn
// expect: 'op.weights
// Nobody knows the derivative of an arbitrary reducer.
#include "cenote/linearize.hpp"

using namespace cenote;

#ifdef CENOTE_CONTROL
constexpr Max op;
#else
constexpr Reduce op{[](const Window<float>& window) { return static_cast<float>(window.real()); }};
#endif

std::optional<Linearization<std::remove_cv_t<decltype(op)>, float>> result;
