// The i32 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::int32_t)
