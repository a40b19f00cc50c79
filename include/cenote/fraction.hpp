// Fraction: exact, constexpr arithmetic on quotients of two 64-bit integers, so that identities hold in static_assert.
// Nothing is ever rounded: a result that does not fit throws, and in a constant expression does not compile.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>

#include "cenote/scalar.hpp"

namespace cenote {

// Always reduced, with a positive denominator, so equal numbers have equal parts.
class Fraction {
 public:
  constexpr Fraction() = default;
  template <std::integral I>
  explicit constexpr Fraction(I integer) : Fraction(static_cast<Exact>(integer), Exact{1}, Reduce{}) {}
  template <std::floating_point F>
  Fraction(F) = delete;  // would round
  constexpr Fraction(Index numerator, Index denominator)
      : Fraction(static_cast<Exact>(numerator), static_cast<Exact>(denominator), Reduce{}) {}

  [[nodiscard]] constexpr Index numerator() const { return numerator_; }
  [[nodiscard]] constexpr Index denominator() const { return denominator_; }

  // No product of two 64-bit numbers, nor the sum of two such products below, leaves 128 bits.
  friend constexpr Fraction operator+(const Fraction& a, const Fraction& b) {
    return {a.wide_numerator() * b.denominator_ + b.wide_numerator() * a.denominator_,
            a.wide_denominator() * b.denominator_, Reduce{}};
  }
  friend constexpr Fraction operator-(const Fraction& a, const Fraction& b) {
    return {a.wide_numerator() * b.denominator_ - b.wide_numerator() * a.denominator_,
            a.wide_denominator() * b.denominator_, Reduce{}};
  }
  friend constexpr Fraction operator-(const Fraction& a) {
    return {-a.wide_numerator(), a.wide_denominator(), Reduce{}};
  }
  friend constexpr Fraction operator*(const Fraction& a, const Fraction& b) {
    return {a.wide_numerator() * b.numerator_, a.wide_denominator() * b.denominator_, Reduce{}};
  }
  friend constexpr Fraction operator/(const Fraction& a, const Fraction& b) {
    return {a.wide_numerator() * b.denominator_, a.wide_denominator() * b.numerator_, Reduce{}};
  }
  friend constexpr bool operator==(const Fraction& a, const Fraction& b) = default;
  friend constexpr std::strong_ordering operator<=>(const Fraction& a, const Fraction& b) {
    return a.wide_numerator() * b.denominator_ <=> b.wide_numerator() * a.denominator_;
  }

 private:
  __extension__ using Exact = __int128;
  struct Reduce {};

  constexpr Fraction(Exact numerator, Exact denominator, Reduce) {
    if (denominator == 0) throw std::domain_error("Fraction: division by zero");
    if (denominator < 0) {
      numerator = -numerator;
      denominator = -denominator;
    }
    Exact divisor = numerator < 0 ? -numerator : numerator;
    for (Exact rest = denominator; rest != 0;) divisor = std::exchange(rest, divisor % rest);
    numerator_ = narrow(numerator / divisor);
    denominator_ = narrow(denominator / divisor);
  }

  static constexpr Index narrow(Exact x) {
    if (x < std::numeric_limits<Index>::min() || x > std::numeric_limits<Index>::max()) {
      throw std::overflow_error("Fraction: the exact result does not fit into 64 bits; use Rational");
    }
    return static_cast<Index>(x);
  }

  [[nodiscard]] constexpr Exact wide_numerator() const { return numerator_; }
  [[nodiscard]] constexpr Exact wide_denominator() const { return denominator_; }

  Index numerator_ = 0;
  Index denominator_ = 1;
};

}  // namespace cenote
