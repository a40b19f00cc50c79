// The i16 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::int16_t)
