// The u16 objects of the compiled library.
#define CENOTE_SCALAR std::uint16_t
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "targets/u16.cpp"
#include "kernels/highway.hpp"
//
#include "kernels/table-inl.hpp"

#if HWY_ONCE
#include "targets/instantiate.hpp"
#endif
