// Intervals enclose: forward, JVP and VJP at intervals contain the exact result at every point of them.
#include "cenote/interval.hpp"

#include "cenote/dual.hpp"
#include "cenote/rational.hpp"
#include "support/laws.hpp"
#include "support/precise.hpp"

namespace cenote::test {
namespace {

// Intervals round a tensor of points, and another point of each of them.
struct Around {
  Tensor<Interval> intervals;
  Tensor<Rational> points;
};

Around random_around(const Dims& dims, Index spread) {
  Around out{Tensor<Interval>(dims), Tensor<Rational>(dims)};
  for (std::size_t i = 0; i < out.points.data().size(); ++i) {
    const Index low = between(-spread, spread);
    const Index width = between(0, 2);
    out.intervals.data()[i] = Interval(static_cast<double>(low), static_cast<double>(low + width));
    out.points.data()[i] = Rational(low) + Rational(width) * Rational(between(0, 7)) / Rational(7);
  }
  return out;
}

bool encloses(const Interval& interval, const Rational& exact) {
  return (std::isinf(interval.lower()) || Rational(interval.lower()) <= exact) &&
         (std::isinf(interval.upper()) || exact <= Rational(interval.upper()));
}

template <class Op>
void expect_enclosed(const Op& op, const Geometry& g, const Tensor<Interval>& intervals,
                     const Tensor<Rational>& exact) {
  RC_LOG() << describe(g) << ", " << label(op) << "\n";
  for (std::size_t i = 0; i < exact.data().size(); ++i) RC_ASSERT(encloses(intervals.data()[i], exact.data()[i]));
}

RC_GTEST_PROP(Interval, I1_AlgebraicResultsEncloseRationalOnes, ()) {
  const Geometry g = random_geometry();
  const auto x = random_around(g.in(), 3);
  const auto dx = random_around(g.in(), 9);
  const auto gy = random_around(g.out(), 9);
  for_each_algebraic_operator([&](const auto& op) {
    expect_enclosed(op, g, value(op, g, x.intervals), value(op, g, x.points));
    expect_enclosed(op, g, push(op, g, x.intervals, dx.intervals), push(op, g, x.points, dx.points));
    expect_enclosed(op, g, pull(op, g, x.intervals, gy.intervals), pull(op, g, x.points, gy.points));
  });
}

RC_GTEST_PROP(Interval, I1_SmoothResultsEncloseFiftyDigitOnes, ()) {
  const Geometry g = random_geometry();
  const auto x = random_around(g.in(), 3);
  const auto dx = random_around(g.in(), 5);
  const auto gy = random_around(g.out(), 5);
  const auto precise = [](const Tensor<Rational>& from) { return converted<Precise>(from); };
  const auto check = [&](const auto& op, const Tensor<Interval>& intervals, const Tensor<Precise>& exact) {
    RC_LOG() << describe(g) << ", " << label(op) << "\n";
    for (std::size_t i = 0; i < exact.data().size(); ++i) {
      RC_ASSERT(Precise(intervals.data()[i].lower()) <= exact.data()[i]);
      RC_ASSERT(exact.data()[i] <= Precise(intervals.data()[i].upper()));
    }
  };
  for_each_smooth_operator([&](const auto& op) {
    check(op, value(op, g, x.intervals), value(op, g, precise(x.points)));
    check(op, push(op, g, x.intervals, dx.intervals), push(op, g, precise(x.points), precise(dx.points)));
    check(op, pull(op, g, x.intervals, gy.intervals), pull(op, g, precise(x.points), precise(gy.points)));
  });
}

// Not only enclosing but useful: the maximum of points is a point, and a certain winner keeps its whole gradient.
TEST(Interval, I1_PointsStayPointsUnderSelections) {
  const Tensor<Interval> x({3}, {Interval(1.0), Interval(4.0), Interval(2.0)});
  const Geometry g = resolve({3}, Sliding{.kernel = {3}});
  EXPECT_EQ(value(Max{}, g, x).data()[0], Interval(4.0));
  const auto gx = pull(Max{}, g, x, Tensor<Interval>({1}, {Interval(3.0)}));
  EXPECT_EQ(gx.data()[0], Interval(0.0));
  EXPECT_EQ(gx.data()[1], Interval(3.0));
}

TEST(Interval, I1_EveryTapThatCanWinHasAWeightBetweenZeroAndOne) {
  const Tensor<Interval> x({3}, {Interval(0.0, 2.0), Interval(1.0, 3.0), Interval(-5.0, 0.5)});
  const Geometry g = resolve({3}, Sliding{.kernel = {3}});
  EXPECT_EQ(value(Max{}, g, x).data()[0], Interval(1.0, 3.0));
  const auto gx = pull(Max{}, g, x, Tensor<Interval>({1}, {Interval(1.0)}));
  EXPECT_EQ(gx.data()[0], Interval(0.0, 1.0));
  EXPECT_EQ(gx.data()[1], Interval(0.0, 1.0));
  EXPECT_EQ(gx.data()[2], Interval(0.0));
}

TEST(Interval, I1_UnboundedInputsGiveUnboundedNorms) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor<Interval> x({2}, {Interval(0.0, inf), Interval(0.0)});
  const auto y = value(Lp{2}, resolve({2}, Sliding{.kernel = {2}}), x).data()[0];
  EXPECT_LE(y.lower(), 0);
  EXPECT_EQ(y.upper(), inf);
}

}  // namespace
}  // namespace cenote::test
