// The two roofs that no program on a machine gets above: how fast memory copies, and how fast registers add.
#pragma once

#include <cstddef>

namespace cenote::cli {

struct Roof {
  double bytes_per_second = 0;      // memcpy, reads and writes counted
  double additions_per_second = 0;  // of f32, in registers
};

// With as many threads, and with instructions of the set that the library uses.
Roof measure_roof(int threads);

}  // namespace cenote::cli
