// Rows of interleaved elements (pixels) taken apart into planes and put together again.
#pragma once

#include "cenote/view.hpp"

namespace cenote {

// Elements of a size in bytes (1, 2, 4 or 8) lie at from[i * channels + c] and go to to[c * plane + i], for
// i < count; and the way back.
void split_channels(Index bytes, const void* from, Index channels, Index count, void* to, Index plane);
void join_channels(Index bytes, const void* from, Index plane, Index channels, Index count, void* to);

}  // namespace cenote
