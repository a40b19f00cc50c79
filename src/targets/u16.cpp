// The u16 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::uint16_t)
