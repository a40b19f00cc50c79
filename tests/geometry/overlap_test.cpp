// Memory overlap against brute force over every address.
#include "cenote/overlap.hpp"

#include <set>

#include "support/laws.hpp"

namespace cenote::test {
namespace {

bool overlaps(const View<float>& a, const View<float>& b) {
  return detail::overlaps(detail::memory_of(a), detail::memory_of(b));
}

View<float> random_view(std::vector<float>& buffer) {
  Dims dims;
  Dims strides;
  for (Index rank = between(0, 3); rank > 0; --rank) {
    dims.push_back(between(1, 4));
    strides.push_back(between(-7, 7));
  }
  return {buffer.data() + 200 + between(-30, 30), dims, strides};
}

std::multiset<const float*> cells(const View<float>& view) {
  std::multiset<const float*> out;
  for_each_index(view.dims(), [&](const Dims& index) { out.insert(&view[index]); });
  return out;
}

RC_GTEST_PROP(Overlap, TwoViewsOverlapExactlyWhenTheyShareAnElement, ()) {
  std::vector<float> buffer(400);
  const auto a = random_view(buffer);
  const auto b = random_view(buffer);
  const auto in_a = cells(a);
  bool shared = false;
  for (const float* cell : cells(b)) shared = shared || in_a.count(cell) > 0;
  RC_ASSERT(overlaps(a, b) == shared);
}

RC_GTEST_PROP(Overlap, AViewHasDistinctElementsExactlyWhenNoAddressRepeats, ()) {
  std::vector<float> buffer(400);
  const auto view = random_view(buffer);
  const auto all = cells(view);
  RC_ASSERT(detail::has_distinct_elements(view.dims(), view.strides()) ==
            (std::set<const float*>(all.begin(), all.end()).size() == all.size()));
}

TEST(Overlap, InterleavedViewsOfOneBufferDoNotOverlap) {
  std::vector<float> pixels(300);  // 10 x 10 x 3
  const View<float> red(pixels.data(), {10, 10}, {30, 3});
  const View<float> green(pixels.data() + 1, {10, 10}, {30, 3});
  EXPECT_FALSE(overlaps(red, green));
  const View<float> left(pixels.data(), {10, 15}, {30, 1});
  const View<float> right(pixels.data() + 15, {10, 15}, {30, 1});
  EXPECT_FALSE(overlaps(left, right));
  EXPECT_TRUE(overlaps(left, red));
}

TEST(Overlap, EmptyViewsOverlapNothing) {
  std::vector<float> buffer(4);
  EXPECT_FALSE(overlaps(View<float>(buffer.data(), {0, 4}), View<float>(buffer.data(), {4})));
}

TEST(Overlap, StridesBeyondMemoryDoNotOverflow) {
  std::vector<float> buffer(4);
  constexpr Index far = std::numeric_limits<Index>::max() / 2;
  EXPECT_FALSE(overlaps(View<float>(buffer.data(), {2, 2}, {far, far / 3}), View<float>(buffer.data() + 1, {1})));
  EXPECT_TRUE(detail::has_distinct_elements({3, 3}, {far, far / 3}));
}

}  // namespace
}  // namespace cenote::test
