// How far f64, f32 and the halves may be from the exact result: A7 and S6, measured against fifty digits.
#include <cmath>

#include "support/laws.hpp"
#include "support/precise.hpp"

namespace cenote::test {
namespace {

// The distance of a machine number from the exact one, in units in the last place of `scale`.
template <class T>
double ulps(T got, const Precise& exact, double scale) {
  const T size = static_cast<T>(std::max(scale, static_cast<double>(std::numeric_limits<T>::min())));
  const Precise unit(std::nextafter(size, std::numeric_limits<T>::infinity()) - size);
  return static_cast<double>(abs(Precise(got) - exact) / unit);
}

// Values of mixed magnitude and sign; `decades` below the largest.
template <class T>
Tensor<T> mixed_tensor(const Dims& dims, int decades) {
  Tensor<T> out(dims);
  for (T& cell : out.data())
    cell = static_cast<T>(
        std::ldexp(static_cast<double>(between(-(1 << 30), 1 << 30)), -static_cast<int>(between(0, decades)) - 26));
  return out;
}

template <class T>
void smooth_max_is_accurate() {
  const Index taps = between(1, 64);
  const Geometry g = resolve({taps}, Sliding{.kernel = {taps}});
  const auto x = mixed_tensor<T>({taps}, 12);
  const double beta =
      static_cast<double>(between(1, 1000)) / static_cast<double>(between(1, 200)) * (chance() ? 1 : -1);
  const SmoothMax op{beta};
  const auto exact_x = converted<Precise>(x);
  const Precise y = value(op, g, exact_x).data()[0];
  double magnitude = std::abs(static_cast<double>(y));
  T extreme = x.data()[0];
  for (const T cell : x.data()) {
    magnitude = std::max(magnitude, std::abs(static_cast<double>(cell)));
    extreme = beta > 0 ? std::max(extreme, cell) : std::min(extreme, cell);
  }
  RC_ASSERT(ulps(value(op, g, x).data()[0], y, magnitude) <= 4);
  const auto weights = pull(op, g, x, Tensor<T>({1}, T(1)));
  const auto exact = pull(op, g, exact_x, Tensor<Precise>({1}, Precise(1)));
  for (std::size_t i = 0; i < weights.data().size(); ++i) {
    const double bound = 4 + std::abs(beta * (static_cast<double>(x.data()[i]) - static_cast<double>(extreme)));
    RC_ASSERT(ulps(weights.data()[i], exact.data()[i], static_cast<double>(exact.data()[i])) <= bound);
  }
}

RC_GTEST_PROP(Accuracy, S6_SmoothMaxInF64, ()) { smooth_max_is_accurate<double>(); }
RC_GTEST_PROP(Accuracy, S6_SmoothMaxInF32, ()) { smooth_max_is_accurate<float>(); }

TEST(Accuracy, S6_SmoothMaxOver1024Taps) {
  Tensor<double> x({1024});
  for (std::size_t i = 0; i < 1024; ++i) x.data()[i] = std::sin(static_cast<double>(i * i)) * 20;
  const Geometry g = resolve({1024}, Sliding{.kernel = {1024}});
  const Precise exact = value(SmoothMax{0.37}, g, converted<Precise>(x)).data()[0];
  EXPECT_LE(ulps(value(SmoothMax{0.37}, g, x).data()[0], exact, static_cast<double>(exact)), 4);
}

// A7: within 4 ulp of the mean of |x|, cancellation or not.
template <class T>
void average_is_accurate(Index taps) {
  const auto x = mixed_tensor<T>({taps}, 60);
  const Geometry g = resolve({taps}, Sliding{.kernel = {taps}});
  const Precise exact = value(Average{}, g, converted<Precise>(x)).data()[0];
  double mean = 0;
  for (const T cell : x.data()) mean += std::abs(static_cast<double>(cell)) / static_cast<double>(taps);
  RC_ASSERT(ulps(value(Average{}, g, x).data()[0], exact, mean) <= 4);
}

RC_GTEST_PROP(Accuracy, A7_AverageInF64, ()) { average_is_accurate<double>(between(1, 200)); }
RC_GTEST_PROP(Accuracy, A7_AverageInF32, ()) { average_is_accurate<float>(between(1, 200)); }

TEST(Accuracy, A7_AverageOverAMillionTaps) {
  const Index taps = 1 << 20;
  const Geometry g = resolve({taps}, Sliding{.kernel = {taps}});
  const auto check = [&]<class T>(T) {
    Tensor<T> x({taps});
    Precise sum = 0;
    double magnitude = 0;
    for (Index i = 0; i < taps; ++i) {  // large terms that cancel, small ones that remain
      const double large = i % 2 == 0 ? 1e8 : -1e8;
      const T cell = static_cast<T>(large + std::sin(static_cast<double>(i)));
      x.data()[static_cast<std::size_t>(i)] = cell;
      sum += Precise(cell);
      magnitude += std::abs(static_cast<double>(cell)) / static_cast<double>(taps);
    }
    EXPECT_LE(ulps(value(Average{}, g, x).data()[0], Precise(sum / taps), magnitude), 4);
  };
  check(double{});
  check(float{});
}

}  // namespace
}  // namespace cenote::test
