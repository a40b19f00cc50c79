// The bf16 objects of the compiled library.
#define CENOTE_SCALAR bf16
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "targets/bf16.cpp"
#include "kernels/highway.hpp"
//
#include "kernels/table-inl.hpp"

#if HWY_ONCE
#include "targets/instantiate.hpp"
#endif
