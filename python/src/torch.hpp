// PyTorch as the module knows it: nothing of it is linked, cenote.torch hands over the functions that are called here.
#pragma once

#include "arrays.hpp"

namespace cenote::python {

enum class Format : std::uint8_t { like, rows, channels_last };

// A new tensor with the element type of x, not initialised; `like` gives it the memory format that PyTorch would give
// to what it computes from x.
Array new_tensor(const Array& x, const Dims& dims, Format format, const Place& place);

}  // namespace cenote::python
