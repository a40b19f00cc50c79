// Rational and Fraction: exactness, reduction, and every overflow of Fraction caught, with Rational as the judge.
#include "cenote/rational.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>

namespace cenote {
namespace {

constexpr Index smallest = std::numeric_limits<Index>::min(), largest = std::numeric_limits<Index>::max();

static_assert(Scalar<Rational> && Field<Rational> && !IntegerScalar<Rational>);
static_assert(Scalar<Fraction> && Field<Fraction> && !IntegerScalar<Fraction>);
static_assert(!Transcendental<Rational> && !Transcendental<Fraction>);
static_assert(!std::constructible_from<Fraction, double> && !std::is_convertible_v<Fraction, double>);
static_assert(std::is_same_v<decltype(Rational() + Rational()), Rational>);  // no expression templates

static_assert(Fraction().numerator() == 0 && Fraction().denominator() == 1);
static_assert(Fraction(6, -4).numerator() == -3 && Fraction(6, -4).denominator() == 2);
static_assert(Fraction(0, -7) == Fraction(0) && Fraction(0, smallest).denominator() == 1);
static_assert(Fraction(1, 2) + Fraction(1, 3) == Fraction(5, 6) && Fraction(1, 2) - Fraction(1, 3) == Fraction(1, 6));
static_assert(Fraction(2, 3) * Fraction(3, 4) == Fraction(1, 2) && Fraction(2, 3) / Fraction(-4, 3) == Fraction(-1, 2));
static_assert(-Fraction(1, 2) < Fraction(1, 3) && Fraction(1, 3) > Fraction(333333333, 1000000000));
static_assert(Fraction(1, 2) <= Fraction(2, 4) && Fraction(1, 2) != Fraction(1, 3));
static_assert(Fraction(smallest, smallest) == Fraction(1) && Fraction(smallest).numerator() == smallest);
static_assert(Fraction(smallest) / Fraction(2) == Fraction(smallest / 2));
static_assert(Fraction(largest, largest - 1) < Fraction(largest - 1, largest - 2));

// What throws at run time does not compile as a constant.
template <auto Expression>
concept Constant = requires { typename std::bool_constant<(Expression(), true)>; };
static_assert(Constant<[] { return Fraction(largest) - Fraction(1); }>);
static_assert(!Constant<[] { return Fraction(largest) + Fraction(1); }>);
static_assert(!Constant<[] { return Fraction(1, largest) * Fraction(1, 2); }>);
static_assert(!Constant<[] { return Fraction(1) / Fraction(0); }>);

TEST(Fraction, OverflowAndDivisionByZeroThrow) {
  EXPECT_THROW(Fraction(largest) + Fraction(1), std::overflow_error);
  EXPECT_THROW(-Fraction(smallest), std::overflow_error);
  EXPECT_THROW(Fraction(1, smallest), std::overflow_error);
  EXPECT_THROW(Fraction{std::numeric_limits<std::uint64_t>::max()}, std::overflow_error);
  EXPECT_THROW(Fraction(1, 0), std::domain_error);
  EXPECT_THROW(Fraction(1) / Fraction(0), std::domain_error);
}

TEST(Fraction, SumsAndMeansAreExact) {
  Total<Fraction> sum;
  for (int i = 1; i <= 4; ++i) sum.add(Fraction(1, i));
  EXPECT_EQ(sum.total(), Fraction(25, 12));
  EXPECT_EQ(sum.mean(-4), Fraction(-25, 48));
}

TEST(Rational, SumsAndMeansAreExact) {
  Total<Rational> sum;
  for (int i = 1; i <= 50; ++i) sum.add(Rational(1, i));
  for (int i = 1; i <= 50; ++i) sum.add(Rational(-1, i));
  sum.add(Rational(1, 3));
  EXPECT_EQ(sum.total(), Rational(1, 3));
  EXPECT_EQ(sum.mean(-2), Rational(-1, 6));
}

TEST(Rational, TakesDoublesExactly) {
  EXPECT_EQ(Rational(0.1) * 0x1p55, Rational(3602879701896397));
  EXPECT_EQ(Rational(std::numeric_limits<double>::denorm_min()) * Rational(0x1p1000) * Rational(0x1p74), Rational(1));
}

Rational exact(const Fraction& x) { return Rational(x.numerator(), x.denominator()); }

// The fraction of an exact number, if it has one.
std::optional<Fraction> fraction(const Rational& x) {
  const auto n = boost::multiprecision::numerator(x), d = boost::multiprecision::denominator(x);
  if (n < smallest || n > largest || d > largest) return {};
  return Fraction(static_cast<Index>(n), static_cast<Index>(d));
}

Index some_integer() {
  const Index x = *rc::gen::arbitrary<Index>() >> *rc::gen::inRange(0, 64);
  return *rc::gen::element(x, x, x, x, smallest, smallest + 1, largest, Index{0}, Index{1}, Index{-1});
}

Fraction some_fraction() {
  const Index n = some_integer(), d = some_integer();
  if (d == 0 || (d == smallest && n % 2 != 0) || (n == smallest && d < 0)) return Fraction(1, 3);
  return Fraction(n, d);
}

template <class Operation>
void agrees(const Fraction& a, const Fraction& b, Operation&& operation) {
  const std::optional<Fraction> expected = fraction(operation(exact(a), exact(b)));
  if (expected) {
    RC_ASSERT(operation(a, b) == *expected);
  } else {
    RC_ASSERT_THROWS_AS(operation(a, b), std::overflow_error);
  }
}

RC_GTEST_PROP(FractionProperty, EveryResultIsExactOrThrows, ()) {
  for (int i = 0; i < 50; ++i) {
    const Fraction a = some_fraction(), b = some_fraction();
    agrees(a, b, [](const auto& x, const auto& y) { return x + y; });
    agrees(a, b, [](const auto& x, const auto& y) { return x - y; });
    agrees(a, b, [](const auto& x, const auto& y) { return x * y; });
    if (b.numerator() != 0) agrees(a, b, [](const auto& x, const auto& y) { return x / y; });
    RC_ASSERT((a < b) == (exact(a) < exact(b)) && (a > b) == (exact(a) > exact(b)));
    RC_ASSERT((a == b) == (exact(a) == exact(b)));
  }
}

}  // namespace
}  // namespace cenote
