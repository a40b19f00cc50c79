// The f64 objects of the compiled library.
#include "instantiate.hpp"

CENOTE_INSTANTIATE(double)
