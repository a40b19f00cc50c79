// Dual numbers: the rules of differentiation, exactly where the scalar is exact, and the conventions at the corners.
#include "cenote/dual.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cenote/rational.hpp"

namespace cenote {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

using D = Dual<double>;
using DD = Dual<Dual<double>>;
using Exact = Dual<Fraction>;

constexpr bool same(const Exact& a, const Exact& b) { return a.value == b.value && a.tangent == b.tangent; }

static_assert(Field<D> && Field<DD> && Field<Exact> && Field<Dual<Rational>> && Field<Dual<f16>>);
static_assert(Transcendental<D> && Transcendental<DD> && Transcendental<Dual<float>> && Transcendental<Dual<bf16>>);
static_assert(!Transcendental<Exact> && !Transcendental<Dual<Rational>> && !Transcendental<Dual<Exact>>);
static_assert(std::constructible_from<D, double> && !std::constructible_from<Exact, double>);
static_assert(carries_tangent<D> && carries_tangent<DD> && !carries_tangent<double> && !set_valued<D>);
static_assert(std::same_as<Wide<D>, D> && std::same_as<Gradient<DD>, DD>);

// The product and the quotient rule, in constant expressions.
constexpr Exact x(Fraction(3, 2), Fraction(5)), y(Fraction(-2), Fraction(1, 3));
static_assert(same(x + y, {Fraction(-1, 2), Fraction(16, 3)}) && same(x - y, {Fraction(7, 2), Fraction(14, 3)}));
static_assert(same(-x, {Fraction(-3, 2), Fraction(-5)}));
static_assert(same(x * y, {Fraction(-3), Fraction(-10) + Fraction(1, 2)}));
static_assert(same(x / y * y, x) && same(Exact(1) / x, {Fraction(2, 3), Fraction(-20, 9)}));
static_assert(same(Exact(Index{7}), {Fraction(7), Fraction(0)}) && same(Exact(Fraction(7)), Exact(7)));
static_assert(x > y && y < x && x == Exact(Fraction(3, 2), Fraction(9)));

// Nested duals differentiate twice: (x^3)' = 3x^2, (x^3)'' = 6x; (1/x)'' = 2/x^3.
constexpr Dual<Exact> twice(Exact(Fraction(5), Fraction(1)), Exact(Fraction(1), Fraction(0)));
static_assert((twice * twice * twice).tangent.value == Fraction(75));
static_assert((twice * twice * twice).tangent.tangent == Fraction(30));
static_assert((Dual<Exact>(1) / twice).tangent.tangent == Fraction(2, 125));

RC_GTEST_PROP(DualProperty, QuotientUndoesProductExactly, ()) {
  const auto number = [] { return Rational(*rc::gen::arbitrary<int>()) / Rational(*rc::gen::nonZero<int>()); };
  const Dual<Rational> a(number(), number()), b(Rational(*rc::gen::nonZero<int>()), number());
  const Dual<Rational> back = a * b / b;
  RC_ASSERT(back.value == a.value && back.tangent == a.tangent);
  const Dual<Rational> again = (a + b) * (a - b) - (a * a - b * b);
  RC_ASSERT(again.value == 0 && again.tangent == 0);
}

TEST(Dual, ExpAndLogFollowTheChainRule) {
  const D a(0.7, 3);
  EXPECT_EQ(exp(a).value, std::exp(0.7));
  EXPECT_EQ(exp(a).tangent, std::exp(0.7) * 3);
  EXPECT_EQ(log(a).value, std::log(0.7));
  EXPECT_EQ(log(a).tangent, 3 / 0.7);
  const DD b(D(0.7, 1), D(1, 0));
  EXPECT_EQ(exp(b).tangent.tangent, std::exp(0.7));
  EXPECT_DOUBLE_EQ(log(b).tangent.tangent, -1 / (0.7 * 0.7));
}

TEST(Dual, AbsHasDerivativeZeroAtZero) {
  EXPECT_EQ(abs(D(-2, 3)).tangent, -3);
  EXPECT_EQ(abs(D(2, 3)).tangent, 3);
  for (const double zero : {0.0, -0.0}) {
    EXPECT_EQ(abs(D(zero, 3)).value, 0);
    EXPECT_EQ(abs(D(zero, infinity)).tangent, 0);
  }
  EXPECT_TRUE(std::isnan(abs(D(std::nan(""), 3)).value));
  EXPECT_TRUE(std::isnan(abs(D(std::nan(""), 3)).tangent));
  const DD zero(D(0, 1), D(1, 0));
  EXPECT_EQ(abs(zero).tangent.value, 0);
  EXPECT_EQ(abs(zero).value.tangent, 0);
  EXPECT_EQ(abs(Exact(Fraction(-1, 2), Fraction(3))).tangent, Fraction(-3));
}

TEST(Dual, PowFollowsThePowerRule) {
  EXPECT_EQ(pow(D(3, 2), 2).value, 9);
  EXPECT_EQ(pow(D(3, 2), 2).tangent, 12);
  EXPECT_EQ(pow(D(4, 1), 0.5).tangent, 0.25);
  EXPECT_EQ(pow(D(4, 1), 0).tangent, 0);
  EXPECT_EQ(pow(DD(D(3, 1), D(1, 0)), 3).tangent.tangent, 18);
}

TEST(Dual, PowOneIsTheIdentityBitForBit) {
  const D a = pow(D(0.1, 0.3), 1);
  EXPECT_EQ(a.value, 0.1);
  EXPECT_EQ(a.tangent, 0.3);
  EXPECT_EQ(pow(D(0, infinity), 1).tangent, infinity);
}

TEST(Dual, PowAtZeroHasNoNaN) {
  for (const double p : {1.5, 2.0, 3.0}) {
    EXPECT_EQ(pow(D(0, 5), p).value, 0);
    EXPECT_EQ(pow(D(0, 5), p).tangent, 0);
    EXPECT_EQ(pow(D(0, infinity), p).tangent, 0);
  }
  EXPECT_EQ(pow(D(0, 0), 0.5).tangent, 0);
  EXPECT_EQ(pow(D(0, 1), 0.5).tangent, infinity);
  EXPECT_EQ(pow(D(0, 1), 0).tangent, 0);
}

TEST(Dual, PowAtZeroKeepsTheSecondDerivative) {
  const DD zero(D(0, 1), D(1, 0));
  EXPECT_EQ(pow(zero, 2).tangent.value, 0);
  EXPECT_EQ(pow(zero, 2).tangent.tangent, 2);
  EXPECT_EQ(pow(zero, 3).tangent.tangent, 0);
}

// Against difference quotients, at a scalar where they are accurate to many digits.
RC_GTEST_PROP(DualProperty, TangentsAgreeWithDifferenceQuotients, ()) {
  const double at = *rc::gen::inRange(1, 4000) / 1000.0;
  const auto f = [](const auto& v) {
    using T = std::remove_cvref_t<decltype(v)>;
    return log(exp(v) + pow(v, 1.7)) * abs(T(2.0) - v) / (v + T(1.0));
  };
  if (std::abs(at - 2) < 0.01) return;
  const long double step = 1e-6L;
  const long double slope = (f(at + step) - f(at - step)) / (2 * step);
  const double tangent = f(D(at, 1)).tangent;
  RC_ASSERT(std::abs(tangent - static_cast<double>(slope)) < 1e-9 * (1 + std::abs(tangent)));
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

RC_GTEST_PROP(DualProperty, A6_SumsAndMeansOfDualsAreThoseOfTheirPartsBitForBit, ()) {
  Total<D> both;
  Total<double> values, tangents;
  const auto inputs = *rc::gen::arbitrary<std::vector<std::pair<double, double>>>();
  for (const auto& [value, tangent] : inputs) {
    both.add(D(value, tangent * 1e300));
    values.add(value);
    tangents.add(tangent * 1e300);
  }
  const Index n = *rc::gen::nonZero<Index>();
  RC_ASSERT(same_bits(both.total().value, values.total()) && same_bits(both.total().tangent, tangents.total()));
  RC_ASSERT(same_bits(both.mean(n).value, values.mean(n)) && same_bits(both.mean(n).tangent, tangents.mean(n)));
}

TEST(Dual, A5_AnInfiniteValueLeavesTheTangentAlone) {
  Total<D> sum;
  sum.add(D(infinity, 1));
  sum.add(D(1, 2));
  EXPECT_EQ(sum.mean(2).value, infinity);
  EXPECT_EQ(sum.mean(2).tangent, 1.5);
}

TEST(Dual, M8_DividingAGradientKeepsValueAndTangentApart) {
  const D weighed = weigh(Over{4}, D(infinity, 2));
  EXPECT_EQ(weighed.value, infinity);
  EXPECT_EQ(weighed.tangent, 0.5);
  EXPECT_EQ(weigh(One{}, D(infinity, 2)).tangent, 2);
}

TEST(Dual, SignIsConstant) {
  EXPECT_EQ(sign(D(-3, 4)).value, -1);
  EXPECT_EQ(sign(D(-3, 4)).tangent, 0);
  EXPECT_EQ(sign(D(0, 4)).value, 0);
  EXPECT_TRUE(is_nan(sign(D(std::nan(""), 4))));
}

TEST(Dual, AnchorIsConstantAtEveryOrder) {
  const DD a(D(3, 1), D(5, 7));
  EXPECT_EQ(anchor(D(3, 4)).value, 3);
  EXPECT_EQ(anchor(D(3, 4)).tangent, 0);
  EXPECT_EQ(anchor(a).value.value, 3);
  EXPECT_EQ(anchor(a).value.tangent, 0);
  EXPECT_EQ(anchor(a).tangent.value, 0);
  EXPECT_EQ(anchor(a).tangent.tangent, 0);
}

TEST(Dual, PerturbationIsWhatTheAnchorLeavesOut) {
  EXPECT_EQ(perturbation(D(3, 4)).value, 0);
  EXPECT_EQ(perturbation(D(3, 4)).tangent, 4);
  const DD a(D(3, 1), D(5, 7)), back = anchor(a) + perturbation(a);
  EXPECT_EQ(back.value.value, 3);
  EXPECT_EQ(back.value.tangent, 1);
  EXPECT_EQ(back.tangent.value, 5);
  EXPECT_EQ(back.tangent.tangent, 7);
}

TEST(Dual, NaNAndInfinityAreJudgedByTheValue) {
  EXPECT_TRUE(is_nan(D(std::nan(""), 0)) && !is_nan(D(0, std::nan(""))));
  EXPECT_TRUE(is_infinite(D(infinity, 0)) && !is_infinite(D(0, infinity)));
  EXPECT_TRUE(is_infinite(DD(D(-infinity, 0), D())));
  EXPECT_TRUE(is_infinite(Dual<f16>(f16(1e9), f16(0))));
}

TEST(Dual, ConstantsComeFromIntegersAndReals) {
  EXPECT_EQ(D(2).value, 2);
  EXPECT_EQ(D(2.5f).value, 2.5);
  EXPECT_EQ(D(Index{-2}).tangent, 0);
  EXPECT_EQ(DD(2.5).value.value, 2.5);
  EXPECT_EQ(DD(D(1, 2)).value.tangent, 2);
  EXPECT_EQ(DD(D(1, 2)).tangent.value, 0);
  EXPECT_EQ(static_cast<float>(Dual<f16>(0.1).value), static_cast<float>(f16(0.1)));
  EXPECT_EQ(Dual<float>().value, 0);
}

}  // namespace
}  // namespace cenote
