// Scalars: what the definitions ask of a number, the one list of machine scalars, and how each of them sums.
// Composite scalars (dual.hpp, interval.hpp, rational.hpp) specialise the same traits in their own headers.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cenote/error.hpp"
#include "cenote/half.hpp"

namespace cenote {

// The one list of machine scalars: X(name, type).
#define CENOTE_MACHINE_SCALARS(X) \
  X(f64, double)                  \
  X(f32, float)                   \
  X(f16, ::cenote::f16)           \
  X(bf16, ::cenote::bf16)         \
  X(i8, std::int8_t)              \
  X(i16, std::int16_t)            \
  X(i32, std::int32_t)            \
  X(i64, std::int64_t)            \
  X(u8, std::uint8_t)             \
  X(u16, std::uint16_t)           \
  X(u32, std::uint32_t)           \
  X(u64, std::uint64_t)

template <class T>
concept Scalar = std::copyable<T> && std::constructible_from<T, Index> && requires(const T a, const T b) {
  T(a + b);
  T(a - b);
  T(a * b);
  T(a / b);
  { a > b } -> std::convertible_to<bool>;
  { a == b } -> std::convertible_to<bool>;
};

template <class T>
concept IntegerScalar = Scalar<T> && std::integral<T>;

// Scalars whose division is division: the ones that derivatives are defined for.
template <class T>
concept Field = Scalar<T> && !IntegerScalar<T>;

using std::abs;
using std::exp;
using std::log;
using std::pow;
using std::tanh;

// Scalars with the functions of smooth max and Lp. Rationals have none, so those do not compile for them.
template <class T>
concept Transcendental = Field<T> && std::constructible_from<T, double> && requires(const T a) {
  exp(a);
  log(a);
  abs(a);
  pow(a, 1.0);
};

// NaN is the only value that differs from itself.
template <class T>
constexpr bool is_nan(const T& x) {
  return !(x == x);
}

template <class T>
constexpr bool is_infinite(const T& x) {
  if constexpr (std::floating_point<T>)
    return x > std::numeric_limits<T>::max() || x < std::numeric_limits<T>::lowest();
  return false;
}

// -1, 0 or 1; of NaN, NaN.
template <class T>
constexpr T sign(const T& x) {
  const T zero(Index{0});
  if (is_nan(x)) return x;
  return x > zero ? T(Index{1}) : (zero > x ? T(Index{-1}) : zero);
}

// ---- sums -------------------------------------------------------------------------------------------------------
// A sum has add(x), total() and mean(n); it starts at +0 (A5) and is wider than its storage (A7).

// For exact and composite scalars: their own addition.
template <class T>
struct PlainSum {
  T sum = T(Index{0});
  constexpr void add(const T& x) { sum = sum + x; }
  [[nodiscard]] constexpr T total() const { return sum; }
  [[nodiscard]] constexpr T mean(Index n) const { return sum / T(n); }
};

// For f32 and the halves: binary64 neither overflows nor saturates on fewer than 2^29 taps.
template <class T>
struct DoubleSum {
  double sum = 0;
  constexpr void add(T x) { sum += static_cast<double>(x); }
  [[nodiscard]] constexpr T total() const { return static_cast<T>(sum); }
  [[nodiscard]] constexpr T mean(Index n) const { return static_cast<T>(sum / static_cast<double>(n)); }
};

// For f64: Knuth's two-sum keeps what each addition lost. When the sum leaves the range, everything continues scaled
// by 2^-64, so that a representable mean is never lost to an intermediate overflow.
struct CompensatedSum {
  static constexpr double large = std::numeric_limits<double>::max() / 4;
  static constexpr double down = 0x1p-64, up = 0x1p+64;
  double sum = 0, lost = 0, scale = 1;

  constexpr void add(double x) {
    if (!is_nan(x) && !is_infinite(x) && !is_infinite(sum)) {
      if (scale == 1 && (x > large || x < -large || sum > large || sum < -large)) {
        sum *= down;
        lost *= down;
        scale = down;
      }
      x *= scale;
      const double next = sum + x;
      const double part = next - sum;
      lost += (sum - (next - part)) + (x - part);
      sum = next;
    } else {  // infinities and NaN take their ordinary course and leave nothing behind
      sum = sum + x;
      lost = 0;
    }
  }
  [[nodiscard]] constexpr double total() const { return scale == 1 ? sum + lost : (sum + lost) * up; }
  [[nodiscard]] constexpr double mean(Index n) const {
    const double average = (sum + lost) / static_cast<double>(n);
    return scale == 1 ? average : average * up;
  }
};

// For integers: the exact sum. A total outside the type is clamped to it; a mean rounds half to even (A7).
template <std::integral T>
struct IntegerSum {
  __extension__ using Wide = std::conditional_t<(sizeof(T) < 8), std::int64_t, __int128>;
  Wide sum = 0;
  constexpr void add(T x) { sum += static_cast<Wide>(x); }
  [[nodiscard]] constexpr T total() const { return clamp(sum); }
  [[nodiscard]] constexpr T mean(Index n) const {
    const Magnitude dividend = magnitude(sum), divisor = magnitude(static_cast<Wide>(n));
    Magnitude quotient = dividend / divisor;
    const Magnitude rest = dividend % divisor, above = divisor - rest;
    if (rest > above || (rest == above && quotient % 2 != 0)) ++quotient;
    return clamp((sum < 0) != (n < 0) ? -static_cast<Wide>(quotient) : static_cast<Wide>(quotient));
  }

 private:
  // Unsigned, because the smallest divisor has no negative; half to even is the same on both sides of 0.
  __extension__ using Magnitude = std::conditional_t<(sizeof(T) < 8), std::uint64_t, unsigned __int128>;
  static constexpr Magnitude magnitude(Wide x) {
    return x < 0 ? Magnitude{0} - static_cast<Magnitude>(x) : static_cast<Magnitude>(x);
  }
  static constexpr T clamp(Wide x) {
    if (x > static_cast<Wide>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    if (x < static_cast<Wide>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
    return static_cast<T>(x);
  }
};

// ---- traits -----------------------------------------------------------------------------------------------------
//   Sum       how taps are added
//   Wide      where exp, log and the weights are evaluated
//   Gradient  where a VJP adds the contributions of overlapping windows
template <class T>
struct ScalarTraits {
  using Sum = PlainSum<T>;
  using Wide = T;
  using Gradient = T;
};
template <>
struct ScalarTraits<float> {
  using Sum = DoubleSum<float>;
  using Wide = double;
  using Gradient = float;
};
template <>
struct ScalarTraits<double> {
  using Sum = CompensatedSum;
  using Wide = long double;
  using Gradient = double;
};
template <Half T>
struct ScalarTraits<T> {
  using Sum = DoubleSum<T>;
  using Wide = double;
  using Gradient = float;
};
template <IntegerScalar T>
struct ScalarTraits<T> {
  using Sum = IntegerSum<T>;
  using Wide = T;
  using Gradient = T;
};

template <class T>
using Total = typename ScalarTraits<T>::Sum;
template <class T>
using Wide = typename ScalarTraits<T>::Wide;
template <class T>
using Gradient = typename ScalarTraits<T>::Gradient;

// A scalar that stands for a set of numbers (intervals): `>` is then only "certainly greater".
template <class T>
inline constexpr bool set_valued = false;

// A scalar that carries a tangent (dual numbers).
template <class T>
inline constexpr bool carries_tangent = false;

// A constant near x: the shift of smooth max and Lp, whose choice changes no exact result.
template <class T>
constexpr T anchor(const T& x) {
  return x;
}

// What x carries beside its value: 0, except for dual numbers.
template <class T>
constexpr T perturbation(const T&) {
  return T(Index{0});
}

// ---- weights ----------------------------------------------------------------------------------------------------
// A weight of one and of one n-th. They are types so that a gradient is selected or divided, never multiplied (M8).
struct One {};
struct Over {
  Index n;
};

template <class G>
constexpr G weigh(One, const G& gradient) {
  return gradient;
}
template <class G>
constexpr G weigh(Over weight, const G& gradient) {
  return gradient / G(weight.n);
}
template <class W, class G>
constexpr G weigh(const W& weight, const G& gradient) {
  return static_cast<G>(weight * static_cast<W>(gradient));
}

}  // namespace cenote
