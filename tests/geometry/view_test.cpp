// Views and tensors: shapes, strides, sixteen axes, and what is refused.
#include "cenote/view.hpp"

#include "support/laws.hpp"

namespace cenote::test {
namespace {

TEST(View, AddressesElementsByAnyStrides) {
  std::vector<int> cells{0, 1, 2, 3, 4, 5};
  const View<int> rows(cells.data(), {2, 3});
  EXPECT_EQ(rows(1, 2), 5);
  const View<int> columns = rows.permuted({1, 0});
  EXPECT_EQ(columns.dims(), (Dims{3, 2}));
  EXPECT_EQ(columns(2, 1), 5);
  const View<int> backwards(cells.data() + 5, {2, 3}, {-3, -1});
  EXPECT_EQ(backwards(0, 0), 5);
  EXPECT_EQ(backwards(1, 2), 0);
  const View<const int> repeated(cells.data() + 4, {2, 2}, {0, 0});
  EXPECT_EQ(repeated(1, 1), 4);
  const View<int> scalar(cells.data() + 3, Dims{});
  EXPECT_EQ(scalar.size(), 1);
  EXPECT_EQ(scalar(), 3);
}

TEST(View, ReadsRepeatedAndReversedInputs) {
  const std::vector<float> cells{7, 1, 5};
  const Geometry g = resolve({4, 3}, Sliding{.kernel = {2, 2}, .stride = 1});
  Tensor<float> y(g.out());
  spec::forward<float>(Max{}, g, View<const float>(cells.data() + 2, {4, 3}, {0, -1}), y.view());  // rows of 5 1 7
  EXPECT_EQ(y, Tensor<float>({3, 2}, {5, 7, 5, 7, 5, 7}));
}

TEST(View, OffsetsBeyond32BitsAreExact) {
  // 2^40 cells that all lie at one address, and windows at both ends of them
  const float cell = 3;
  const Index n = Index{1} << 40;
  const Geometry g = resolve({n}, Sliding{.kernel = {2}, .stride = {n - 2}});
  Tensor<float> y(g.out());
  spec::forward<float>(Sum{}, g, View<const float>(&cell, {n}, {0}), y.view());
  EXPECT_EQ(y, Tensor<float>({2}, {6, 6}));
  const auto winners = spec::winners<float>(Max{}, g, View<const float>(&cell, {n}, {0}));
  EXPECT_EQ(spec::flat_indices(g, winners), Tensor<std::int64_t>({2}, {0, n - 2}));
}

TEST(View, RefusesIllegalPermutationsAndStrides) {
  std::vector<int> cells(6);
  const View<int> view(cells.data(), {2, 3});
  EXPECT_THROW((void)view.permuted({0}), ShapeError);
  EXPECT_THROW((void)view.permuted({0, 0}), ShapeError);
  EXPECT_THROW((void)view.permuted({0, 2}), ShapeError);
  EXPECT_THROW(View<int>(cells.data(), {2, 3}, {1}), ShapeError);
  EXPECT_THROW(View<int>(cells.data(), {2, -3}), ShapeError);
}

TEST(Tensor, SixteenAxesArePooledLikeTwo) {
  Dims dims = Dims::filled(16, 1);
  dims[3] = 4;
  dims[15] = 4;
  Tensor<float> x(dims);
  for (std::size_t i = 0; i < 16; ++i) x.data()[i] = static_cast<float>(i);
  Sliding windows{.kernel = Dims::filled(16, 1)};
  windows.kernel.entries[3] = windows.kernel.entries[15] = 2;
  const auto y = max_pool(x, windows);
  EXPECT_EQ(y.dims().rank, 16);
  EXPECT_TRUE(std::equal(y.data().begin(), y.data().end(), std::array{5.0F, 7.0F, 13.0F, 15.0F}.begin()));
  const auto gx = max_pool_vjp(x, y, windows);
  EXPECT_EQ(gx.data()[15], 15.0F);
  dims = Dims::filled(16, 2);
  EXPECT_EQ(global_sum_pool(Tensor<std::int32_t>(dims, 1), {.last = 16, .keep = false}).data()[0], 65536);
}

TEST(Tensor, TheElementsOfATemporaryOutliveIt) {
  float sum = 0;
  for (const float cell : max_pool(Tensor<float>({4}, {1, 2, 3, 4}), {.kernel = {2}}).data()) sum += cell;
  EXPECT_EQ(sum, 6);
}

TEST(Tensor, StaticShapesRefuseTheWrongNumberOfElements) {
  using Small = Tensor<float, Shape<2, 2>>;
  EXPECT_THROW((Small{1, 2, 3}), ShapeError);
  EXPECT_EQ((Small{1, 2, 3, 4}.view()(1, 0)), 3);
}

TEST(Pad, SurroundsTheLastAxesAndUnpadTakesItBack) {
  const Tensor<int> x({2, 2}, {1, 2, 3, 4});
  const Pads pads{{1, 0}, {0, 2}};
  const auto padded = pad(x, pads, 9);
  EXPECT_EQ(padded, Tensor<int>({3, 4}, {9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9, 9}));
  EXPECT_EQ(unpad(padded, pads), x);
  EXPECT_EQ(pad(x, Pads{1}).dims(), (Dims{2, 4}));  // one entry: the last axis
  EXPECT_EQ(pad(x, Pads(1)).dims(), (Dims{4, 4}));  // one number: every axis
  EXPECT_EQ(unpad(x, Pads{{2, 0}, {0, 0}}).dims(), (Dims{0, 2}));
}

}  // namespace
}  // namespace cenote::test
