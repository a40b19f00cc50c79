// Where other pooling systems disagree with each other, and what happens here. T numbers are those of the survey of
// peers in docs/peers.md.
#include <cmath>
#include <limits>

#include "support/laws.hpp"

namespace cenote::test {
namespace {

using D = Tensor<double>;
constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Traps, T1_NegativeNumeratorsDoNotTruncateToAWindow) {
  // (2 - 3) / 5 truncates to 0, which would make one window of a kernel that does not fit
  EXPECT_THROW(resolve({2}, Sliding{.kernel = {3}, .stride = {5}}), ShapeError);
}

TEST(Traps, T2_CeilSizesAreExactBeyond24Bits) {
  EXPECT_EQ(resolve({16777218}, Sliding{.kernel = {1}, .stride = {2}, .rounding = Rounding::ceil}).out(),
            Dims{8388609});
  EXPECT_THROW(resolve({1}, Sliding{.kernel = {4}, .stride = {1}, .rounding = Rounding::ceil}), ShapeError);
}

TEST(Traps, T3_CeilOverhangsOnTheHighSideOnly) {
  const D x({5}, {1, 2, 3, 4, 5});
  const Sliding s{.kernel = {3}, .stride = {3}, .rounding = Rounding::ceil};
  EXPECT_EQ(avg_pool(x, s), D({2}, {2, 4.5}));
}

TEST(Traps, T4_TheDivisorCountsPaddingButNoOverhang) {
  // the second window of 3 has one real cell, one of padding and one that does not exist
  const D x({2}, {6, 6});
  const Sliding s{.kernel = {3}, .stride = {2}, .padding = {{1, 1}}, .rounding = Rounding::ceil};
  EXPECT_EQ(avg_pool(x, s), D({2}, {4, 3}));
  EXPECT_EQ(avg_pool_vjp(x, D({2}, {3, 2}), s), D({2}, {1, 2}));
  EXPECT_EQ(avg_pool(x, s, {.divisor = Divisor::real}), D({2}, {6, 6}));
}

TEST(Traps, T5_NoValueOfTheInputIsASentinel) {
  const double low = std::numeric_limits<double>::lowest();
  EXPECT_EQ(avg_pool(D({2}, {low, low}), {.kernel = {2}}), D({1}, {low}));
  EXPECT_EQ(max_pool(D({2}, {low, -inf}), {.kernel = {2}}), D({1}, {low}));
}

TEST(Traps, T6_DilationThatStepsOverTheInputNamesNoCell) {
  const Sliding s{.kernel = {2}, .stride = {1}, .padding = 2, .dilation = {3}};
  EXPECT_EQ(max_pool_vjp(D({1}, {5}), D({2}, {1, 1}), s), D({1}, {0}));
  EXPECT_EQ(max_pool_with_indices(D({1}, {5}), s).indices, Tensor<std::int64_t>({2}, {-1, -1}));
}

TEST(Traps, T7_AWindowWithoutACellIsZeroForEveryScalar) {
  const Sliding s{.kernel = {1}, .padding = {{1, 0}}};
  EXPECT_EQ(max_pool(Tensor<std::int8_t>({1}, {-3}), s), Tensor<std::int8_t>({2}, {0, -3}));
  EXPECT_EQ(min_pool(Tensor<float>({1}, {3}), s), Tensor<float>({2}, {0, 3}));
}

TEST(Traps, T8_AllMinusInfinityNamesItsFirstTapInEveryRank) {
  const D x({3, 3, 3}, -inf);
  const auto [y, index] = max_pool_with_indices(x, {.kernel = {2, 2, 2}, .stride = 1});
  EXPECT_EQ(y, D({2, 2, 2}, -inf));
  EXPECT_EQ(index, Tensor<std::int64_t>({2, 2, 2}, {0, 1, 3, 4, 9, 10, 12, 13}));
}

TEST(Traps, T9_NaNBeforeAndAfterTheMaximumAlikePropagates) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const D& x : {D({3}, {nan, 1, 2}), D({3}, {1, nan, 2}), D({3}, {1, 2, nan})}) {
    EXPECT_TRUE(std::isnan(max_pool(x, {.kernel = {3}}).data()[0]));
    EXPECT_TRUE(std::isnan(avg_pool(x, {.kernel = {3}}).data()[0]));
  }
}

TEST(Traps, T10_TheWinnerOfATieIsTheFirstRowFirst) {
  // a separable maximum that prefers columns would pick (1, 0)
  const D x({2, 2}, {0, 5, 5, 0});
  EXPECT_EQ(max_pool_with_indices(x, {.kernel = {2, 2}}).indices.data()[0], 1);
}

TEST(Traps, T11_AMerelyCloseValueDoesNotReceiveTheGradient) {
  const double close = std::nextafter(1.0, 0.0);
  EXPECT_EQ(max_pool_vjp(D({2}, {close, 1}), D({1}, {1}), {.kernel = {2}}), D({2}, {0, 1}));
}

TEST(Traps, T12_AUniqueMaximumReceivesTheWholeGradient) {
  EXPECT_EQ(max_pool_vjp(D({2, 2}, {1, 2, 3, 4}), D({1, 1}, {8}), {.kernel = {2, 2}}), D({2, 2}, {0, 0, 0, 8}));
}

TEST(Traps, T13_AHalfPrecisionMeanNeitherSaturatesNorOverflows) {
  const Tensor<f16> ones({64, 64}, f16(1.0F));
  EXPECT_EQ(float(avg_pool(ones, {.kernel = {64, 64}}).data()[0]), 1.0F);
  const Tensor<f16> large({64, 64}, f16(65504.0F));
  EXPECT_EQ(float(avg_pool(large, {.kernel = {64, 64}}).data()[0]), 65504.0F);
}

TEST(Traps, T14_IntegerMaximaOfNegativesAreNegative) {
  const Tensor<std::int32_t> x({2, 2}, {-4, -3, -2, -9});
  EXPECT_EQ(max_pool(x, {.kernel = {2, 2}, .padding = 1, .rounding = Rounding::ceil}).data()[0], -4);
}

TEST(Traps, T15_DilationOneIsDenseAndTheBorderKeepsThePhase) {
  const D x({5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(max_pool(x, {.kernel = {2}, .stride = {1}}), D({4}, {2, 3, 4, 5}));
  // taps -1, 1: clamping the start to 0 would read cell 0
  EXPECT_EQ(sum_pool(x, {.kernel = {2}, .stride = {1}, .padding = {{1, 0}}, .dilation = {2}}), D({4}, {2, 4, 6, 8}));
}

TEST(Traps, T16_FlatIndicesCountThePooledAxesOnly) {
  D x({2, 3, 2, 2});
  x.data()[2 * 4 * 2 + 3] = 1;
  const auto index = max_pool2d_with_indices(x, 2).indices;
  EXPECT_EQ(index.dims(), (Dims{2, 3, 1, 1}));
  EXPECT_EQ(index.data()[4], 3);
  // channels last: the plane is axes 1 and 2, whatever comes after
  D last({1, 2, 2, 3});
  last.data()[3 * 3 + 1] = 1;
  const auto channels = max_pool_with_indices(last, {.kernel = 2, .axes = {1, 2}}).indices;
  EXPECT_EQ(channels, Tensor<std::int64_t>({1, 1, 1, 3}, {0, 3, 0}));
}

TEST(Traps, T17_AdaptiveWindowsAreExactBeyond24Bits) {
  EXPECT_EQ(adaptive_start(8388609, 16777219, 16777218), 8388609);
  EXPECT_EQ(adaptive_end(16777216, 16777219, 16777218), 16777219 - 1);
}

TEST(Traps, T18_OnlyAPooledAxisMayNotBeEmpty) {
  EXPECT_EQ(max_pool2d(D({0, 3, 4, 4}), 2).dims(), (Dims{0, 3, 2, 2}));
  EXPECT_EQ(max_pool2d(D({2, 0, 4, 4}), 2).dims(), (Dims{2, 0, 2, 2}));
  EXPECT_THROW(max_pool2d(D({2, 3, 0, 4}), 2), ShapeError);
  EXPECT_THROW(global_avg_pool(D({2, 0}), {.last = 1}), ShapeError);
}

TEST(Traps, T19_NoArgumentOverflowsTheSizeArithmetic) {
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const Index huge : {most, most - 1, most / 2, Index{1} << 31, (Index{1} << 31) - 1, Index{1} << 32})
    for (const Rounding rounding : {Rounding::floor, Rounding::ceil}) {
      for (const Sliding& s : {Sliding{.kernel = {huge}, .rounding = rounding},
                               Sliding{.kernel = {2}, .dilation = {huge}, .rounding = rounding},
                               Sliding{.kernel = {huge}, .dilation = {huge}, .rounding = rounding},
                               Sliding{.kernel = {2}, .padding = {{huge, 0}}, .rounding = rounding},
                               Sliding{.kernel = {2}, .padding = {{huge, huge}}, .rounding = rounding},
                               Sliding{.kernel = {huge}, .padding = same, .rounding = rounding}}) {
        const Resolved resolved = try_resolve({5}, s);  // an answer or an error, never undefined behaviour
        EXPECT_TRUE(resolved.problem.has_value() || resolved.geometry.axis(0).out >= 1);
      }
      EXPECT_EQ(resolve({5}, Sliding{.kernel = {2}, .stride = {huge}, .rounding = rounding}).out(), Dims{1});
    }
}

TEST(Traps, T20_SameCountsTheDilationAndNeverPadsByLessThanNothing) {
  const Axis wide = resolve({7}, Sliding{.kernel = {1}, .stride = {4}, .padding = same}).axis(0);
  EXPECT_EQ(wide.padding.low + wide.padding.high, 0);
  const Axis dilated = resolve({7}, Sliding{.kernel = {3}, .stride = {1}, .padding = same, .dilation = {2}}).axis(0);
  EXPECT_EQ(dilated.out, 7);
  EXPECT_EQ(dilated.padding.low, 2);
}

TEST(Traps, T21_LpTakesMagnitudesAndHasAFiniteGradientAtZero) {
  EXPECT_DOUBLE_EQ(lp_pool(D({2}, {-1, 1}), {.kernel = {2}}, {.p = 3}).data()[0], std::cbrt(2.0));
  EXPECT_EQ(lp_pool_vjp(D({2}, {0, 0}), D({1}, {1}), {.kernel = {2}}, {.p = 2.5}), D({2}, {0, 0}));
}

TEST(Traps, T22_SmoothMaxDoesNotOverflowInF32) {
  const Tensor<float> x({2}, {100, 90});
  EXPECT_EQ(smooth_max_pool(x, {.kernel = {2}}, {.beta = 10}).data()[0], 100.0F);
}

TEST(Traps, OneNumberForSameSizeKeepsEveryAxis) {
  EXPECT_EQ(adaptive_avg_pool2d(D({1, 3, 5}), same_size).dims(), (Dims{1, 3, 5}));
  EXPECT_EQ(adaptive_max_pool2d(D({1, 3, 5}), {same_size, 2}).dims(), (Dims{1, 3, 2}));
}

}  // namespace
}  // namespace cenote::test
