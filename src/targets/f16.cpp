// The f16 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(cenote::f16)
