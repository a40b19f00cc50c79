// The f32 objects of the compiled library.
#define CENOTE_SCALAR float
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "targets/f32.cpp"
#include "kernels/highway.hpp"
//
#include "kernels/table-inl.hpp"

#if HWY_ONCE
#include "targets/instantiate.hpp"
#endif
