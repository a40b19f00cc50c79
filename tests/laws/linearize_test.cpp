// Linearisation: pushing and pulling from what was kept equals the verbs at x, and x is not looked at again.
#include "cenote/linearize.hpp"

#include <algorithm>

#include "cenote/rational.hpp"
#include "support/laws.hpp"

namespace cenote::test {
namespace {

RC_GTEST_PROP(Linearize, PushAndPullEqualJvpAndVjpAfterTheInputIsGone, ()) {
  const Geometry g = random_geometry();
  auto x = random_tensor<Rational>(g.in(), 2);
  const auto dx = random_tensor<Rational>(g.in(), 9);
  const auto gy = random_tensor<Rational>(g.out(), 9);
  for_each_algebraic_operator([&](const auto& op) {
    RC_LOG() << describe(g) << ", " << label(op) << "\n";
    Tensor<Rational> y(g.out());
    Tensor<Rational> dy(g.out());
    Tensor<Rational> gx(g.in());
    auto point = x;
    const auto lin = spec::linearize<Rational>(op, g, point.view(), y.view());
    for (Rational& cell : point.data()) cell = 12345;  // must not matter any more
    RC_ASSERT(y == value(op, g, x));
    for (int again = 0; again < 2; ++again) {
      lin.push(dx.view(), dy.view());
      RC_ASSERT(dy == push(op, g, x, dx));
      lin.pull(gy.view(), gx.view());
      RC_ASSERT(gx == pull(op, g, x, gy));
    }
  });
}

template <class T>
void machine_scalars_agree() {
  const Geometry g = random_geometry();
  const auto x = random_tensor<T>(g.in(), 4);
  const auto dx = random_tensor<T>(g.in(), 9);
  const auto gy = random_tensor<T>(g.out(), 9);
  for_each_operator<T>([&](const auto& op) {
    Tensor<T> y(g.out());
    Tensor<T> dy(g.out());
    Tensor<T> gx(g.in());
    const auto lin = spec::linearize<T>(op, g, x.view(), y.view());
    lin.push(dx.view(), dy.view());
    RC_ASSERT(dy == push(op, g, x, dx));
    lin.pull(gy.view(), gx.view());
    RC_ASSERT(gx == pull(op, g, x, gy));
  });
}
RC_GTEST_PROP(Linearize, AgreesInF32, ()) { machine_scalars_agree<float>(); }
RC_GTEST_PROP(Linearize, AgreesInF16, ()) { machine_scalars_agree<f16>(); }

RC_GTEST_PROP(Linearize, WinnersNameTheTapThatWasReturned, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<std::int32_t>(g.in(), 3);
  for (const Ties ties : {Ties::first, Ties::all, Ties::split}) {
    const auto y = value(Max{ties}, g, x);
    const auto winners = spec::winners<std::int32_t>(Max{ties}, g, x.view());
    spec::for_each_winner(g, winners, row_major(g.in()), row_major(g.out_kept()), [&](Index o, bool won, Index place) {
      const auto at = static_cast<std::size_t>(o);
      const auto expected = won ? x.data()[static_cast<std::size_t>(place)] : 0;
      RC_ASSERT(y.data()[at] == expected);
    });
  }
}

TEST(Linearize, WinnersStandOnMemoryOfTheCallers) {
  const Geometry g = resolve({2, 8, 8}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1});
  Tensor<float> x(g.in());
  for (std::size_t i = 0; i < x.data().size(); ++i) x.data()[i] = static_cast<float>(i * 37 % 101);
  const Winners owned = spec::winners<float>(Max{}, g, x.view());
  EXPECT_EQ(Winners::bytes_for(g), static_cast<Index>(owned.bytes().size()));
  std::vector<std::uint8_t> memory(owned.bytes().size());
  Winners borrowed(g, memory);
  spec::find_winners<float>(Max{}, g, x.view(), borrowed);
  EXPECT_TRUE(std::ranges::equal(memory, owned.bytes()));
  const Winners copy = borrowed;
  EXPECT_EQ(copy.bytes().data(), memory.data());
  Winners other = owned;  // a copy of what owns its memory has its own
  other.set(0, owned[0] + 1);
  EXPECT_NE(other[0], owned[0]);
  memory.pop_back();
  EXPECT_THROW(Winners(g, memory), ShapeError);
}

TEST(Linearize, KeepsOneByteAnOutputForMaxNothingForAverageTheInputOtherwise) {
  const Geometry g = resolve({2, 8, 8}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1});
  const Tensor<float> x(g.in(), 1.0F);
  Tensor<float> y(g.out());
  const auto kept = [&](const auto& op) { return spec::linearize<float>(op, g, x.view(), y.view()).bytes_kept(); };
  EXPECT_EQ(kept(Max{}), 2U * 4 * 4);
  EXPECT_EQ(kept(Min{}), 2U * 4 * 4);
  EXPECT_EQ(kept(Average{}), 0U);
  EXPECT_EQ(kept(Sum{}), 0U);
  EXPECT_EQ(kept(Max{Ties::split}), 2U * 8 * 8 * sizeof(float));
  EXPECT_EQ(kept(SmoothMax{1}), 2U * 8 * 8 * sizeof(float));
}

TEST(Linearize, ChecksTheShapesOfWhatItIsGiven) {
  const Geometry g = resolve({6}, Sliding{.kernel = {2}});
  const Tensor<float> x({6}, 1.0F);
  Tensor<float> y({3});
  Tensor<float> wrong({4});
  Tensor<float> gx({6});
  const auto max = spec::linearize<float>(Max{}, g, x.view(), y.view());
  const auto average = spec::linearize<float>(Average{}, g, x.view(), y.view());
  EXPECT_THROW(max.push(wrong.view(), y.view()), ShapeError);
  EXPECT_THROW(max.pull(wrong.view(), gx.view()), ShapeError);
  EXPECT_THROW(average.push(wrong.view(), y.view()), ShapeError);
  EXPECT_THROW(average.pull(wrong.view(), gx.view()), ShapeError);
  EXPECT_THROW(max.pull(View<const float>(gx.data().data(), {3}), gx.view()), OverlapError);
}

}  // namespace
}  // namespace cenote::test
