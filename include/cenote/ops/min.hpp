// Minimum: the smallest real tap, by the rules of the maximum with the order turned round. Padding never takes part.
#pragma once

#include "cenote/ops/extreme.hpp"

namespace cenote {

using Min = Extreme<false>;

}  // namespace cenote
