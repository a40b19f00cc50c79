// Elements of one type as elements of another: to integers rounded half to even and clamped to what they hold, NaN as
// 0.
#pragma once

#include "files/element.hpp"

namespace cenote::cli {

void convert(Element from, const std::byte* source, Element to, std::byte* target, Index elements);

}  // namespace cenote::cli
