// Highway as the library uses it: for which targets, and how a kernel is called. No file includes Highway otherwise.
//
// A file of kernels defines HWY_TARGET_INCLUDE as its own name before its first include of this one, and is then
// compiled once per target; -inl headers include this one inside their toggle, since it is read again for every target.
#ifndef CENOTE_KERNELS_HIGHWAY_HPP
#define CENOTE_KERNELS_HIGHWAY_HPP

#include "targets/target.hpp"

#if defined(HWY_HIGHWAY_INCLUDED) || defined(HIGHWAY_HWY_FOREACH_TARGET_H_)
#error "kernels/highway.hpp must come before Highway's own headers"
#endif

// Each target costs compile time and size. Left out are those that hardly any machine has as its best (SSSE3), that add
// nothing to pooling (AVX3_DL), or that no test here can run (SVE). What stays on x86 is AVX3, AVX2, SSE4 and the
// baseline, for which Highway 1.0.3 has no vectors: EMU128, or SCALAR where the compiler is known to miscompile that
// one (g++ before 12.3). On ARM it is NEON.
#define CENOTE_LEFT_OUT (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifdef CENOTE_FEWER_TARGETS  // the sanitizers need not see the same source three times
#define HWY_DISABLED_TARGETS (CENOTE_LEFT_OUT | HWY_AVX3 | HWY_SSE4)
#elif defined(CENOTE_WITHOUT_TARGETS)  // what this machine has no use for: cmake/machine_targets.cmake
#define HWY_DISABLED_TARGETS (CENOTE_LEFT_OUT | CENOTE_WITHOUT_TARGETS)
#else
#define HWY_DISABLED_TARGETS CENOTE_LEFT_OUT
#endif

// A lambda of kernels that is called in inner loops.
#define CENOTE_INNER HWY_ATTR __attribute__((always_inline))

// Calls `function`, exported by HWY_EXPORT, for the target in use. Takes the place of HWY_DYNAMIC_DISPATCH, which does
// not know of limit_target: see targets/target.hpp.
#define CENOTE_DISPATCH(function) \
  (*(HWY_DISPATCH_TABLE(function)[sizeof HWY_DISPATCH_TABLE(function) == sizeof(void*) ? 0 : ::cenote::target_index()]))

#endif  // CENOTE_KERNELS_HIGHWAY_HPP

#ifdef HWY_TARGET_INCLUDE
#if defined(HWY_HIGHWAY_INCLUDED) && !defined(HIGHWAY_HWY_FOREACH_TARGET_H_)
#error "HWY_TARGET_INCLUDE must be defined before the first include of kernels/highway.hpp"
#endif
#include <hwy/foreach_target.h>
#endif
#include <hwy/highway.h>
