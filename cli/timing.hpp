// How long a call takes: the fastest of several, after one that does not count.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "cenote/error.hpp"

namespace cenote::cli {

template <class F>
double seconds_of(F&& call, int times = 7) {
  call();
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// memcpy by several threads at once, each its own part.
inline void copy_in_parallel(const float* from, float* to, Index elements, int threads) {
  std::vector<std::thread> workers;
  const auto part = [=](Index n) {
    const Index begin = elements * n / threads;
    const Index end = elements * (n + 1) / threads;
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(float));
  };
  for (int n = 1; n < threads; ++n) workers.emplace_back(part, n);
  part(0);
  for (std::thread& worker : workers) worker.join();
}

}  // namespace cenote::cli
