// The choice of an instruction set, as kernels see it; users see cenote/execution.hpp.
#pragma once

#include <cstddef>

namespace cenote {

// The place of the target in use in the tables that HWY_EXPORT makes.
//
// Highway has such a choice too, but one per process: whoever links the same libhwy shares it, and in 1.0.3 whoever
// calls hwy::SupportedTargets() resets it. The library's own neither limits an application that uses Highway, nor is
// changed by it. Of what is shared only hwy::DisableTargets is heeded, if it was called before the library's first use.
std::size_t target_index();

}  // namespace cenote
