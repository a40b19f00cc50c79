// Intervals: closed sets of reals between two doubles, rounded outward so that the exact result is always inside.
// The rounding mode of the processor is never touched, and nothing here knows about pooling.
//
// How it stays tight: a double operation rounds to nearest, and the sign of what it rounded away can be had exactly
// (fast two-sum, fused multiply-add). So + - * / give the closest doubles on either side, and exact results stay exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "cenote/error.hpp"
#include "cenote/scalar.hpp"

namespace cenote {

namespace detail {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double largest_finite = std::numeric_limits<double>::max();

constexpr double next_up(double x) {
  if (x == infinity) return x;
  if (x == 0) return std::numeric_limits<double>::denorm_min();
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  return std::bit_cast<double>(x > 0 ? bits + 1 : bits - 1);
}
constexpr double next_down(double x) { return -next_up(-x); }

// The doubles closest to an exact result, from below and from above.
struct Bounds {
  double down, up;
};

// `nearest` is a rounded result of finite operands, `excess` has the sign of exact - nearest.
constexpr Bounds around(double nearest, double excess) {
  if (nearest == infinity) return {largest_finite, infinity};  // overflow: the exact result is finite
  if (nearest == -infinity) return {-infinity, -largest_finite};
  return {excess < 0 ? next_down(nearest) : nearest, excess > 0 ? next_up(nearest) : nearest};
}

constexpr Bounds sum(double a, double b) {
  const double nearest = a + b;
  if (is_nan(nearest)) return {-infinity, infinity};  // inf - inf
  if (is_infinite(a) || is_infinite(b)) return {nearest, nearest};
  if (is_infinite(nearest)) return around(nearest, 0);
  const bool ordered = (a < 0 ? -a : a) >= (b < 0 ? -b : b);  // Knuth's two-sum could overflow, the ordered one cannot
  const double large = ordered ? a : b, small = ordered ? b : a;
  return around(nearest, small - (nearest - large));
}

// The sign of the exact a*b - c, where c is close to a*b. Significands are compared, so nothing underflows.
inline double product_excess(double a, double b, double c) {
  if (a == 0 || b == 0) return -c;
  int of_a = 0, of_b = 0;
  a = std::frexp(a, &of_a);
  b = std::frexp(b, &of_b);
  return std::fma(a, b, -std::ldexp(c, -(of_a + of_b)));
}

inline Bounds product(double a, double b) {
  if (a == 0 || b == 0) return {0, 0};  // 0 * inf too: an infinite bound stands for numbers, all of which give 0
  const double nearest = a * b;
  if (is_infinite(a) || is_infinite(b)) return {nearest, nearest};
  if (is_infinite(nearest)) return around(nearest, 0);
  return around(nearest, product_excess(a, b, nearest));
}

// b is not 0.
inline Bounds quotient(double a, double b) {
  if (is_infinite(a) && is_infinite(b)) return (a > 0) == (b > 0) ? Bounds{0, infinity} : Bounds{-infinity, 0};
  const double nearest = a / b;
  if (is_infinite(a) || is_infinite(b)) return {nearest, nearest};
  if (is_infinite(nearest)) return around(nearest, 0);
  const double excess = product_excess(nearest, b, a);
  return around(nearest, b > 0 ? -excess : excess);
}

// One ulp of a libm result is two steps just below a power of two; one more is spare.
inline constexpr int libm_steps = 3;

constexpr Bounds around_libm(double x) {
  Bounds bounds{x, x};
  for (int i = 0; i < libm_steps; ++i) bounds = {next_down(bounds.down), next_up(bounds.up)};
  return bounds;
}

inline Bounds exponential(double x) {
  if (x == 0) return {1, 1};
  if (is_infinite(x)) return x > 0 ? Bounds{infinity, infinity} : Bounds{0, 0};
  const Bounds bounds = around_libm(std::exp(x));
  return x > 0 ? Bounds{std::max(bounds.down, 1.0), bounds.up}
               : Bounds{std::max(bounds.down, 0.0), std::min(bounds.up, 1.0)};
}

inline Bounds logarithm(double x) {
  if (x <= 0) return {-infinity, -infinity};
  if (x == 1) return {0, 0};
  return is_infinite(x) ? Bounds{infinity, infinity} : around_libm(std::log(x));
}

// glibc's tanh is within two ulp.
inline Bounds hyperbolic_tangent(double x) {
  if (x == 0 || is_infinite(x)) return {std::tanh(x), std::tanh(x)};
  const Bounds near = around_libm(std::tanh(x));
  const Bounds bounds{around_libm(near.down).down, around_libm(near.up).up};
  return {std::max(bounds.down, x > 0 ? 0.0 : -1.0), std::min(bounds.up, x > 0 ? 1.0 : 0.0)};
}

// p is finite and not 0; x below 0 counts as 0.
inline Bounds power(double x, double p) {
  x = std::max(x, 0.0);
  const double nearest = std::pow(x, p);
  if (x == 0 || x == 1 || is_infinite(x)) return {nearest, nearest};
  const Bounds bounds = around_libm(nearest);
  return {std::max(bounds.down, 0.0), bounds.up};
}

}  // namespace detail

// The set of reals x with lower() <= x <= upper(). Bounds may be infinite: then the set is unbounded on that side.
class Interval {
 public:
  constexpr Interval() = default;  // the point 0
  constexpr Interval(double lower, double upper) : lower_(lower), upper_(upper) {
    if (!(lower <= upper)) fail(lower, upper);
  }
  explicit constexpr Interval(double point) : Interval(point, point) {}
  explicit Interval(long double) = delete;  // would round without enclosing
  // The closest doubles around an integer; a point wherever the integer is a double.
  template <std::integral I>
  explicit constexpr Interval(I integer) {
    __extension__ using Exact = __int128;
    const double nearest = static_cast<double>(integer);
    const Exact error = static_cast<Exact>(integer) - static_cast<Exact>(nearest);
    *this = Interval(detail::around(nearest, static_cast<double>(error)));
  }

  [[nodiscard]] constexpr double lower() const { return lower_; }
  [[nodiscard]] constexpr double upper() const { return upper_; }
  [[nodiscard]] constexpr bool contains(double x) const { return lower_ <= x && x <= upper_; }

  friend constexpr Interval operator+(const Interval& a, const Interval& b) {
    return {detail::sum(a.lower_, b.lower_).down, detail::sum(a.upper_, b.upper_).up};
  }
  friend constexpr Interval operator-(const Interval& a) { return {-a.upper_, -a.lower_}; }
  friend constexpr Interval operator-(const Interval& a, const Interval& b) { return a + -b; }

  friend Interval operator*(const Interval& a, const Interval& b) {
    return spanned({detail::product(a.lower_, b.lower_), detail::product(a.lower_, b.upper_),
                    detail::product(a.upper_, b.lower_), detail::product(a.upper_, b.upper_)});
  }

  // The hull of all quotients by the numbers of b other than 0; the whole line if b has no other.
  friend Interval operator/(const Interval& a, const Interval& b) {
    if (b.lower_ > 0 || b.upper_ < 0) {
      return spanned({detail::quotient(a.lower_, b.lower_), detail::quotient(a.lower_, b.upper_),
                      detail::quotient(a.upper_, b.lower_), detail::quotient(a.upper_, b.upper_)});
    }
    if (b.lower_ == 0 && b.upper_ == 0) return line();
    if (a.lower_ == 0 && a.upper_ == 0) return a;
    if (b.lower_ < 0 && b.upper_ > 0) return line();
    if (b.upper_ == 0) return -a / -b;
    return {a.lower_ < 0 ? -detail::infinity : detail::quotient(a.lower_, b.upper_).down,
            a.upper_ > 0 ? detail::infinity : detail::quotient(a.upper_, b.upper_).up};
  }

  // Certainly greater, certainly less: for every choice of numbers. Equal: the same set.
  friend constexpr bool operator>(const Interval& a, const Interval& b) { return a.lower_ > b.upper_; }
  friend constexpr bool operator<(const Interval& a, const Interval& b) { return a.upper_ < b.lower_; }
  friend constexpr bool operator==(const Interval& a, const Interval& b) = default;

  friend constexpr bool possibly_greater(const Interval& a, const Interval& b) { return a.upper_ > b.lower_; }

  // The smallest interval that contains both.
  friend constexpr Interval hull(const Interval& a, const Interval& b) {
    return {std::min(a.lower_, b.lower_), std::max(a.upper_, b.upper_)};
  }

  // All values that the larger (smaller) of two numbers can take.
  friend constexpr Interval max_of(const Interval& a, const Interval& b) {
    return {std::max(a.lower_, b.lower_), std::max(a.upper_, b.upper_)};
  }
  friend constexpr Interval min_of(const Interval& a, const Interval& b) {
    return {std::min(a.lower_, b.lower_), std::min(a.upper_, b.upper_)};
  }

  friend constexpr Interval abs(const Interval& x) {
    if (x.lower_ >= 0) return x;
    if (x.upper_ <= 0) return -x;
    return {0, std::max(-x.lower_, x.upper_)};
  }

  friend constexpr Interval sign(const Interval& x) {
    const auto of = [](double bound) { return bound > 0 ? 1.0 : bound < 0 ? -1.0 : 0.0; };
    return {of(x.lower_), of(x.upper_)};
  }

  friend Interval exp(const Interval& x) {
    return {detail::exponential(x.lower_).down, detail::exponential(x.upper_).up};
  }

  // Continued by -inf on the numbers up to 0, so it is total and keeps inclusion.
  friend Interval log(const Interval& x) { return {detail::logarithm(x.lower_).down, detail::logarithm(x.upper_).up}; }

  friend Interval tanh(const Interval& x) {
    return {detail::hyperbolic_tangent(x.lower_).down, detail::hyperbolic_tangent(x.upper_).up};
  }

  // For p finite. Numbers below 0 count as 0, except for p == 1, which is x itself.
  friend Interval pow(const Interval& x, double p) {
    if (p == 0) return Interval(1.0);
    if (p == 1) return x;
    const detail::Bounds lower = detail::power(x.lower_, p), upper = detail::power(x.upper_, p);
    return p > 0 ? Interval(lower.down, upper.up) : Interval(upper.down, lower.up);
  }

 private:
  explicit constexpr Interval(detail::Bounds bounds) : lower_(bounds.down), upper_(bounds.up) {}

  static constexpr Interval line() { return {-detail::infinity, detail::infinity}; }

  static constexpr Interval spanned(std::initializer_list<detail::Bounds> corners) {
    double lower = detail::infinity, upper = -detail::infinity;
    for (const detail::Bounds& corner : corners) {
      lower = std::min(lower, corner.down);
      upper = std::max(upper, corner.up);
    }
    return {lower, upper};
  }

  [[noreturn]] static void fail(double lower, double upper) {
    if (is_nan(lower)) raise(Problem{Rule::interval_legal, "lower", -1, 0, 0, lower}, "Interval");
    if (is_nan(upper)) raise(Problem{Rule::interval_legal, "upper", -1, 0, 0, upper}, "Interval");
    raise(Problem{Rule::interval_legal, "lower", -1, 0, 0, lower}, "Interval", "upper is " + detail::to_text(upper));
  }

  double lower_ = 0;
  double upper_ = 0;
};

template <>
inline constexpr bool set_valued<Interval> = true;

// A finite point of x, the upper end if there is a choice; 0 if both ends are infinite.
constexpr Interval anchor(const Interval& x) {
  if (!is_infinite(x.upper())) return Interval(x.upper());
  if (!is_infinite(x.lower())) return Interval(x.lower());
  return Interval(0.0);
}

}  // namespace cenote
