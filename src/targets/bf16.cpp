// The bf16 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(cenote::bf16)
