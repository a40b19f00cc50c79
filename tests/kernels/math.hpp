// The vector mathematics of smooth max and Lp, called column by column on any target, and what its tests measure with.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "support/precise.hpp"

namespace cenote::test {

// Functions of kernels/math-inl.hpp.
enum class Op {
  exp,
  exp_precise,
  add,
  add_triple,
  add_precise,
  scale,
  log,
  log_precise,
  finish,
  finish_precise,
  pow,
  product,
  pow_precise,
  finish_lp,
  finish_lp_precise,
  inverse_lp,
  inverse_lp_precise,
  magnitude,
  square,
  square_root,
  count
};

using Column = std::vector<double>;

inline constexpr double zero_exponent = -1e300;  // the exponent of zero in math-inl.hpp
inline constexpr double unit = 0x1p-53;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr std::size_t widest = 16;  // columns are multiples of this

struct Result {
  Column a, b, c;
};

// Carried out on the target in use; `lanes` as in math.cpp.
Result apply(Op op, double parameter, const std::vector<Column>& in, int lanes = 0);

// Runs the body once for every target; failures name it.
void on_every_target(const std::function<void()>& body);

// The target in use.
const char* target_name();

class Random {
 public:
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  double sign() { return uniform(-1, 1) < 0 ? -1 : 1; }
  // Magnitudes 2^low to 2^high, all equally likely, both signs.
  double spread(double low, double high) { return sign() * std::exp2(uniform(low, high)); }
  double integer(double low, double high) { return std::floor(uniform(low, high + 1)); }
  template <class F>
  Column column(std::size_t count, F&& draw) {
    Column out(count);
    for (double& cell : out) cell = draw();
    return out;
  }

 private:
  std::mt19937_64 engine_{20240521};  // NOLINT: the same numbers in every run
};

inline Column padded(Column column) {
  while (column.size() % widest != 0) column.push_back(column.back());
  return column;
}

inline double as_float(double x) { return static_cast<double>(static_cast<float>(x)); }

inline double ulp_of(double x) {
  const double size = std::max(std::abs(x), std::numeric_limits<double>::min());
  return std::nextafter(size, infinity) - size;
}

// The distance of a machine number from the exact one, in units in the last place of `scale`.
template <class T>
double ulps(T got, const Precise& exact, const Precise& scale) {
  const T size = std::max(static_cast<T>(abs(scale)), std::numeric_limits<T>::min());
  const Precise unit_of_scale(std::nextafter(size, std::numeric_limits<T>::infinity()) - size);
  return static_cast<double>(abs(Precise(got) - exact) / unit_of_scale);
}

inline const Precise& ln2() {
  static const Precise value = log(Precise(2));
  return value;
}

// log of a pair: its absolute error is the relative error of the pair.
inline Precise log_of(double n, double f, double c = 0) { return Precise(n) * ln2() + log(Precise(f) + Precise(c)); }

inline bool same_bits(const Column& x, const Column& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  });
}

// The largest of many measured errors, reported when CENOTE_MATH_REPORT is set.
class Worst {
 public:
  explicit Worst(const char* what) : what_(what) {}
  Worst(const Worst&) = delete;
  Worst& operator=(const Worst&) = delete;
  ~Worst() {
    if (std::getenv("CENOTE_MATH_REPORT") != nullptr) std::printf("%-8s %-48s %.4g\n", target_name(), what_, worst_);
  }
  double operator()(double error) {
    worst_ = std::max(worst_, error);
    return error;
  }

 private:
  const char* what_;
  double worst_ = 0;
};

}  // namespace cenote::test
