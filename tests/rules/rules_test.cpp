// One test per rule of docs/semantics.md, named after it: small inputs, numbers worked out by hand.
#include <cmath>
#include <limits>

#include "cenote/dual.hpp"
#include "cenote/rational.hpp"
#include "support/laws.hpp"

namespace cenote::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

using D = Tensor<double>;
using I = Tensor<std::int64_t>;

D row(std::vector<double> cells) {
  const auto n = static_cast<Index>(cells.size());
  return D({n}, std::move(cells));
}

// Equal to the bit, NaN matching NaN: == would take +0 for -0.
void expect_same(const D& got, const D& expected) {
  ASSERT_EQ(got.dims(), expected.dims());
  for (std::size_t i = 0; i < got.data().size(); ++i) {
    const double a = got.data()[i];
    const double b = expected.data()[i];
    EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b)))
        << "cell " << i << ": " << a << ", expected " << b;
  }
}

// ---- geometry ---------------------------------------------------------------------------------------------------

TEST(Rules, G1_TapsLieAtStrideTimesOutputPlusDilationTimesTapMinusPadding) {
  const Geometry g = resolve({10}, Sliding{.kernel = {3}, .stride = {2}, .padding = {{2, 1}}, .dilation = {3}});
  std::vector<Index> places;
  for (const TapPlace& tap : taps(g, {1})) places.push_back(tap.position[0]);
  EXPECT_EQ(places, (std::vector<Index>{0, 3, 6}));                    // 1*2 + w*3 - 2
  EXPECT_EQ(resolve({10}, Sliding{.kernel = {3}}).axis(0).stride, 3);  // the stride defaults to the kernel
}

TEST(Rules, G1_OnePaddingNumberMeansBothEnds) {
  const Geometry g = resolve({5, 5}, Sliding{.kernel = {3, 3}, .padding = {1, 2}});
  EXPECT_EQ(g.axis(0).padding.low, 1);
  EXPECT_EQ(g.axis(0).padding.high, 1);
  EXPECT_EQ(g.axis(1).padding.low, 2);
  EXPECT_EQ(g.axis(1).padding.high, 2);
}

TEST(Rules, G2_FloorSizeAndNoPhantomWindow) {
  EXPECT_EQ(resolve({7}, Sliding{.kernel = {3}, .stride = {2}}).out(), Dims{3});
  EXPECT_EQ(resolve({8}, Sliding{.kernel = {3}, .stride = {2}}).out(), Dims{3});
  EXPECT_EQ(resolve({8}, Sliding{.kernel = {3}, .stride = {2}, .padding = 1}).out(), Dims{4});
  // 2 cells, kernel 3, stride 5: a truncating division would still see one window
  EXPECT_EQ(try_resolve({2}, Sliding{.kernel = {3}, .stride = {5}}).problem->rule, Rule::window_fits);
  EXPECT_EQ(try_resolve({4}, Sliding{.kernel = {3}, .dilation = {2}}).problem->rule, Rule::window_fits);
}

TEST(Rules, G3_CeilRoundsUpThenDropsAWindowThatStartsBeyondTheInput) {
  EXPECT_EQ(resolve({8}, Sliding{.kernel = {3}, .stride = {2}, .rounding = Rounding::ceil}).out(), Dims{4});
  EXPECT_EQ(resolve({1}, Sliding{.kernel = {2}, .stride = {2}, .padding = 1, .rounding = Rounding::ceil}).out(),
            Dims{1});
  EXPECT_EQ(resolve({2}, Sliding{.kernel = {1}, .stride = {2}, .rounding = Rounding::ceil}).out(), Dims{1});
  // a kernel larger than the padded input is legal as long as a window remains
  EXPECT_EQ(resolve({3}, Sliding{.kernel = {4}, .stride = {2}, .rounding = Rounding::ceil}).out(), Dims{1});
  EXPECT_EQ(try_resolve({1}, Sliding{.kernel = {4}, .stride = {1}, .rounding = Rounding::ceil}).problem->rule,
            Rule::window_starts);
}

TEST(Rules, G4_AdaptiveWindowsAreFloorToCeilAndMayRepeatCells) {
  const D x = row({1, 2, 3, 4, 5});
  expect_same(adaptive_max_pool(x, {.output = {3}}), row({2, 4, 5}));  // [0,2) [1,4) [3,5)
  expect_same(adaptive_avg_pool(x, {.output = {3}}), row({1.5, 3, 4.5}));
  expect_same(adaptive_max_pool(row({1, 2}), {.output = {5}}), row({1, 1, 2, 2, 2}));  // more outputs than cells
}

TEST(Rules, G5_GlobalKeepsOrDropsItsAxes) {
  const D x({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  expect_same(global_max_pool(x, {.last = 2}), D({2, 1, 1}, {4, 8}));
  expect_same(global_max_pool(x, {.last = 2, .keep = false}), D({2}, {4, 8}));
  expect_same(global_avg_pool(x, {.axes = {0}, .keep = false}), D({2, 2}, {3, 4, 5, 6}));
  expect_same(global_sum_pool(x, {.last = 3, .keep = false}), D(Dims{}, {36}));
  expect_same(global_avg_pool_vjp(x, D({2}, {4, 8}), {.last = 2, .keep = false}),
              D({2, 2, 2}, {1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(Rules, G6_AWindowOfPaddingOnlyIsLegalExceptUnderPyTorchsNames) {
  const D x = row({5, 6});
  expect_same(max_pool(x, {.kernel = {1}, .padding = 2}), row({0, 0, 5, 6, 0, 0}));
  const D image({1, 1, 4}, {1, 2, 3, 4});
  EXPECT_THROW(max_pool2d(image, {1, 2}, {.padding = {0, 2}}), ShapeError);
  EXPECT_NO_THROW(max_pool2d(image, {1, 2}, {.padding = {0, 1}}));
  // the bound is half the effective kernel in every rank: dilation counts
  EXPECT_NO_THROW(max_pool1d(D({1, 9}), 3, {.padding = 2, .dilation = 2}));
  EXPECT_NO_THROW(max_pool2d(D({1, 9, 9}), 3, {.padding = 2, .dilation = 2}));
  EXPECT_NO_THROW(max_pool3d(D({1, 9, 9, 9}), 3, {.padding = 2, .dilation = 2}));
  EXPECT_THROW(max_pool3d(D({1, 9, 9, 9}), 3, {.padding = 3, .dilation = 2}), ShapeError);
}

TEST(Rules, G7_EmptyIdentityAxesGiveEmptyResultsAndEmptyPooledAxesAreErrors) {
  const auto y = max_pool(D({0, 4, 4}), {.kernel = {2, 2}});
  EXPECT_EQ(y.dims(), (Dims{0, 2, 2}));
  EXPECT_EQ(avg_pool_vjp(D({0, 4, 4}), y, {.kernel = {2, 2}}).dims(), (Dims{0, 4, 4}));
  EXPECT_EQ(smooth_max_pool_jvp(D({0, 4, 4}), D({0, 4, 4}), {.kernel = {2, 2}}, {.beta = 1}).dims(), (Dims{0, 2, 2}));
  EXPECT_EQ(max_pool_with_indices(D({0, 4, 4}), {.kernel = {2, 2}}).indices.dims(), (Dims{0, 2, 2}));
  EXPECT_THROW(max_pool(D({2, 0, 4}), {.kernel = {2, 2}}), ShapeError);
}

// ---- maximum ----------------------------------------------------------------------------------------------------

TEST(Rules, M1_PaddingNeverWins) {
  expect_same(max_pool(row({-5, -7, -9}), {.kernel = {2}, .stride = {1}, .padding = 1}), row({-5, -5, -7, -9}));
  Tensor<std::int8_t> x({3}, {-5, -128, -9});
  EXPECT_EQ(max_pool(x, {.kernel = {2}, .padding = 1}), Tensor<std::int8_t>({2}, {-5, -9}));
}

TEST(Rules, M2_TheFirstOfEqualTapsWins) {
  const D x({2, 3}, {1, 7, 7, 7, 2, 7});
  const auto [y, index] = max_pool_with_indices(x, {.kernel = {2, 3}});
  expect_same(y, D({1, 1}, {7}));
  EXPECT_EQ(index, I({1, 1}, {1}));
  expect_same(max_pool_vjp(x, D({1, 1}, {3}), {.kernel = {2, 3}}), D({2, 3}, {0, 3, 0, 0, 0, 0}));
  expect_same(max_pool_jvp(x, D({2, 3}, {9, -0.0, 8, 7, 6, 5}), {.kernel = {2, 3}}), D({1, 1}, {-0.0}));
}

TEST(Rules, M2_TheFirstZeroWinsWithItsOwnSign) {
  expect_same(max_pool(row({-0.0, 0.0}), {.kernel = {2}}), row({-0.0}));
  expect_same(max_pool(row({0.0, -0.0}), {.kernel = {2}}), row({0.0}));
}

TEST(Rules, M3_NaNPropagatesAndTheLastOneWins) {
  const D x = row({nan, 9, nan, 1});
  const auto [y, index] = max_pool_with_indices(x, {.kernel = {4}});
  expect_same(y, row({nan}));
  EXPECT_EQ(index, I({1}, {2}));
  expect_same(max_pool_vjp(x, row({5}), {.kernel = {4}}), row({0, 0, 5, 0}));
  expect_same(min_pool_vjp(x, row({5}), {.kernel = {4}}), row({0, 0, 5, 0}));
}

TEST(Rules, M4_AWindowOfMinusInfinitiesIsMinusInfinityWonByItsFirstTap) {
  const auto [y, index] = max_pool_with_indices(row({-inf, -inf, -inf}), {.kernel = {2}, .stride = {1}, .padding = 1});
  expect_same(y, row({-inf, -inf, -inf, -inf}));
  EXPECT_EQ(index, I({4}, {0, 0, 1, 2}));
}

TEST(Rules, M5_AWindowWithoutARealTapIsZeroWithoutGradient) {
  const D x = row({5});
  const Sliding jumps{.kernel = {2}, .stride = {1}, .padding = {2}, .dilation = {3}};  // taps {-2,1} and {-1,2}
  const auto [y, index] = max_pool_with_indices(x, jumps);
  expect_same(y, row({0, 0}));
  EXPECT_EQ(index, I({2}, {-1, -1}));
  expect_same(max_pool_jvp(x, row({9}), jumps), row({0, 0}));
  expect_same(max_pool_vjp(x, row({7, inf}), jumps), row({0}));
  const auto winners = spec::winners<double>(Max{}, resolve({1}, jumps), x.view());
  EXPECT_EQ(winners[0], Winners::none);
}

TEST(Rules, M6_WinnersAreOffsetsInTheWindowOrFlatIndicesInThePooledAxes) {
  const D x({2, 3, 3}, {0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0});
  const Geometry g = resolve(x.dims(), Sliding{.kernel = {2, 2}, .stride = 1, .padding = {{0, 0}, {1, 0}}});
  const auto winners = spec::winners<double>(Max{}, g, x.view());
  EXPECT_EQ(winners.dims(), (Dims{2, 2, 3}));
  EXPECT_EQ(winners.bytes_each(), 1);
  std::vector<Index> offsets;
  for (Index i = 0; i < 12; ++i) offsets.push_back(winners[i]);
  EXPECT_EQ(offsets, (std::vector<Index>{1, 0, 3, 1, 0, 1, 1, 3, 2, 1, 1, 0}));
  EXPECT_EQ(spec::flat_indices(g, winners), I({2, 2, 3}, {0, 0, 5, 3, 3, 5, 0, 4, 4, 3, 4, 4}));
}

TEST(Rules, M6_WinnersTakeAsFewBytesAsTheWindowNeeds) {
  const auto width = [](const Dims& in, const Sliding& s) {
    const Geometry g = resolve(in, s);
    const auto w = spec::winners<float>(Max{}, g, Tensor<float>(in, 1.0F).view());
    EXPECT_EQ(w.bytes().size(), static_cast<std::size_t>(volume(w.dims()) * w.bytes_each()));
    return w.bytes_each();
  };
  EXPECT_EQ(width({20, 20}, {.kernel = {15, 17}}), 1);
  EXPECT_EQ(width({20, 20}, {.kernel = {16, 16}}), 1);                               // 256 taps, offsets 0 to 255
  EXPECT_EQ(width({20, 20}, {.kernel = {16, 16}, .stride = 40, .padding = 40}), 2);  // and "none"
  EXPECT_EQ(width({20, 20}, {.kernel = {16, 17}}), 2);
  EXPECT_EQ(width({300, 300}, {.kernel = {256, 256}}), 2);
  EXPECT_EQ(width({300, 300}, {.kernel = {256, 257}}), 4);
  // the last tap of a 256-tap window is not mistaken for "none"
  Tensor<float> x({16, 16});
  x.data()[255] = 1;
  EXPECT_EQ(spec::winners<float>(Max{}, resolve({16, 16}, Sliding{.kernel = {16, 16}}), x.view())[0], 255);
}

TEST(Rules, M7_TiePoliciesFirstAllAndSplit) {
  const D x = row({3, 5, 5, 5});
  const D gy = row({6});
  const D dx = row({1, 10, 20, 30});
  const Sliding windows{.kernel = {4}};
  expect_same(max_pool_vjp(x, gy, windows, {Ties::first}), row({0, 6, 0, 0}));
  expect_same(max_pool_vjp(x, gy, windows, {Ties::all}), row({0, 6, 6, 6}));
  expect_same(max_pool_vjp(x, gy, windows, {Ties::split}), row({0, 2, 2, 2}));
  expect_same(max_pool_jvp(x, dx, windows, {Ties::first}), row({10}));
  expect_same(max_pool_jvp(x, dx, windows, {Ties::all}), row({60}));
  expect_same(max_pool_jvp(x, dx, windows, {Ties::split}), row({20}));
  expect_same(global_max_pool_vjp(x, gy, {.last = 1}), row({0, 6, 6, 6}));  // the default of global max is `all`
  const D with_nan = row({nan, 5, nan, 9});
  expect_same(max_pool_vjp(with_nan, gy, windows, {Ties::all}), row({6, 0, 6, 0}));
  expect_same(max_pool_vjp(with_nan, gy, windows, {Ties::split}), row({3, 0, 3, 0}));
  const D zeros = row({-0.0, 0.0, -1, 0.0});
  expect_same(max_pool_vjp(zeros, gy, windows, {Ties::split}), row({2, 2, 0, 2}));
}

TEST(Rules, M8_GradientsAreSelectedNeverMasked) {
  const D x = row({1, 4, 2, 3});
  expect_same(max_pool_vjp(x, row({inf, nan}), {.kernel = {2}}), row({0, inf, 0, nan}));
  expect_same(max_pool_jvp(x, row({inf, 1, nan, 2}), {.kernel = {2}}), row({1, 2}));
  expect_same(max_pool_vjp(x, row({inf}), {.kernel = {4}}, {Ties::all}), row({0, inf, 0, 0}));
}

// ---- average ----------------------------------------------------------------------------------------------------

TEST(Rules, A1_PaddingAddsZero) {
  expect_same(avg_pool(row({3, 6, 9}), {.kernel = {3}, .stride = {1}, .padding = 1}), row({3, 6, 5}));
  expect_same(sum_pool(row({3, 6, 9}), {.kernel = {3}, .stride = {1}, .padding = 1}), row({9, 18, 15}));
}

TEST(Rules, A2_ThePaddedDivisorCountsPaddingButNotTheOverhang) {
  // padded input: 0 4 4 4 4 0 | windows of 4, stride 3: the second one hangs over by one tap
  const D x = row({4, 4, 4, 4});
  const Sliding s{.kernel = {4}, .stride = {3}, .padding = 1, .rounding = Rounding::ceil};
  expect_same(avg_pool(x, s), row({3, 8.0 / 3}));
  expect_same(avg_pool_vjp(x, row({4, 3}), s), row({1, 1, 2, 1}));
}

TEST(Rules, A3_OtherDivisors) {
  const D x = row({4, 4, 4, 4});
  const Sliding s{.kernel = {4}, .stride = {3}, .padding = 1, .rounding = Rounding::ceil};
  expect_same(avg_pool(x, s, {.divisor = Divisor::real}), row({4, 4}));
  expect_same(avg_pool(x, s, {.divisor = 2}), row({6, 4}));
  expect_same(avg_pool(x, s, {.divisor = -4}), row({-3, -2}));
  EXPECT_THROW(avg_pool(x, s, {.divisor = 0}), ParameterError);
}

TEST(Rules, A4_AWindowWithoutARealTapAveragesToZero) {
  const D x = row({5});
  const Sliding s{.kernel = {1}, .padding = 1};
  for (const Divisor divisor : {Divisor::padded, Divisor::real, Divisor(-3)}) {
    EXPECT_EQ(avg_pool(x, s, {divisor}).data()[0], 0);
    EXPECT_FALSE(std::signbit(avg_pool(x, s, {divisor}).data()[0]));
    expect_same(avg_pool_vjp(x, row({inf, 0, inf}), s, {divisor}), row({0}));
  }
}

TEST(Rules, A5_SumsStartAtPlusZeroAndSpecialValuesStayInTheirWindows) {
  expect_same(avg_pool(row({-0.0, -0.0}), {.kernel = {2}}), row({0.0}));
  expect_same(sum_pool(row({-0.0, -0.0}), {.kernel = {2}}), row({0.0}));
  const D x = row({1, inf, 3, 5, nan, 7, 9, 11});
  expect_same(avg_pool(x, {.kernel = {2}, .stride = {1}}), row({inf, inf, 4, nan, nan, 8, 10}));
  expect_same(avg_pool(row({1e300, 1, 2, 3}), {.kernel = {2}, .stride = {1}}), row({5e299, 1.5, 2.5}));
  expect_same(avg_pool(row({inf, -inf}), {.kernel = {2}}), row({nan}));
}

TEST(Rules, A6_TheJvpIsTheOperatorItselfAndTheVjpNeedsNoValues) {
  const D dx = row({0.1, 0.2, 0.3, 0.7});
  const Sliding s{.kernel = {3}, .stride = {1}};
  expect_same(avg_pool_jvp(row({nan, inf, 1, 2}), dx, s), avg_pool(dx, s));
  const D gy = row({3, 6});
  expect_same(avg_pool_vjp(Dims{4}, gy, s), avg_pool_vjp(row({nan, inf, 1, 2}), gy, s));
  expect_same(avg_pool_vjp(Dims{4}, gy, s), row({1, 3, 3, 2}));
  expect_same(sum_pool_vjp(Dims{4}, gy, s), row({3, 9, 9, 6}));
}

TEST(Rules, A7_AveragesAccumulateWiderThanTheirStorage) {
  const auto ones = [](auto one) { return Tensor<decltype(one)>({1 << 20}, one); };
  EXPECT_EQ(float(global_avg_pool(ones(f16(1.0F)), {.last = 1}).data()[0]), 1.0F);  // f16 sums stop at 2048
  EXPECT_EQ(float(global_avg_pool(ones(bf16(1.0F)), {.last = 1}).data()[0]), 1.0F);
  EXPECT_EQ(float(global_avg_pool(ones(f16(60000.0F)), {.last = 1}).data()[0]), 60000.0F);
  EXPECT_EQ(global_avg_pool(ones(0.1F), {.last = 1}).data()[0], 0.1F);
  EXPECT_EQ(global_avg_pool(ones(0.1), {.last = 1}).data()[0], 0.1);
  EXPECT_EQ(global_avg_pool(ones(3e38F), {.last = 1}).data()[0], 3e38F);  // the sum overflows, the mean does not
  EXPECT_EQ(global_avg_pool(ones(1.7e308), {.last = 1}).data()[0], 1.7e308);
  Tensor<double> tiny({1 << 20}, 0x1p-60);  // 1 + 2^20 crumbs that a plain sum drops
  tiny.data()[0] = 1;
  EXPECT_NEAR(global_avg_pool(tiny, {.last = 1}).data()[0] * 0x1p20, 1 + 0x1p-40, 0x1p-52);
}

TEST(Rules, A7_HalvesAddGradientsInF32) {
  const Tensor<f16> gy({4096}, f16(1.0F));  // every window covers the one cell; f16 alone would stop at 2048
  EXPECT_EQ(float(adaptive_sum_pool_vjp(Dims{1}, gy, {.output = {4096}}).data()[0]), 4096.0F);
  const Tensor<bf16> many({4096}, bf16(1.0F));
  EXPECT_EQ(float(adaptive_sum_pool_vjp(Dims{1}, many, {.output = {4096}}).data()[0]), 4096.0F);
}

TEST(Rules, A7_IntegerAveragesAreExactAndRoundHalfToEven) {
  const auto mean = [](std::vector<std::int32_t> cells) {
    const auto n = static_cast<Index>(cells.size());
    return avg_pool(Tensor<std::int32_t>({n}, std::move(cells)), {.kernel = {n}}).data()[0];
  };
  EXPECT_EQ(mean({0, 1}), 0);
  EXPECT_EQ(mean({1, 2}), 2);
  EXPECT_EQ(mean({-1, -2}), -2);
  EXPECT_EQ(mean({0, -1}), 0);
  EXPECT_EQ(mean({7, 7, 8}), 7);
  EXPECT_EQ(mean({std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::max()}),
            std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(global_avg_pool(Tensor<std::uint8_t>({3}, {255, 255, 254}), {.last = 1}).data()[0], 255);
  EXPECT_EQ(sum_pool(Tensor<std::uint8_t>({2}, {200, 100}), {.kernel = {2}}).data()[0], 255);  // clamped
  EXPECT_EQ(sum_pool(Tensor<std::int8_t>({2}, {-100, -100}), {.kernel = {2}}).data()[0], -128);
}

// ---- smooth maximum ---------------------------------------------------------------------------------------------

TEST(Rules, S1_LogSumExpWithPaddingAsZerosOrAbsent) {
  const D x = row({1, 2});
  const Sliding s{.kernel = {2}, .padding = 1};
  const D zeros = smooth_max_pool(x, s, {.beta = 2});
  EXPECT_DOUBLE_EQ(zeros.data()[0], std::log(1 + std::exp(2.0)) / 2);
  EXPECT_DOUBLE_EQ(zeros.data()[1], std::log(std::exp(4.0) + 1) / 2);
  expect_same(smooth_max_pool(x, s, {.beta = 2, .padding = Padding::ignore}), x);
  // overhang taps do not exist
  const D over = smooth_max_pool(row({1, 2, 3}), {.kernel = {2}, .rounding = Rounding::ceil}, {.beta = 2});
  EXPECT_DOUBLE_EQ(over.data()[1], 3);
}

TEST(Rules, S2_WeightsAreTheSoftmaxOverTheSameTaps) {
  const D x = row({1, 2});
  const Sliding s{.kernel = {2}, .padding = 1};
  const double w0 = std::exp(2.0) / (1 + std::exp(2.0));
  const double w1 = std::exp(4.0) / (1 + std::exp(4.0));
  const D gx = smooth_max_pool_vjp(x, row({10, 100}), s, {.beta = 2});
  EXPECT_DOUBLE_EQ(gx.data()[0], 10 * w0);
  EXPECT_DOUBLE_EQ(gx.data()[1], 100 * w1);
  const D dy = smooth_max_pool_jvp(x, row({3, 5}), s, {.beta = 2});
  EXPECT_DOUBLE_EQ(dy.data()[0], 3 * w0);
  EXPECT_DOUBLE_EQ(dy.data()[1], 5 * w1);
}

TEST(Rules, S3_NeverOverflows) {
  const Sliding s{.kernel = {2}};
  EXPECT_DOUBLE_EQ(smooth_max_pool(row({1e300, 1e300}), s, {.beta = 1}).data()[0], 1e300);
  EXPECT_EQ(smooth_max_pool(row({1.7e308, -1.7e308}), s, {.beta = 1e300}).data()[0], 1.7e308);
  EXPECT_EQ(smooth_max_pool(Tensor<float>({2}, {1000, 999}), s, {.beta = 100}).data()[0], 1000);
  EXPECT_EQ(smooth_max_pool(row({3, 7}), s, {.beta = 1e6}).data()[0], 7);  // tends to the hard maximum
}

TEST(Rules, S4_NegativeBetaIsTheSmoothMinimumAndZeroNaNInfinityAreErrors) {
  const Sliding s{.kernel = {2}};
  const D x = row({3, 7});
  EXPECT_DOUBLE_EQ(smooth_max_pool(x, s, {.beta = -1}).data()[0], 3 - std::log(1 + std::exp(-4.0)));
  for (const double beta : {0.0, -0.0, inf, -inf, nan})
    EXPECT_THROW(smooth_max_pool(x, s, {.beta = beta}), ParameterError) << beta;
}

TEST(Rules, S5_InfinitiesNaNAndEmptyWindows) {
  const Sliding s{.kernel = {3}};
  const D ones = row({1});
  const auto y = [&](const D& x, double beta) { return smooth_max_pool(x, s, {.beta = beta}); };
  const auto w = [&](const D& x, double beta) { return smooth_max_pool_vjp(x, ones, s, {.beta = beta}); };
  expect_same(y(row({-inf, -inf, -inf}), 1), row({-inf}));
  expect_same(w(row({-inf, -inf, -inf}), 1), row({1.0 / 3, 1.0 / 3, 1.0 / 3}));
  expect_same(y(row({inf, 1, inf}), 1), row({inf}));
  expect_same(w(row({inf, 1, inf}), 1), row({0.5, 0, 0.5}));
  expect_same(y(row({-inf, 1, -inf}), -1), row({-inf}));
  expect_same(w(row({-inf, 1, -inf}), -1), row({0.5, 0, 0.5}));
  expect_same(y(row({-inf, 2, -inf}), 1), row({2}));
  expect_same(w(row({-inf, 2, -inf}), 1), row({0, 1, 0}));
  expect_same(y(row({inf, nan, 1}), 1), row({nan}));
  expect_same(w(row({inf, nan, 1}), 1), row({nan, nan, nan}));
  // no tap at all: padding that is ignored
  const Sliding outside{.kernel = {1}, .padding = {{1, 0}}};
  expect_same(smooth_max_pool(row({4}), outside, {.beta = 1, .padding = Padding::ignore}), row({0, 4}));
  expect_same(smooth_max_pool_vjp(row({4}), row({inf, 1}), outside, {.beta = 1, .padding = Padding::ignore}), row({1}));
}

// S6 is measured against 50 digits in accuracy_test.cpp; here one window that a careless shift gets wrong.
TEST(Rules, S6_SmallBetaDoesNotLoseTheValue) {
  const double y = smooth_max_pool(row({1, 1}), {.kernel = {2}}, {.beta = 1e-9}).data()[0];
  EXPECT_DOUBLE_EQ(y, 1 + std::log(2.0) / 1e-9);
}

// ---- Lp ---------------------------------------------------------------------------------------------------------

TEST(Rules, L1_NormOfTheRealTaps) {
  expect_same(lp_pool(row({3, -4}), {.kernel = {2}}, {.p = 2}), row({5}));
  expect_same(lp_pool(row({3, -4}), {.kernel = {2}}, {.p = 1}), row({7}));
  expect_same(lp_pool(row({-2}), {.kernel = {1}, .padding = 1}, {.p = 3}), row({0, 2, 0}));
  const D gx = lp_pool_vjp(row({3, -4}), row({10}), {.kernel = {2}}, {.p = 2});
  EXPECT_DOUBLE_EQ(gx.data()[0], 6);
  EXPECT_DOUBLE_EQ(gx.data()[1], -8);
}

TEST(Rules, L2_PowersNeitherOverflowNorUnderflow) {
  EXPECT_DOUBLE_EQ(lp_pool(row({3e200, -4e200}), {.kernel = {2}}, {.p = 2}).data()[0], 5e200);
  EXPECT_DOUBLE_EQ(lp_pool(row({3e-200, -4e-200}), {.kernel = {2}}, {.p = 2}).data()[0], 5e-200);
}

TEST(Rules, L3_AnAllZeroWindowHasDerivativeZero) {
  expect_same(lp_pool(row({0, -0.0}), {.kernel = {2}}, {.p = 2}), row({0}));
  expect_same(lp_pool_vjp(row({0, 0}), row({7}), {.kernel = {2}}, {.p = 2}), row({0, 0}));
  expect_same(lp_pool_jvp(row({0, 0}), row({7, 8}), {.kernel = {2}}, {.p = 1}), row({0}));
  expect_same(lp_pool_vjp(row({0, 2}), row({7}), {.kernel = {2}}, {.p = 1}), row({0, 7}));
}

TEST(Rules, L4_InfinitiesShareAndNaNPropagates) {
  expect_same(lp_pool(row({inf, 1}), {.kernel = {2}}, {.p = 2}), row({inf}));
  expect_same(lp_pool_vjp(row({-inf, 1}), row({3}), {.kernel = {2}}, {.p = 2}), row({-3, 0}));
  EXPECT_DOUBLE_EQ(lp_pool_vjp(row({inf, -inf}), row({1}), {.kernel = {2}}, {.p = 2}).data()[1], -std::sqrt(0.5));
  expect_same(lp_pool(row({nan, inf}), {.kernel = {2}}, {.p = 2}), row({nan}));
  expect_same(lp_pool_vjp(row({nan, 1}), row({1}), {.kernel = {2}}, {.p = 2}), row({nan, nan}));
}

}  // namespace
}  // namespace cenote::test
