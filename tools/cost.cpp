// What `make cost` compiles: five operators on f32, as a small program would call them.
#include <cenote/pool.hpp>
#include <cstdio>

int main() {
  const cenote::Tensor<float> x({1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  float sum = 0;
  for (const float v : cenote::max_pool(x, {.kernel = {2, 2}}).data()) sum += v;
  for (const float v : cenote::min_pool(x, {.kernel = {2, 2}}).data()) sum += v;
  for (const float v : cenote::sum_pool(x, {.kernel = {2, 2}}).data()) sum += v;
  for (const float v : cenote::avg_pool(x, {.kernel = {2, 2}}).data()) sum += v;
  for (const float v : cenote::smooth_max_pool(x, {.kernel = {2, 2}}, {.beta = 1}).data()) sum += v;
  std::printf("%g\n", static_cast<double>(sum));
}
