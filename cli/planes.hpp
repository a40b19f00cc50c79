// Pixels as planes: kernels work along rows of neighbours, and in a picture the neighbours of a number are other
// channels. Taking channels apart and putting them together again costs less than working between them.
#pragma once

#include <cstddef>

#include "cenote/geometry.hpp"

namespace cenote::cli {

// The axis of few channels that stands innermost in storage order, or -1 where planes would not help.
int channel_axis(const Geometry& g, bool fortran);

// Strides, in elements, of an array of these sizes with one plane per channel, in storage order otherwise.
Dims plane_strides(const Dims& dims, int channels, bool fortran);

// Copies elements of `bytes` each from one layout to another.
void rearrange(Index bytes, const Dims& dims, const std::byte* from, const Dims& from_strides, std::byte* to,
               const Dims& to_strides);

}  // namespace cenote::cli
