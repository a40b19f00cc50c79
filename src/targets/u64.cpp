// The u64 objects of the compiled library.
#define CENOTE_SCALAR std::uint64_t
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "targets/u64.cpp"
#include "kernels/highway.hpp"
//
#include "kernels/table-inl.hpp"

#if HWY_ONCE
#include "targets/instantiate.hpp"
#endif
