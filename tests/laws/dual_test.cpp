// Derivatives against other ways to obtain them: dual numbers, linearity, finite differences, second order.
#include "cenote/dual.hpp"

#include "cenote/rational.hpp"
#include "support/laws.hpp"

namespace cenote::test {
namespace {

template <class T>
Tensor<Dual<T>> paired(const Tensor<T>& x, const Tensor<T>& dx) {
  Tensor<Dual<T>> out(x.dims());
  for (std::size_t i = 0; i < x.data().size(); ++i) out.data()[i] = Dual<T>(x.data()[i], dx.data()[i]);
  return out;
}

// |a - b| within `ulps` units of the larger of both and 1.
template <class T>
bool close(T a, T b, T ulps) {
  using std::abs;
  return abs(a - b) <= ulps * std::numeric_limits<T>::epsilon() * std::max({T(1), abs(a), abs(b)});
}

RC_GTEST_PROP(Dual, ForwardAtDualNumbersIsForwardAndJvpOverRationals, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<Rational>(g.in(), 2);
  const auto dx = random_tensor<Rational>(g.in(), 9);
  for_each_algebraic_operator([&](const auto& op) {
    RC_LOG() << describe(g) << ", " << label(op) << "\n";
    RC_ASSERT(value(op, g, paired(x, dx)) == paired(value(op, g, x), push(op, g, x, dx)));
    const auto both = value(op, g, paired(x, dx));
    const auto dy = push(op, g, x, dx);
    for (std::size_t o = 0; o < dy.data().size(); ++o) RC_ASSERT(both.data()[o].tangent == dy.data()[o]);
  });
}

template <class T>
void forward_is_value_and_jvp(T value_ulps, T tangent_ulps) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<T>(g.in(), 4);
  const auto dx = random_tensor<T>(g.in(), 9);
  for_each_operator<T>([&](const auto& op) {
    const auto both = value(op, g, paired(x, dx));
    const auto y = value(op, g, x);
    const auto dy = push(op, g, x, dx);
    for (std::size_t o = 0; o < dy.data().size(); ++o) {
      RC_LOG() << describe(g) << ", " << label(op) << " output " << o << "\n";
      RC_ASSERT(close(both.data()[o].value, y.data()[o], value_ulps));
      RC_ASSERT(close(both.data()[o].tangent, dy.data()[o], tangent_ulps));
    }
  });
}
RC_GTEST_PROP(Dual, ForwardAtDualNumbersIsForwardAndJvpInF64, ()) { forward_is_value_and_jvp<double>(64, 512); }
RC_GTEST_PROP(Dual, ForwardAtDualNumbersIsForwardAndJvpInF32, ()) { forward_is_value_and_jvp<float>(64, 512); }

RC_GTEST_PROP(Jvp, IsLinearInTheTangent, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<Rational>(g.in(), 2);
  const auto u = random_tensor<Rational>(g.in(), 9);
  const auto v = random_tensor<Rational>(g.in(), 9);
  const Rational a(between(-5, 5));
  Tensor<Rational> mix(g.in());
  for (std::size_t i = 0; i < mix.data().size(); ++i) mix.data()[i] = a * u.data()[i] + v.data()[i];
  for_each_algebraic_operator([&](const auto& op) {
    const auto left = push(op, g, x, mix);
    const auto right_u = push(op, g, x, u);
    const auto right_v = push(op, g, x, v);
    for (std::size_t o = 0; o < left.data().size(); ++o)
      RC_ASSERT(left.data()[o] == a * right_u.data()[o] + right_v.data()[o]);
  });
}

// Max, min, average and sum are piecewise linear: away from ties a difference quotient is exact.
RC_GTEST_PROP(Vjp, EqualsFiniteDifferencesExactlyAwayFromTies, ()) {
  const Geometry g = random_geometry();
  Tensor<Rational> x(g.in());
  for (std::size_t i = 0; i < x.data().size(); ++i)
    x.data()[i] = Rational(between(-3, 3)) + Rational(static_cast<Index>(i)) / 1000;
  const auto gy = random_tensor<Rational>(g.out(), 9);
  const Rational step = Rational(1) / 100000;
  const std::size_t i = static_cast<std::size_t>(between(0, volume(g.in()) - 1));
  Tensor<Rational> moved = x;
  moved.data()[i] += step;
  for_each_algebraic_operator([&](const auto& op) {
    RC_LOG() << describe(g) << ", " << label(op) << "\n";
    const Rational difference = (dot(value(op, g, moved), gy) - dot(value(op, g, x), gy)) / step;
    RC_ASSERT(difference == pull(op, g, x, gy).data()[i]);
  });
}

RC_GTEST_PROP(Vjp, EqualsCentralDifferencesWhereSmooth, ()) {
  const Geometry g = random_geometry();
  Tensor<double> x(g.in());
  for (double& cell : x.data()) cell = static_cast<double>(between(1, 40)) / 16 * (chance() ? 1 : -1);  // Lp: not 0
  const auto gy = random_tensor<double>(g.out(), 3);
  const std::size_t i = static_cast<std::size_t>(between(0, volume(g.in()) - 1));
  constexpr double step = 1.0 / (1 << 18);
  auto up = x;
  auto down = x;
  up.data()[i] += step;
  down.data()[i] -= step;
  for_each_smooth_operator([&](const auto& op) {
    RC_LOG() << describe(g) << ", " << label(op) << "\n";
    const double difference = (dot(value(op, g, up), gy) - dot(value(op, g, down), gy)) / (2 * step);
    const double exact = pull(op, g, x, gy).data()[i];
    RC_ASSERT(std::abs(difference - exact) <= 1e-6 * std::max(1.0, std::abs(exact)));
  });
}

// A VJP evaluated at dual numbers is a Hessian-vector product: the derivative of the gradient along v.
RC_GTEST_PROP(SecondOrder, SmoothMaxVjpAtDualNumbersIsTheHessianVectorProduct, ()) {
  const Geometry g = random_geometry();
  Tensor<double> x(g.in());
  for (double& cell : x.data()) cell = static_cast<double>(between(-40, 40)) / 16;
  const auto v = random_tensor<double>(g.in(), 2);
  const auto gy = random_tensor<double>(g.out(), 3);
  const SmoothMax op{.beta = 1.5};
  const auto gradient = pull(op, g, paired(x, v), paired(gy, Tensor<double>(g.out())));
  constexpr double step = 1.0 / (1 << 18);
  auto up = x;
  auto down = x;
  for (std::size_t i = 0; i < x.data().size(); ++i) {
    up.data()[i] += step * v.data()[i];
    down.data()[i] -= step * v.data()[i];
  }
  const auto above = pull(op, g, up, gy);
  const auto below = pull(op, g, down, gy);
  for (std::size_t i = 0; i < x.data().size(); ++i)
    RC_ASSERT(std::abs(gradient.data()[i].tangent - (above.data()[i] - below.data()[i]) / (2 * step)) < 1e-5);
}

RC_GTEST_PROP(SecondOrder, MaxAndAverageHaveNoSecondDerivative, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<Rational>(g.in(), 4);
  const auto v = random_tensor<Rational>(g.in(), 4);
  const auto gy = random_tensor<Rational>(g.out(), 4);
  for_each_algebraic_operator([&](const auto& op) {
    const auto gradient = pull(op, g, paired(x, v), paired(gy, Tensor<Rational>(g.out())));
    for (const auto& cell : gradient.data()) RC_ASSERT(cell.tangent == 0);
  });
}

}  // namespace
}  // namespace cenote::test
