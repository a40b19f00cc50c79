// The u32 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::uint32_t)
