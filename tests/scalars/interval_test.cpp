// Intervals: enclosure and tightness of every operation, against exact rationals and 50 digits of MPFR.
#include "cenote/interval.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/multiprecision/mpfr.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cenote/dual.hpp"
#include "cenote/rational.hpp"

namespace cenote {
namespace {

using Digits50 = boost::multiprecision::mpfr_float_50;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double largest = std::numeric_limits<double>::max();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr double normal = std::numeric_limits<double>::min();

const std::vector<double> specials = {
    0.0,        -0.0,          tiny,          -tiny,    2 * tiny,  3 * tiny,    normal,
    -normal,    normal - tiny, normal + tiny, 1.0,      -1.0,      2.0,         -3.0,
    0.1,        -0.1,          1.0 / 3,       0x1p-537, -0x1p-538, 0x1.8p-537,  0x1p52 + 1,
    0x1p53 - 1, -0x1p53,       0x1p-52 + 1,   1e16,     1e200,     -1e200,      1e-200,
    0x1p511,    0x1p512,       0x1p1023,      largest,  -largest,  largest / 2, largest * (1 - 0x1p-53),
    0x1p970,    -0x1p969,      0x1p-1022,     0x1p-969};

// Doubles of every kind: special, small integers, all exponents, and close neighbours of those.
double some_double() {
  const int kind = *rc::gen::inRange(0, 5);
  if (kind == 0) return *rc::gen::elementOf(specials);
  if (kind == 1) return *rc::gen::inRange(-20, 21);
  if (kind == 2) return std::nextafter(*rc::gen::elementOf(specials), *rc::gen::element(-1.0, 1.0));
  const auto bits = *rc::gen::arbitrary<std::uint64_t>() * 0x9e3779b97f4a7c15u;  // rapidcheck prefers small numbers
  if (kind == 3)
    return std::ldexp(static_cast<double>(static_cast<std::int32_t>(bits >> 32)), *rc::gen::inRange(-40, 10));
  const double x = std::bit_cast<double>(bits);
  return std::isfinite(x) ? x : 1.0;
}

double some_bound() {
  const int kind = *rc::gen::inRange(0, 12);
  return kind == 0 ? infinity : kind == 1 ? -infinity : some_double();
}

Interval some_interval() {
  const double a = some_bound(), b = *rc::gen::inRange(0, 4) == 0 ? a : some_bound();
  return {std::min(a, b), std::max(a, b)};
}

// A few finite members of an interval: its ends if finite, and what lies between them.
std::vector<double> members(const Interval& x) {
  std::vector<double> points;
  for (const double point : {x.lower(), x.upper(), x.lower() / 2 + x.upper() / 2, some_double(), 0.0, tiny, -tiny})
    if (std::isfinite(point) && x.contains(point)) points.push_back(point);
  return points;
}

bool at_most(double bound, const Rational& exact) {
  return bound == -infinity || (bound != infinity && Rational(bound) <= exact);
}
bool at_least(double bound, const Rational& exact) {
  return bound == infinity || (bound != -infinity && Rational(bound) >= exact);
}
bool encloses(const Interval& x, const Rational& exact) {
  return at_most(x.lower(), exact) && at_least(x.upper(), exact);
}

// The closest doubles on either side, or the double itself.
bool is_tightest(const Interval& x, const Rational& low, const Rational& high) {
  return at_most(x.lower(), low) && at_least(x.upper(), high) &&
         (x.lower() == -infinity ? low < Rational(-largest) : !at_most(std::nextafter(x.lower(), infinity), low)) &&
         (x.upper() == infinity ? high > Rational(largest) : !at_least(std::nextafter(x.upper(), -infinity), high));
}

const auto add = [](const auto& x, const auto& y) { return x + y; };
const auto subtract = [](const auto& x, const auto& y) { return x - y; };
const auto multiply = [](const auto& x, const auto& y) { return x * y; };
const auto divide = [](const auto& x, const auto& y) { return x / y; };

template <class Operation>
void points_are_tight(double x, double y, Operation&& operation) {
  const Rational exact = operation(Rational(x), Rational(y));
  RC_ASSERT(is_tightest(operation(Interval(x), Interval(y)), exact, exact));
}

RC_GTEST_PROP(IntervalProperty, ArithmeticOnPointsGivesTheClosestDoubles, ()) {
  for (int i = 0; i < 100; ++i) {
    const double x = some_double(), y = some_double();
    points_are_tight(x, y, add);
    points_are_tight(x, y, subtract);
    points_are_tight(x, y, multiply);
    if (y != 0) points_are_tight(x, y, divide);
  }
}

RC_GTEST_PROP(IntervalProperty, ArithmeticEnclosesEveryMember, ()) {
  for (int i = 0; i < 30; ++i) {
    const Interval a = some_interval(), b = some_interval();
    const Interval sum = a + b, difference = a - b, product = a * b, quotient = a / b;
    for (const double x : members(a)) {
      for (const double y : members(b)) {
        const Rational p(x), q(y);
        RC_ASSERT(encloses(sum, p + q));
        RC_ASSERT(encloses(difference, p - q));
        RC_ASSERT(encloses(product, p * q));
        if (y != 0) RC_ASSERT(encloses(quotient, p / q));
      }
    }
  }
}

RC_GTEST_PROP(IntervalProperty, ArithmeticOnBoundedIntervalsIsTight, ()) {
  for (int i = 0; i < 30; ++i) {
    std::array<double, 2> a{some_double(), some_double()}, b{some_double(), some_double()};
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    const Interval x(a[0], a[1]), y(b[0], b[1]);
    const auto corners = [&](const auto& operation) {
      std::vector<Rational> all;
      for (const double p : a)
        for (const double q : b) all.push_back(operation(Rational(p), Rational(q)));
      const auto [low, high] = std::minmax_element(all.begin(), all.end());
      RC_ASSERT(is_tightest(operation(x, y), *low, *high));
    };
    corners(add);
    corners(subtract);
    corners(multiply);
    if (!y.contains(0)) corners(divide);
  }
}

TEST(Interval, ArithmeticOnSpecialPointsGivesTheClosestDoubles) {
  for (const double x : specials) {
    for (const double y : specials) {
      const Rational p(x), q(y);
      ASSERT_TRUE(is_tightest(Interval(x) + Interval(y), p + q, p + q)) << x << " + " << y;
      ASSERT_TRUE(is_tightest(Interval(x) - Interval(y), p - q, p - q)) << x << " - " << y;
      ASSERT_TRUE(is_tightest(Interval(x) * Interval(y), p * q, p * q)) << x << " * " << y;
      if (y != 0) {
        ASSERT_TRUE(is_tightest(Interval(x) / Interval(y), p / q, p / q)) << x << " / " << y;
      }
    }
  }
}

TEST(Interval, SumOfExactNumbersIsNotWidened) {
  EXPECT_EQ(Interval(0.5) + Interval(0.25), Interval(0.75));
  EXPECT_EQ(Interval(1.0) + Interval(-1.0), Interval(0.0));
  EXPECT_EQ(Interval(tiny) - Interval(normal), Interval(tiny - normal));
  EXPECT_EQ(Interval(largest) - Interval(largest / 2), Interval(largest / 2));
}

TEST(Interval, ProductOfExactNumbersIsNotWidened) {
  EXPECT_EQ(Interval(3.0) * Interval(-0.5), Interval(-1.5));
  EXPECT_EQ(Interval(0x1p-537) * Interval(0x1p-537), Interval(tiny));
  EXPECT_EQ(Interval(tiny) * Interval(0x1p1023), Interval(0x1p-51));
}

TEST(Interval, ExactQuotientIsNotWidened) {
  EXPECT_EQ(Interval(3.0) / Interval(4.0), Interval(0.75));
  EXPECT_EQ(Interval(3 * tiny) / Interval(3.0), Interval(tiny));
  EXPECT_EQ(Interval(1.0) / Interval(0x1p-1022), Interval(0x1p1022));
}

TEST(Interval, InexactResultSpansTwoNeighbours) {
  const Interval third = Interval(1.0) / Interval(3.0);
  EXPECT_EQ(third.upper(), std::nextafter(third.lower(), 1.0));
  EXPECT_EQ(Interval(1.0) + Interval(tiny), Interval(1.0, 1 + 0x1p-52));
  EXPECT_EQ(Interval(1.0) - Interval(tiny), Interval(1 - 0x1p-53, 1.0));
  EXPECT_EQ(Interval(tiny) * Interval(0.5), Interval(0.0, tiny));
  EXPECT_EQ(Interval(-tiny) * Interval(tiny), Interval(-tiny, 0.0));
  EXPECT_EQ(Interval(tiny) / Interval(-largest), Interval(-tiny, 0.0));
}

TEST(Interval, OverflowKeepsTheFiniteBoundFinite) {
  EXPECT_EQ(Interval(largest) + Interval(largest), Interval(largest, infinity));
  EXPECT_EQ(Interval(-largest) - Interval(largest), Interval(-infinity, -largest));
  EXPECT_EQ(Interval(largest) * Interval(-2.0), Interval(-infinity, -largest));
  EXPECT_EQ(Interval(1.0) / Interval(tiny), Interval(largest, infinity));
  EXPECT_EQ(exp(Interval(1000.0)).upper(), infinity);
  EXPECT_LE(exp(Interval(1000.0)).lower(), largest);
}

TEST(Interval, InfiniteBoundsStayOnTheirSide) {
  const Interval line(-infinity, infinity), right(1, infinity), left(-infinity, -1);
  EXPECT_EQ(right + left, line);
  EXPECT_EQ(right - right, line);
  EXPECT_EQ(Interval(infinity) - Interval(infinity), line);
  EXPECT_EQ(right + Interval(1.0), Interval(2, infinity));
  EXPECT_EQ(line * Interval(0.0), Interval(0.0));
  EXPECT_EQ(right * Interval(0, 2), Interval(0, infinity));
  EXPECT_EQ(right * left, Interval(-infinity, -1));
  EXPECT_EQ(Interval(1.0) / right, Interval(0, 1));
  EXPECT_EQ(right / right, Interval(0, infinity));
  EXPECT_EQ(right / left, Interval(-infinity, 0));
}

TEST(Interval, DivisionByAnIntervalWithZeroIsTheHullOfAllQuotients) {
  const Interval line(-infinity, infinity);
  EXPECT_EQ(Interval(1, 2) / Interval(0, 2), Interval(0.5, infinity));
  EXPECT_EQ(Interval(1, 2) / Interval(-2, 0), Interval(-infinity, -0.5));
  EXPECT_EQ(Interval(-2, -1) / Interval(0, 2), Interval(-infinity, -0.5));
  EXPECT_EQ(Interval(-2, -1) / Interval(-2, -0.0), Interval(0.5, infinity));
  EXPECT_EQ(Interval(0, 1) / Interval(0, 4), Interval(0, infinity));
  EXPECT_EQ(Interval(-1, 1) / Interval(0, 4), line);
  EXPECT_EQ(Interval(1.0) / Interval(-1, 1), line);
  EXPECT_EQ(Interval(0.0) / Interval(-1, 1), Interval(0.0));
  EXPECT_EQ(Interval(1.0) / Interval(0.0), line);
  EXPECT_EQ(Interval(0.0) / Interval(0.0), line);
  EXPECT_EQ(Interval(1, infinity) / Interval(0, infinity), Interval(0, infinity));
}

TEST(Interval, IntegersAreEnclosed) {
  EXPECT_EQ(Interval(Index{3}), Interval(3.0));
  EXPECT_EQ(Interval(3), Interval(3.0));
  const Index odd = (Index{1} << 53) + 1;
  EXPECT_EQ(Interval(odd), Interval(0x1p53, 0x1p53 + 2));
  EXPECT_EQ(Interval(-odd), Interval(-0x1p53 - 2, -0x1p53));
  EXPECT_EQ(Interval(odd + 2), Interval(0x1p53 + 2, 0x1p53 + 4));
  EXPECT_EQ(Interval(std::numeric_limits<Index>::max()), Interval(0x1p63 - 1024, 0x1p63));
  EXPECT_EQ(Interval(std::numeric_limits<Index>::min()), Interval(-0x1p63));
}

TEST(Interval, IllegalBoundsAreAParameterError) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(Interval{nan}, ParameterError);
  EXPECT_THROW(Interval(nan, 1), ParameterError);
  EXPECT_THROW(Interval(1, nan), ParameterError);
  EXPECT_NO_THROW(Interval(-infinity, infinity));
  try {
    Interval(2, 1);
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.rule, Rule::interval_legal);
    EXPECT_EQ(error.argument, "lower");
    EXPECT_EQ(std::string(error.what()),
              "Interval: lower is 2; an interval needs lower <= upper, neither of them NaN (upper is 1)");
  }
}

TEST(Interval, OrderIsCertaintyAndEqualityIsOfSets) {
  const Interval low(0, 1), high(2, 3), touching(1, 2);
  EXPECT_TRUE(high > low && low < high);
  EXPECT_FALSE(touching > low || low < touching);
  EXPECT_FALSE(low > low || low < low);
  EXPECT_TRUE(low == Interval(0, 1) && Interval(0.0) == Interval(-0.0) && !(low == high));
  EXPECT_TRUE(possibly_greater(touching, high) == false && possibly_greater(Interval(0, 5), high));
  EXPECT_TRUE(possibly_greater(Interval(0, 2.5), high) && !possibly_greater(low, high));
  EXPECT_FALSE(is_nan(low));
}

TEST(Interval, SetOperationsAreExact) {
  EXPECT_EQ(hull(Interval(0, 1), Interval(3, 4)), Interval(0, 4));
  EXPECT_EQ(max_of(Interval(0, 5), Interval(1, 2)), Interval(1, 5));
  EXPECT_EQ(min_of(Interval(0, 5), Interval(1, 2)), Interval(0, 2));
  EXPECT_EQ(abs(Interval(-3, 2)), Interval(0, 3));
  EXPECT_EQ(abs(Interval(-3, -2)), Interval(2, 3));
  EXPECT_EQ(abs(Interval(2, 3)), Interval(2, 3));
  EXPECT_EQ(sign(Interval(-3, 2)), Interval(-1, 1));
  EXPECT_EQ(sign(Interval(0, 2)), Interval(0, 1));
  EXPECT_EQ(sign(Interval(-2, -1)), Interval(-1.0));
  EXPECT_TRUE(Interval(1, 2).contains(1) && Interval(1, 2).contains(2) && !Interval(1, 2).contains(2.5));
  EXPECT_FALSE(Interval(1, 2).contains(std::numeric_limits<double>::quiet_NaN()));
}

TEST(Interval, AnchorIsAFinitePoint) {
  EXPECT_EQ(anchor(Interval(1, 2)), Interval(2.0));
  EXPECT_EQ(anchor(Interval(1, infinity)), Interval(1.0));
  EXPECT_EQ(anchor(Interval(-infinity, 2)), Interval(2.0));
  EXPECT_EQ(anchor(Interval(-infinity, infinity)), Interval(0.0));
}

TEST(Interval, FunctionsAreExactWhereTheResultIs) {
  EXPECT_EQ(exp(Interval(0.0)), Interval(1.0));
  EXPECT_EQ(exp(Interval(-infinity, infinity)), Interval(0, infinity));
  EXPECT_EQ(tanh(Interval(0.0)), Interval(0.0));
  EXPECT_EQ(tanh(Interval(-infinity, infinity)), Interval(-1, 1));
  EXPECT_EQ(log(Interval(1.0)), Interval(0.0));
  EXPECT_EQ(log(Interval(0, infinity)), Interval(-infinity, infinity));
  EXPECT_EQ(pow(Interval(1.0), 0.3), Interval(1.0));
  EXPECT_EQ(pow(Interval(1.0), -7), Interval(1.0));
  EXPECT_EQ(pow(Interval(-0.1, 0.3), 1), Interval(-0.1, 0.3));
  EXPECT_EQ(pow(Interval(0.1, 0.3), 0), Interval(1.0));
  EXPECT_EQ(pow(Interval(0, infinity), 2.5), Interval(0, infinity));
  EXPECT_EQ(pow(Interval(0, 1), -2), Interval(1, infinity));
  EXPECT_EQ(pow(Interval(1, infinity), -0.5), Interval(0, 1));
}

TEST(Interval, LogarithmIsTotalAndKeepsInclusion) {
  EXPECT_EQ(log(Interval(-2, 1)), Interval(-infinity, 0));
  EXPECT_EQ(log(Interval(-2, -1)), Interval(-infinity, -infinity));
  EXPECT_EQ(log(Interval(0.0)), Interval(-infinity, -infinity));
}

TEST(Interval, ExponentialOfNegativeNumbersStaysBetweenZeroAndOne) {
  for (const double x : {-tiny, -1e-17, -0.5, -745.0, -1e300}) {
    const Interval y = exp(Interval(x));
    EXPECT_GE(y.lower(), 0.0);
    EXPECT_LE(y.upper(), 1.0);
  }
  EXPECT_GE(exp(Interval(tiny)).lower(), 1.0);
}

// Encloses, and is no wider than the documented steps beside what libm returned: three, and six for tanh.
bool encloses_closely(const Interval& y, const Digits50& exact, double libm, int steps = 3) {
  double low = libm, high = libm;
  for (int i = 0; i < steps; ++i) low = std::nextafter(low, -infinity), high = std::nextafter(high, infinity);
  return Digits50(y.lower()) <= exact && exact <= Digits50(y.upper()) && y.lower() >= low && y.upper() <= high;
}

void functions_enclose(double x, double p) {
  RC_ASSERT(encloses_closely(exp(Interval(x)), exp(Digits50(x)), std::exp(x)));
  RC_ASSERT(encloses_closely(tanh(Interval(x)), tanh(Digits50(x)), std::tanh(x), 6));
  const double positive = std::abs(x);
  if (positive == 0) return;
  RC_ASSERT(encloses_closely(log(Interval(positive)), log(Digits50(positive)), std::log(positive)));
  RC_ASSERT(encloses_closely(pow(Interval(positive), p), pow(Digits50(positive), Digits50(p)), std::pow(positive, p)));
}

RC_GTEST_PROP(IntervalProperty, ExpLogAndPowEnclose50Digits, ()) {
  for (int i = 0; i < 50; ++i) {
    const double x = some_double(), p = *rc::gen::element(0.5, 2.0, 3.0, 1.5, -1.0, -0.25, 1.0 / 3, 10.0, 1.0);
    functions_enclose(x, p);
    const auto bits = *rc::gen::arbitrary<std::uint32_t>() * 0x9e3779b9u;
    functions_enclose(static_cast<double>(bits) * 0x1p-21 - 1024, p);  // where exp neither overflows nor underflows
    functions_enclose(1 + (static_cast<double>(bits) - 0x1p31) * 0x1p-45, p);
  }
}

RC_GTEST_PROP(IntervalProperty, FunctionsKeepInclusion, ()) {
  const Interval x = some_interval();
  for (const double member : members(x)) {
    const auto inside = [](const Interval& small, const Interval& large) {
      return large.lower() <= small.lower() && small.upper() <= large.upper();
    };
    const Interval point(member);
    RC_ASSERT(inside(exp(point), exp(x)) && inside(log(point), log(x)) && inside(abs(point), abs(x)));
    RC_ASSERT(inside(tanh(point), tanh(x)) && tanh(x).lower() >= -1 && tanh(x).upper() <= 1);
    RC_ASSERT(inside(sign(point), sign(x)) && inside(pow(point, 2.5), pow(x, 2.5)) &&
              inside(pow(point, -2), pow(x, -2)));
  }
}

TEST(Interval, SumsEncloseTheExactSum) {
  Total<Interval> sum;
  Rational exact = 0;
  for (int i = 1; i <= 100; ++i) {
    sum.add(Interval(1.0 / i));
    exact += Rational(1.0 / i);
  }
  EXPECT_TRUE(encloses(sum.total(), exact));
  EXPECT_TRUE(encloses(sum.mean(7), exact / 7));
  EXPECT_TRUE(encloses(sum.mean(-7), exact / -7));
}

// Dual numbers over intervals: a derivative that is not certain is a set as well.
TEST(IntervalDual, AbsAndMaximumEncloseEverySlope) {
  using D = Dual<Interval>;
  EXPECT_TRUE(set_valued<D> && carries_tangent<D>);
  EXPECT_EQ(abs(D(Interval(-1, 1), Interval(2, 3))).tangent, Interval(-3, 3));
  EXPECT_EQ(abs(D(Interval(-2, -1), Interval(2, 3))).tangent, Interval(-3, -2));
  EXPECT_EQ(sign(D(Interval(-1, 1), Interval(2, 3))).value, Interval(-1, 1));
  const D low(Interval(0, 1), Interval(10.0)), high(Interval(2, 3), Interval(20.0)),
      wide(Interval(0, 5), Interval(30.0));
  EXPECT_EQ(max_of(low, high).tangent, Interval(20.0));
  EXPECT_EQ(min_of(low, high).tangent, Interval(10.0));
  EXPECT_EQ(max_of(wide, high).tangent, Interval(20, 30));
  EXPECT_EQ(max_of(wide, high).value, Interval(2, 5));
  EXPECT_EQ(min_of(wide, high).value, Interval(0, 3));
}

static_assert(Scalar<Interval> && Field<Interval> && Transcendental<Interval> && set_valued<Interval>);
static_assert(!std::constructible_from<Interval, long double>);
static_assert(Interval(0.1) + Interval(0.2) == Interval(0.30000000000000004 - 0x1p-54, 0.30000000000000004));
static_assert(hull(Interval(1), Interval(2)).contains(1.5) && Interval().contains(0));

}  // namespace
}  // namespace cenote
