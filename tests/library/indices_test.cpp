// The flat indices of winners are those of the definition, for every kind of window and every width of winners.
#include "cenote/indices.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cenote/run.hpp"

namespace cenote::test {
namespace {

Tensor<float> shuffled(const Dims& dims) {
  Tensor<float> out(dims);
  std::uint32_t seed = 1;
  for (float& cell : out.data()) cell = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 20);
  return out;
}

template <class Windows>
void agrees(const Dims& dims, const Windows& windows, int bytes) {
  const Geometry g = resolve(dims, windows);
  const Tensor<float> x = shuffled(dims);
  const Winners winners = spec::winners<float>(Max{}, g, x.view());
  SCOPED_TRACE(describe(g));
  EXPECT_EQ(winners.bytes_each(), bytes);
  const Tensor<std::int64_t> expected = spec::flat_indices(g, winners);
  EXPECT_EQ(flat_indices(g, winners), expected);

  const std::size_t count = expected.data().size();
  std::vector<std::int32_t> narrow(count);
  flat_indices(g, winners, narrow);
  EXPECT_TRUE(std::ranges::equal(narrow, expected.data()));

  std::vector<std::int64_t> shared(count);  // by the winners and what they become
  const std::span<std::uint8_t> memory(reinterpret_cast<std::uint8_t*>(shared.data()), 8 * count);
  const Winners inside(g, memory.last(winners.bytes().size()));
  std::ranges::copy(winners.bytes(), memory.last(winners.bytes().size()).begin());
  flat_indices(g, inside, shared);
  EXPECT_TRUE(std::ranges::equal(shared, expected.data()));
}

TEST(FlatIndices, OfSlidingWindows) {
  agrees({2, 3, 9, 10}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}, 1);
  agrees({2, 3, 9, 10}, Sliding{.kernel = {3, 2}, .stride = {1, 3}, .dilation = {2, 3}, .rounding = Rounding::ceil}, 1);
  agrees({2, 9, 10, 3}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1, .axes = {1, 2}}, 1);
  agrees({9, 4, 10}, Sliding{.kernel = {3, 2}, .axes = {2, 0}}, 1);
  agrees({40, 40}, Sliding{.kernel = {20, 20}, .stride = 3}, 2);
  agrees({7}, Sliding{.kernel = {2}}, 1);
}

TEST(FlatIndices, OfWindowsWithoutACell) {
  agrees({2, 3, 3}, Sliding{.kernel = {2, 2}, .stride = 1, .padding = 3}, 1);
  agrees({4}, Sliding{.kernel = {256}, .stride = 8, .padding = 300}, 2);
}

TEST(FlatIndices, OfAdaptiveAndGlobalWindows) {
  agrees({2, 7, 11}, Adaptive{.output = {3, 4}}, 1);
  agrees({2, 3, 4}, Adaptive{.output = {5, 7}}, 1);
  agrees({5, 30, 31}, Global{.last = 2}, 2);
  agrees({5, 30, 31}, Global{.axes = {0, 2}, .keep = false}, 1);
  agrees({300, 300}, Global{.last = 2}, 4);  // more taps than are tabled
}

TEST(FlatIndices, OfEmptyResults) {
  agrees({0, 4, 4}, Sliding{.kernel = {2, 2}}, 1);
  agrees({4, 0}, Sliding{.kernel = {2}, .axes = {0}}, 1);
}

TEST(FlatIndices, RefusesMemoryOfAnotherSize) {
  const Geometry g = resolve({4}, Sliding{.kernel = {2}});
  std::vector<std::int64_t> three(3);
  EXPECT_THROW(flat_indices(g, Winners(g), three), ShapeError);
}

}  // namespace
}  // namespace cenote::test
