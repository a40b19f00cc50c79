// The u64 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::uint64_t)
