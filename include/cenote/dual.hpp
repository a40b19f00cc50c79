// Dual numbers: forward-mode derivatives over any field scalar, dual numbers included (nesting gives second order).
// Nothing here knows about pooling; the hand-written JVPs are tested against definitions instantiated at Dual<T>.
//
// A dual number is value + tangent*e with e*e = 0. Every function f maps it to f(value) + f'(value)*tangent*e, so the
// tangent that comes out is the derivative in the direction of the tangent that went in.
#pragma once

#include <concepts>

#include "cenote/error.hpp"
#include "cenote/scalar.hpp"

namespace cenote {

template <Field T>
struct Dual {
  T value{};
  T tangent{};

  constexpr Dual() = default;
  constexpr Dual(const T& v, const T& t) : value(v), tangent(t) {}

  // Constants: their tangent is 0.
  explicit constexpr Dual(const T& v) : value(v), tangent(T(Index{0})) {}
  template <std::integral I>
  explicit constexpr Dual(I v) : value(T(static_cast<Index>(v))), tangent(T(Index{0})) {}
  template <std::floating_point F>
    requires std::constructible_from<T, F>
  explicit constexpr Dual(F v) : value(T(v)), tangent(T(Index{0})) {}

  friend constexpr Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.tangent + b.tangent}; }
  friend constexpr Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.tangent - b.tangent}; }
  friend constexpr Dual operator-(const Dual& a) { return {-a.value, -a.tangent}; }
  friend constexpr Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.tangent * b.value + a.value * b.tangent};
  }
  friend constexpr Dual operator/(const Dual& a, const Dual& b) {
    const T quotient = a.value / b.value;
    return {quotient, (a.tangent - quotient * b.tangent) / b.value};
  }

  // Order looks at values only: which tap wins does not depend on the direction.
  friend constexpr bool operator==(const Dual& a, const Dual& b) { return a.value == b.value; }
  friend constexpr bool operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
  friend constexpr bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
};

template <class T>
inline constexpr bool carries_tangent<Dual<T>> = true;

template <class T>
inline constexpr bool set_valued<Dual<T>> = set_valued<T>;

// Value and tangent are summed apart, so a linear operator at duals is (forward, JVP) bit for bit (A6).
template <Field T>
struct DualSum {
  Total<T> value, tangent;
  constexpr void add(const Dual<T>& x) {
    value.add(x.value);
    tangent.add(x.tangent);
  }
  [[nodiscard]] constexpr Dual<T> total() const { return {value.total(), tangent.total()}; }
  [[nodiscard]] constexpr Dual<T> mean(Index n) const { return {value.mean(n), tangent.mean(n)}; }
};

template <class T>
struct ScalarTraits<Dual<T>> {
  using Sum = DualSum<T>;
  using Wide = Dual<T>;
  using Gradient = Dual<T>;
};

template <class T>
constexpr bool is_infinite(const Dual<T>& x) {
  return is_infinite(x.value);
}

template <class T>
constexpr Dual<T> sign(const Dual<T>& x) {
  return Dual<T>(sign(x.value));
}

// Constant at every order: the shift may not contribute a derivative.
template <class T>
constexpr Dual<T> anchor(const Dual<T>& x) {
  return Dual<T>(anchor(x.value));
}

// x without its anchor: tangents of every order, on a value of 0.
template <class T>
constexpr Dual<T> perturbation(const Dual<T>& x) {
  return {perturbation(x.value), x.tangent};
}

// Apart, because the quotient rule would turn an infinite value into a NaN tangent (M8).
template <class T>
constexpr Dual<T> weigh(Over weight, const Dual<T>& gradient) {
  return {weigh(weight, gradient.value), weigh(weight, gradient.tangent)};
}

// Over sets, the larger of two duals follows the tangent of the one that is certainly larger, or else either.
template <Field T>
  requires set_valued<T>
constexpr Dual<T> hull(const Dual<T>& a, const Dual<T>& b) {
  return {hull(a.value, b.value), hull(a.tangent, b.tangent)};
}
template <Field T>
  requires set_valued<T>
constexpr Dual<T> max_of(const Dual<T>& a, const Dual<T>& b) {
  if (a > b) return a;
  if (b > a) return b;
  return {max_of(a.value, b.value), hull(a.tangent, b.tangent)};
}
template <Field T>
  requires set_valued<T>
constexpr Dual<T> min_of(const Dual<T>& a, const Dual<T>& b) {
  return -max_of(-a, -b);
}

template <Transcendental T>
constexpr Dual<T> exp(const Dual<T>& x) {
  const T value = exp(x.value);
  return {value, value * x.tangent};
}

template <Transcendental T>
constexpr Dual<T> log(const Dual<T>& x) {
  return {log(x.value), x.tangent / x.value};
}

template <Transcendental T>
constexpr Dual<T> tanh(const Dual<T>& x) {
  const T value = tanh(x.value);
  return {value, (T(Index{1}) - value * value) * x.tangent};
}

// The derivative at 0 is 0; where a set contains 0 it is every slope from -1 to 1.
template <Field T>
constexpr Dual<T> abs(const Dual<T>& x) {
  const T zero(Index{0});
  if (x.value > zero) return x;
  if (x.value < zero) return -x;
  if constexpr (set_valued<T>) {
    return {abs(x.value), hull(x.tangent, -x.tangent)};
  } else if constexpr (carries_tangent<T>) {
    return {abs(x.value), zero};
  } else {
    return is_nan(x.value) ? Dual<T>{x.value, x.value} : Dual<T>{zero, zero};
  }
}

// p * x^(p-1) * dx. At x = 0 the tangent is 0 for p > 1, and for every p along a zero tangent.
template <Transcendental T>
constexpr Dual<T> pow(const Dual<T>& x, double p) {
  if (p == 1) return x;
  const T zero(Index{0});
  const T value = static_cast<T>(pow(x.value, p));
  if (p == 0) return {value, zero};
  if constexpr (!carries_tangent<T>) {  // inside a nested dual the factor below still carries the second derivative
    if (x.value == zero && (p > 1 || x.tangent == zero)) return {value, zero};
  }
  return {value, T(p) * static_cast<T>(pow(x.value, p - 1)) * x.tangent};
}

}  // namespace cenote
