// The f32 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(float)
