// The i64 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(std::int64_t)
