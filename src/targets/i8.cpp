// The i8 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::int8_t)
