// How taps are added (A5, A7): every Total<T> of the machine scalars against exact sums.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cenote/rational.hpp"
#include "cenote/scalar.hpp"

namespace cenote {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest = std::numeric_limits<double>::max();
constexpr Index taps = Index{1} << 20;
using boost::multiprecision::cpp_int;

template <class T>
Total<T> sum_of(const std::vector<T>& x) {
  Total<T> sum;
  for (const T& tap : x) sum.add(tap);
  return sum;
}

// The exact sum of up to 2^63 doubles and of their magnitudes: one integer per exponent, put together at the end.
class ExactSum {
 public:
  void add(double x) {
    int exponent = 0;
    const auto significand = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
    const auto place = static_cast<std::size_t>(exponent + offset);
    sums_[place] += significand;
    magnitudes_[place] += significand < 0 ? -significand : significand;
  }
  [[nodiscard]] Rational sum() const { return together(sums_); }
  [[nodiscard]] Rational magnitudes() const { return together(magnitudes_); }

 private:
  __extension__ using Wide = __int128;
  using Places = std::vector<Wide>;
  static constexpr int offset = 1080, places = 2110;

  static Rational together(const Places& all) {
    cpp_int sum = 0;
    for (std::size_t place = 0; place < all.size(); ++place)
      if (all[place] != 0) sum += cpp_int(all[place]) * (cpp_int(1) << place);
    return Rational(sum, cpp_int(1) << (offset + 53));
  }

  Places sums_ = Places(places), magnitudes_ = Places(places);
};

template <class T>
double ulp(double magnitude) {
  const int least = std::numeric_limits<T>::min_exponent - 1;
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  return std::ldexp(1.0, exponent + 1 - std::numeric_limits<T>::digits);
}

// |mean - exact| <= 4 ulp of the mean of |x|.
template <class T>
testing::AssertionResult within_A7(const std::vector<T>& x, Index n) {
  ExactSum exact;
  for (const T& tap : x) exact.add(static_cast<double>(tap));
  const double mean = static_cast<double>(sum_of(x).mean(n));
  const Rational error = abs(Rational(mean) - exact.sum() / Rational(n));
  const Rational size = exact.magnitudes() / Rational(n < 0 ? -n : n);
  const Rational allowed = Rational(4) * Rational(ulp<T>(static_cast<double>(size)));
  if (error <= allowed) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "mean " << mean << " is off by " << static_cast<double>(error) << ", allowed "
                                     << static_cast<double>(allowed);
}

template <class T>
class Sums : public testing::Test {};
using Reals = testing::Types<double, float, f16, bf16>;
TYPED_TEST_SUITE(Sums, Reals, );

TYPED_TEST(Sums, A5_StartAtPositiveZero) {
  Total<TypeParam> sum;
  EXPECT_FALSE(std::signbit(static_cast<double>(sum.total())));
  sum.add(TypeParam(-0.0));
  sum.add(TypeParam(-0.0));
  EXPECT_FALSE(std::signbit(static_cast<double>(sum.total())));
  EXPECT_FALSE(std::signbit(static_cast<double>(sum.mean(2))));
}

TYPED_TEST(Sums, A5_InfinitiesAndNaNTakeTheirCourse) {
  const TypeParam big = std::numeric_limits<TypeParam>::infinity(), nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const TypeParam one(Index{1});
  for (const TypeParam sign : {one, TypeParam(Index{-1})}) {
    EXPECT_EQ(sum_of<TypeParam>({one, sign * big, one, one}).total(), sign * big);
    EXPECT_EQ(sum_of<TypeParam>({sign * big, sign * big, -one}).mean(3), sign * big);
    EXPECT_EQ(sum_of<TypeParam>({sign * big}).mean(-3), -sign * big);
  }
  EXPECT_TRUE(is_nan(sum_of<TypeParam>({big, -big}).total()));
  EXPECT_TRUE(is_nan(sum_of<TypeParam>({big, one, -big, one}).mean(4)));
  EXPECT_TRUE(is_nan(sum_of<TypeParam>({one, nan, one}).total()));
  EXPECT_TRUE(is_nan(sum_of<TypeParam>({nan, big, one}).mean(3)));
}

TYPED_TEST(Sums, A7_TheMeanOfTheLargestNumbersDoesNotOverflow) {
  const TypeParam big = std::numeric_limits<TypeParam>::max();
  Total<TypeParam> up, down;
  for (Index i = 0; i < 1000; ++i) {
    up.add(big);
    down.add(-big);
  }
  EXPECT_EQ(up.mean(1000), big);
  EXPECT_EQ(down.mean(1000), -big);
  EXPECT_EQ(up.mean(-1000), -big);
}

TYPED_TEST(Sums, A7_AMillionEqualTapsHaveThatMean) {
  for (const double value : {0.1, 1.0, 3.0e-5, 1000.0}) {
    const auto x = static_cast<TypeParam>(value);
    Total<TypeParam> sum;
    for (Index i = 0; i < taps; ++i) sum.add(x);
    EXPECT_EQ(sum.mean(taps), x) << value;
  }
}

template <class T>
void random_million(double spread) {
  std::mt19937_64 random(7);
  std::vector<T> x;
  for (Index i = 0; i < taps; ++i) {
    const double uniform = std::ldexp(static_cast<double>(random() >> 11), -52) - 1;
    x.push_back(T(uniform * std::exp2(spread * std::ldexp(static_cast<double>(random() >> 11), -53))));
  }
  EXPECT_TRUE(within_A7(x, taps));
  for (T& tap : x) tap = abs(tap);
  EXPECT_TRUE(within_A7(x, taps));
}

TYPED_TEST(Sums, A7_AMillionRandomTapsStayWithin4Ulp) {
  random_million<TypeParam>(0);
  random_million<TypeParam>(10);
}

TYPED_TEST(Sums, A7_AMillionSmallTapsAreNotSwallowedByALargeOne) {
  const TypeParam small = std::numeric_limits<TypeParam>::epsilon() / static_cast<TypeParam>(4);
  std::vector<TypeParam> x(taps, small);
  x.front() = static_cast<TypeParam>(1);
  EXPECT_TRUE(within_A7(x, taps));
}

TEST(SumF64, A7_AMillionTapsOfAllSizesStayWithin4Ulp) { random_million<double>(900); }

TEST(SumF64, A7_CancellationKeepsWhatASimpleSumLoses) {
  std::vector<double> x;
  for (int i = 0; i < 1000; ++i) x.insert(x.end(), {1e16, 1.0, -1e16});
  EXPECT_EQ(sum_of(x).total(), 1000.0);
  EXPECT_EQ(sum_of(x).mean(1000), 1.0);
  EXPECT_TRUE(within_A7(x, 3000));
  EXPECT_EQ(sum_of<double>({1, 1e100, 1, -1e100}).total(), 2.0);
}

TEST(SumF64, A7_ATotalOutOfRangeIsInfiniteAndOneInRangeIsNot) {
  EXPECT_EQ(sum_of<double>({largest, largest}).total(), infinity);
  EXPECT_EQ(sum_of<double>({-largest, -largest}).total(), -infinity);
  EXPECT_EQ(sum_of<double>({largest, largest, -largest}).total(), largest);
  EXPECT_EQ(sum_of<double>({largest, largest, -largest, -largest}).total(), 0.0);
  EXPECT_EQ(sum_of<double>({largest, largest}).mean(2), largest);
  EXPECT_EQ(sum_of<double>({largest, 0x1p970, -largest}).total(), 0x1p970);
  EXPECT_EQ(sum_of<double>({largest, infinity}).total(), infinity);
  EXPECT_TRUE(std::isnan(sum_of<double>({largest, largest, infinity, -infinity}).total()));
}

TEST(SumF64, A7_SubnormalsAddExactly) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(sum_of(std::vector<double>(1000, tiny)).total(), 1000 * tiny);
  EXPECT_EQ(sum_of(std::vector<double>(1000, tiny)).mean(1000), tiny);
  EXPECT_EQ(sum_of<double>({1.0, tiny, -1.0}).total(), tiny);
}

double adversarial_double() {
  const auto bits = *rc::gen::arbitrary<std::uint64_t>() * 0x9e3779b97f4a7c15u;  // rapidcheck prefers small numbers
  const double x = std::bit_cast<double>(bits);
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return *rc::gen::element(1.0, -1.0, 1e16, -1e16, largest, -largest, largest / 4, 0x1p-1074, 0x1p-1022, -0x1p53);
    case 1: return std::bit_cast<double>((bits & 0x800fffffffffffffu) | 0x3ff0000000000000u);
    case 2: return std::bit_cast<double>((bits & 0x801fffffffffffffu) | 0x7fc0000000000000u);  // close to overflow
    default: return std::isfinite(x) ? x : 1.0;
  }
}

RC_GTEST_PROP(SumProperty, A7_AnyF64SumWithCancellationStaysWithin4Ulp, ()) {
  std::vector<double> x;
  const int pairs = *rc::gen::inRange(1, 60);
  for (int i = 0; i < pairs; ++i) {
    x.push_back(adversarial_double());
    if (*rc::gen::inRange(0, 3) != 0) x.push_back(-x[static_cast<std::size_t>(*rc::gen::inRange(0, i + 1))]);
  }
  RC_ASSERT(within_A7(x, static_cast<Index>(x.size())));
  RC_ASSERT(within_A7(x, -static_cast<Index>(x.size())));
}

RC_GTEST_PROP(SumProperty, A7_HalvesRoundTheExactMeanOnce, ()) {
  std::vector<f16> x;
  Rational exact = 0;
  const int count = *rc::gen::inRange(1, 50);
  for (int i = 0; i < count; ++i) {
    f16 tap = f16::from_bits(*rc::gen::arbitrary<std::uint16_t>());
    if (is_nan(tap) || is_infinite(tap)) tap = f16(1);
    x.push_back(tap);
    exact += Rational(static_cast<double>(tap));
  }
  // f16 sums of a few taps are exact in binary64, so one division and one rounding remain.
  const double mean = static_cast<double>(exact) / count;
  RC_ASSERT(sum_of(x).mean(count).bits == f16(mean).bits);
  RC_ASSERT(sum_of(x).total().bits == f16(static_cast<double>(exact)).bits);
}

// ---- integers -----------------------------------------------------------------------------------------------------

template <class T>
class IntegerSums : public testing::Test {};
using Integers = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                                std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerSums, Integers, );

// The exact quotient, half to even, then clamped to the type.
template <class T>
T expected_mean(const cpp_int& sum, Index n) {
  const cpp_int twice = 2 * sum * (n < 0 ? -1 : 1), divisor = abs(cpp_int(n));
  cpp_int floor = (twice + divisor) / (2 * divisor);
  if ((twice + divisor) % (2 * divisor) < 0) --floor;                     // floor(sum/n + 1/2) ...
  if ((twice + divisor) % (2 * divisor) == 0 && floor % 2 != 0) --floor;  // ... and ties to even
  return static_cast<T>(
      std::min(std::max(floor, cpp_int(std::numeric_limits<T>::min())), cpp_int(std::numeric_limits<T>::max())));
}

TYPED_TEST(IntegerSums, A7_TheMeanOfTheExtremesIsExact) {
  for (const TypeParam x : {std::numeric_limits<TypeParam>::min(), std::numeric_limits<TypeParam>::max()}) {
    Total<TypeParam> sum;
    for (Index i = 0; i < taps; ++i) sum.add(x);
    EXPECT_EQ(sum.mean(taps), x);
    EXPECT_EQ(sum.mean(-taps), expected_mean<TypeParam>(cpp_int(x) * taps, -taps));
    EXPECT_EQ(sum.total(), x);  // out of range, so clamped
  }
}

TYPED_TEST(IntegerSums, A7_TheMeanRoundsHalfToEven) {
  for (int total = 0; total < 100; ++total) {
    for (const Index n : {2, 3, 4, 7, 10, -2, -3, -4, -10}) {
      Total<TypeParam> sum;
      sum.add(static_cast<TypeParam>(total));
      EXPECT_EQ(sum.mean(n), expected_mean<TypeParam>(cpp_int(total), n)) << total << " / " << n;
    }
  }
}

TYPED_TEST(IntegerSums, A7_AnySumMeetsAnyDivisor) {
  std::mt19937_64 random(11);
  constexpr Index smallest = std::numeric_limits<Index>::min();
  for (int round = 0; round < 2000; ++round) {
    Total<TypeParam> sum;
    cpp_int exact = 0;
    const auto count = random() % 8;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto x = static_cast<TypeParam>(random() >> (random() % 64));
      sum.add(x);
      exact += x;
    }
    const auto drawn = static_cast<Index>(random()) >> (random() % 64);
    for (const Index n : {drawn == 0 ? Index{1} : drawn, static_cast<Index>(count) + 1, smallest, smallest + 1}) {
      ASSERT_EQ(sum.mean(n), expected_mean<TypeParam>(exact, n)) << exact << " / " << n;
    }
  }
}

TEST(IntegerSum, A7_HalfToEvenOnBothSidesOfZero) {
  const auto mean = [](std::int8_t total, Index n) { return static_cast<int>(sum_of<std::int8_t>({total}).mean(n)); };
  EXPECT_EQ(mean(1, 2), 0);
  EXPECT_EQ(mean(3, 2), 2);
  EXPECT_EQ(mean(5, 2), 2);
  EXPECT_EQ(mean(-1, 2), 0);
  EXPECT_EQ(mean(-3, 2), -2);
  EXPECT_EQ(mean(5, -2), -2);
  EXPECT_EQ(mean(-128, -1), 127);  // 128 is out of range, so clamped
}

// In constant expressions too.
constexpr double constant_mean() {
  CompensatedSum sum;
  for (const double x : {largest, largest, 1.0}) sum.add(x);
  return sum.mean(2);
}
static_assert(constant_mean() == largest);

}  // namespace
}  // namespace cenote
