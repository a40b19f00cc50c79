// Elements of one type as elements of another: to integers rounded half to even and clamped to what they hold, NaN as
// 0.
#pragma once

#include "files/element.hpp"

namespace cenote::cli {

void convert(Element from, const std::byte* source, Element to, std::byte* target, Index elements);

// Lines of pixels, of which the channels are taken apart: all cells of the first, then all of the second; or put
// together again.
struct Lines {
  Index count, columns, channels;
};
void convert_apart(Element from, const std::byte* source, Element to, std::byte* target, const Lines& lines);
void convert_together(Element from, const std::byte* source, Element to, std::byte* target, const Lines& lines);

}  // namespace cenote::cli
