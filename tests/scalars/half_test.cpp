// f16 and bf16 against a table of their values that is built without the library: all 65536 patterns, all midpoints.
#include "cenote/half.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "cenote/rational.hpp"
#include "cenote/scalar.hpp"

namespace cenote {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::uint16_t narrow(std::size_t pattern) { return static_cast<std::uint16_t>(pattern); }

// What a format means, written down once more from its definition.
template <class H>
struct Reference;
template <>
struct Reference<f16> {
  static constexpr int exponent_bits = 5, mantissa_bits = 10;
};
template <>
struct Reference<bf16> {
  static constexpr int exponent_bits = 8, mantissa_bits = 7;
};

// The values of the patterns 0, 1, ... up to infinity, which stands at the first power of two that is out of range.
template <class H>
std::vector<double> magnitudes() {
  constexpr int mantissa_bits = Reference<H>::mantissa_bits, exponent_bits = Reference<H>::exponent_bits;
  constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  std::vector<double> values;
  for (int exponent = 0; exponent < (1 << exponent_bits) - 1; ++exponent) {
    for (int mantissa = 0; mantissa < (1 << mantissa_bits); ++mantissa) {
      const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
      values.push_back(std::ldexp(hidden + mantissa, std::max(exponent, 1) - bias - mantissa_bits));
    }
  }
  values.push_back(std::ldexp(1.0, bias + 1));
  return values;
}

// The pattern closest to an exact number, ties to the even pattern.
template <class H>
std::uint16_t nearest(const Rational& exact) {
  static const std::vector<double> values = magnitudes<H>();
  const Rational magnitude = exact < 0 ? Rational(-exact) : exact;
  const std::uint16_t sign = exact < 0 ? 0x8000 : 0;
  std::size_t low = 0, high = values.size() - 1;
  if (magnitude >= Rational(values[high])) return narrow(sign | high);
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (magnitude >= Rational(values[middle]) ? low : high) = middle;
  }
  const Rational below = magnitude - Rational(values[low]), above = Rational(values[high]) - magnitude;
  const std::size_t chosen = below < above || (below == above && low % 2 == 0) ? low : high;
  return narrow(sign | chosen);
}

template <class H>
class Halves : public testing::Test {};
using Formats = testing::Types<f16, bf16>;
TYPED_TEST_SUITE(Halves, Formats, );

TYPED_TEST(Halves, AreTwoBytesOfPlainStorage) {
  EXPECT_EQ(sizeof(TypeParam), 2u);
  EXPECT_TRUE(std::is_trivially_copyable_v<TypeParam>);
  EXPECT_TRUE(std::is_trivially_default_constructible_v<TypeParam>);
  EXPECT_TRUE(std::is_standard_layout_v<TypeParam>);
  EXPECT_TRUE(Transcendental<TypeParam>);
  EXPECT_FALSE((std::is_convertible_v<float, TypeParam>));
  EXPECT_EQ(TypeParam{}.bits, 0);
}

TYPED_TEST(Halves, EveryPatternConvertsExactlyToFloatAndDouble) {
  const std::vector<double> values = magnitudes<TypeParam>();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    for (const unsigned sign : {0u, 0x8000u}) {
      const TypeParam x = TypeParam::from_bits(narrow(sign | i));
      const double expected = sign == 0 ? values[i] : -values[i];
      ASSERT_EQ(static_cast<double>(static_cast<float>(x)), expected) << i;
      ASSERT_EQ(static_cast<double>(x), expected) << i;
      ASSERT_EQ(std::signbit(static_cast<float>(x)), sign != 0) << i;
    }
  }
}

TYPED_TEST(Halves, EveryPatternSurvivesTheWayThroughFloatAndDouble) {
  for (std::size_t i = 0; i < 65536; ++i) {
    const TypeParam x = TypeParam::from_bits(narrow(i));
    if (is_nan(x)) continue;
    ASSERT_EQ(TypeParam(static_cast<float>(x)).bits, i);
    ASSERT_EQ(TypeParam(static_cast<double>(x)).bits, i);
  }
}

TYPED_TEST(Halves, EveryNaNStaysAQuietNaN) {
  const auto quiet = static_cast<unsigned>(1 << (Reference<TypeParam>::mantissa_bits - 1));
  const std::size_t infinite = magnitudes<TypeParam>().size() - 1;
  for (std::size_t i = 0; i < 65536; ++i) {
    const TypeParam x = TypeParam::from_bits(narrow(i));
    ASSERT_EQ(is_nan(x), (i & 0x7fff) > infinite);
    if (!is_nan(x)) continue;
    ASSERT_TRUE(std::isnan(static_cast<float>(x)));
    ASSERT_TRUE(std::isnan(static_cast<double>(x)));
    const TypeParam back(static_cast<float>(x));
    ASSERT_TRUE(is_nan(back));
    ASSERT_EQ(back.bits, i | quiet);  // sign and payload stay
  }
  // A payload below the mantissa may not vanish into infinity.
  EXPECT_TRUE(is_nan(TypeParam(std::bit_cast<double>(0x7ff0000000000001u))));
  EXPECT_TRUE(is_nan(TypeParam(std::bit_cast<float>(0xff800001u))));
}

TYPED_TEST(Halves, EveryMidpointRoundsToEvenAndItsNeighboursToTheirOwnSide) {
  const std::vector<double> values = magnitudes<TypeParam>();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const double middle = (values[i] + values[i + 1]) / 2;
    ASSERT_LT(values[i], middle);
    ASSERT_LT(middle, values[i + 1]);
    const std::size_t even = i % 2 == 0 ? i : i + 1;
    for (const double sign : {1.0, -1.0}) {
      const std::size_t mark = sign > 0 ? 0 : 0x8000;
      ASSERT_EQ(TypeParam(sign * middle).bits, even | mark);
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, infinity)).bits, (i + 1) | mark);
      ASSERT_EQ(TypeParam(sign * std::nextafter(middle, 0.0)).bits, i | mark);
      const float single = static_cast<float>(sign * middle);
      ASSERT_EQ(static_cast<double>(single), sign * middle);
      ASSERT_EQ(TypeParam(single).bits, even | mark);
      ASSERT_EQ(TypeParam(std::nextafter(single, sign * std::numeric_limits<float>::infinity())).bits, (i + 1) | mark);
      ASSERT_EQ(TypeParam(std::nextafter(single, 0.0f)).bits, i | mark);
    }
  }
}

TYPED_TEST(Halves, OverflowGoesToInfinityAndUnderflowToSignedZero) {
  const TypeParam largest = std::numeric_limits<TypeParam>::infinity();
  for (const double x : {std::numeric_limits<double>::max(), 1e39, infinity}) {
    EXPECT_EQ(TypeParam(x), largest);
    EXPECT_EQ(TypeParam(-x), -largest);
    EXPECT_TRUE(is_infinite(TypeParam(x)) && is_infinite(TypeParam(-x)));
  }
  for (const double x : {0.0, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::min(), 1e-60}) {
    EXPECT_EQ(TypeParam(x).bits, 0);
    EXPECT_EQ(TypeParam(-x).bits, 0x8000);
  }
  EXPECT_FALSE(is_infinite(std::numeric_limits<TypeParam>::max()));
  EXPECT_FALSE(is_infinite(std::numeric_limits<TypeParam>::quiet_NaN()));
}

TEST(Half, DoubleIsRoundedOnceNotThroughFloat) {
  const double above_tie_f16 = 1 + 0x1p-11 + 0x1p-40, above_tie_bf16 = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(f16(static_cast<float>(above_tie_f16)).bits, f16(1.0).bits);  // what two roundings give
  EXPECT_EQ(f16(above_tie_f16).bits, f16(1.0).bits + 1);
  EXPECT_EQ(bf16(above_tie_bf16).bits, bf16(1.0).bits + 1);
}

TEST(Half, IntegerIsRoundedOnceNotThroughDouble) {
  const Index tie = (Index{1} << 62) + (Index{1} << 54);
  EXPECT_EQ(bf16(tie).bits, bf16(0x1p62).bits);
  EXPECT_EQ(bf16(tie + 1).bits, bf16(0x1p62).bits + 1);
  EXPECT_EQ(bf16(-tie - 1).bits, (-bf16(0x1p62)).bits + 1);
  EXPECT_EQ(static_cast<double>(bf16(std::numeric_limits<Index>::min())), -0x1p63);
  EXPECT_EQ(static_cast<double>(bf16(std::numeric_limits<std::uint64_t>::max())), 0x1p64);
  EXPECT_EQ(static_cast<double>(f16(Index{65519})), 65504.0);
  EXPECT_TRUE(is_infinite(f16(Index{65520})));
  EXPECT_EQ(f16(0).bits, 0);
  EXPECT_EQ(static_cast<double>(f16(-3)), -3.0);
}

template <class H>
void random_conversions_and_arithmetic() {
  const auto number = [] {
    H x = H::from_bits(*rc::gen::arbitrary<std::uint16_t>());
    return is_nan(x) || is_infinite(x) ? H(1) : x;
  };
  const H a = number(), b = number();
  const Rational x(static_cast<double>(a)), y(static_cast<double>(b));
  const auto expect = [](H got, const Rational& exact) {
    if (exact == 0) return RC_ASSERT(static_cast<double>(got) == 0);
    RC_ASSERT(got.bits == nearest<H>(exact));
  };
  expect(a + b, x + y);
  expect(a - b, x - y);
  expect(a * b, x * y);
  if (y != 0) expect(a / b, x / y);
  expect(-a, -x);
  expect(abs(a), x < 0 ? Rational(-x) : x);
  RC_ASSERT((a < b) == (x < y) && (a > b) == (x > y) && (a == b) == (x == y));
  RC_ASSERT((a <= b) == (x <= y) && (a >= b) == (x >= y));

  const Index integer = *rc::gen::arbitrary<Index>() >> *rc::gen::inRange(0, 63);
  expect(H(integer), Rational(integer));
  const auto pattern = *rc::gen::arbitrary<std::uint64_t>();  // exponents that a half can have
  const double real = std::bit_cast<double>((pattern & 0x800fffffffffffffu) | (0x3ff0000000000000u)) *
                      std::ldexp(1.0, *rc::gen::inRange(-140, 129));
  RC_ASSERT(H(real).bits == nearest<H>(Rational(real)) || static_cast<double>(H(real)) == 0);
}

RC_GTEST_PROP(HalfProperty, F16RoundsEveryOperationCorrectly, ()) {
  for (int i = 0; i < 20; ++i) random_conversions_and_arithmetic<f16>();
}
RC_GTEST_PROP(HalfProperty, Bf16RoundsEveryOperationCorrectly, ()) {
  for (int i = 0; i < 20; ++i) random_conversions_and_arithmetic<bf16>();
}

// Subnormals of bf16 are subnormals of float too, the one place where float has few spare bits.
RC_GTEST_PROP(HalfProperty, Bf16ProductsAndQuotientsBelowTheNormalRangeAreRoundedOnce, ()) {
  for (int i = 0; i < 50; ++i) {
    const bf16 a = bf16::from_bits(*rc::gen::inRange<std::uint16_t>(0x1e00, 0x2200));
    const bf16 b = bf16::from_bits(*rc::gen::inRange<std::uint16_t>(0x1e00, 0x2200));
    const bf16 c = bf16::from_bits(*rc::gen::inRange<std::uint16_t>(0x0001, 0x0400));
    const bf16 d = bf16::from_bits(*rc::gen::inRange<std::uint16_t>(0x3f00, 0x4400));
    const auto exact = [](bf16 x) { return Rational(static_cast<double>(x)); };
    RC_ASSERT((a * b).bits == nearest<bf16>(exact(a) * exact(b)));
    RC_ASSERT((c / d).bits == nearest<bf16>(exact(c) / exact(d)));
  }
}

TYPED_TEST(Halves, InfinityAndNaNCalculateLikeFloat) {
  const TypeParam big = std::numeric_limits<TypeParam>::infinity(), nan = std::numeric_limits<TypeParam>::quiet_NaN();
  EXPECT_TRUE(is_nan(big - big));
  EXPECT_TRUE(is_nan(nan + big));
  EXPECT_FALSE(nan == nan);
  EXPECT_FALSE(nan < big || nan > big || nan <= big || nan >= big);
  EXPECT_TRUE(big > std::numeric_limits<TypeParam>::max());
  EXPECT_TRUE(TypeParam(0.0) == TypeParam(-0.0));
}

TYPED_TEST(Halves, FunctionsAreEvaluatedInDoubleAndRoundedOnce) {
  for (std::size_t i = 0; i < 65536; i += 7) {
    const TypeParam x = TypeParam::from_bits(narrow(i));
    if (is_nan(x)) continue;
    const double wide = static_cast<double>(x);
    ASSERT_EQ(exp(x).bits, TypeParam(std::exp(wide)).bits);
    ASSERT_EQ(log(abs(x)).bits, TypeParam(std::log(std::abs(wide))).bits);
    ASSERT_EQ(pow(abs(x), 1.5).bits, TypeParam(std::pow(std::abs(wide), 1.5)).bits);
    ASSERT_EQ(static_cast<double>(abs(x)), std::abs(wide));
  }
}

TYPED_TEST(Halves, LimitsDescribeTheTable) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<double> values = magnitudes<TypeParam>();
  const int mantissa_bits = Reference<TypeParam>::mantissa_bits;
  EXPECT_TRUE(Limits::is_specialized && Limits::has_infinity && Limits::has_quiet_NaN && !Limits::is_integer);
  EXPECT_EQ(Limits::digits, mantissa_bits + 1);
  EXPECT_EQ(static_cast<double>(Limits::max()), values[values.size() - 2]);
  EXPECT_EQ(static_cast<double>(Limits::lowest()), -values[values.size() - 2]);
  EXPECT_EQ(static_cast<double>(Limits::min()), values[std::size_t{1} << mantissa_bits]);
  EXPECT_EQ(static_cast<double>(Limits::min()), std::ldexp(1.0, Limits::min_exponent - 1));
  EXPECT_EQ(values.back(), std::ldexp(1.0, Limits::max_exponent));
  EXPECT_EQ(static_cast<double>(Limits::denorm_min()), values[1]);
  EXPECT_EQ(static_cast<double>(Limits::epsilon()), std::ldexp(1.0, -mantissa_bits));
  EXPECT_EQ((TypeParam(1) + Limits::epsilon()).bits, TypeParam(1).bits + 1);
  EXPECT_EQ(static_cast<double>(Limits::infinity()), infinity);
  EXPECT_TRUE(is_nan(Limits::quiet_NaN()));
  EXPECT_EQ(Limits::max_exponent10, static_cast<int>(std::floor(std::log10(static_cast<double>(Limits::max())))));
  EXPECT_EQ(Limits::min_exponent10, static_cast<int>(std::ceil(std::log10(static_cast<double>(Limits::min())))));
  EXPECT_EQ(Limits::digits10, static_cast<int>(std::floor(mantissa_bits * std::log10(2.0))));
  EXPECT_EQ(Limits::max_digits10, static_cast<int>(std::ceil(1 + (mantissa_bits + 1) * std::log10(2.0))));
}

// In constant expressions too.
static_assert(f16(1.0).bits == 0x3c00 && bf16(1.0f).bits == 0x3f80 && f16(Index{-2}).bits == 0xc000);
static_assert(static_cast<float>(f16::from_bits(1)) == 0x1p-24f && static_cast<float>(bf16::from_bits(1)) == 0x1p-133f);
static_assert(f16(1) + f16(2) == f16(3) && f16(3) / f16(2) > f16(1) && -bf16(1) < bf16(0) && abs(-bf16(1)) == bf16(1));
static_assert(std::numeric_limits<f16>::max() == f16(65504) && is_infinite(std::numeric_limits<bf16>::infinity()));
static_assert(!std::is_same_v<f16, bf16> && !std::is_convertible_v<f16, bf16>);

}  // namespace
}  // namespace cenote
