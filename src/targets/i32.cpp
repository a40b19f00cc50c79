// The i32 objects of the compiled library.
#define CENOTE_SCALAR std::int32_t
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "targets/i32.cpp"
#include "kernels/highway.hpp"
//
#include "kernels/table-inl.hpp"

#if HWY_ONCE
#include "targets/instantiate.hpp"
#endif
