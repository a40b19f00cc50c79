#include <cenote/pool.hpp>
#include <cstdio>

int main() {
  const cenote::Tensor<float> x({1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  const auto y = cenote::max_pool(x, {.kernel = {2, 2}});
  for (const float v : y.data()) std::printf("%g ", v);
}
