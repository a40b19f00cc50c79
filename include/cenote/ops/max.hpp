// Maximum: the largest real tap (M1 to M8). Padding never takes part.
#pragma once

#include "cenote/ops/extreme.hpp"

namespace cenote {

using Max = Extreme<true>;

}  // namespace cenote
