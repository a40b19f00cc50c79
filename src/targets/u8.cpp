// The u8 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::uint8_t)
