// Halves: IEEE binary16 (f16) and bfloat16 (bf16) as storage types that convert exactly and calculate through float.
// No vector code lives here, and only the standard library is included: scalar.hpp builds on this header.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cenote {

namespace detail {

// Both formats, told apart by the widths of their fields. `Self` is the type that inherits it.
template <class Self, int ExponentBits, int MantissaBits>
struct HalfFormat {
  static_assert(ExponentBits + MantissaBits == 15 && ExponentBits <= 8);

  static constexpr int mantissa_bits = MantissaBits;
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr std::uint32_t infinity_bits = ((1u << ExponentBits) - 1) << MantissaBits;
  static constexpr std::uint32_t quiet_bit = 1u << (MantissaBits - 1);

  std::uint16_t bits;

  // Left uninitialised like a float, so that arrays cost nothing; `f16{}` is +0.
  HalfFormat() = default;
  explicit constexpr HalfFormat(float x) : bits(round(static_cast<double>(x))) {}
  explicit constexpr HalfFormat(double x) : bits(round(x)) {}
  template <std::integral I>
  explicit constexpr HalfFormat(I x) : bits(round(to_odd(x))) {}

  static constexpr Self from_bits(std::uint16_t pattern) {
    Self x{};
    x.bits = pattern;
    return x;
  }

  explicit constexpr operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    std::uint32_t wide = magnitude << (23 - MantissaBits);
    if constexpr (ExponentBits < 8) {
      constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
      constexpr float smallest = std::bit_cast<float>(static_cast<std::uint32_t>(128 - bias - MantissaBits) << 23);
      if (magnitude < (1u << MantissaBits)) {  // a multiplication normalises the subnormals
        wide = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * smallest);
      } else if (magnitude < infinity_bits) {
        wide += rebias;
      }
    }
    if (magnitude >= infinity_bits) wide |= magnitude > infinity_bits ? 0x7fc00000u : 0x7f800000u;
    return std::bit_cast<float>(sign | wide);
  }
  explicit constexpr operator double() const { return static_cast<double>(static_cast<float>(*this)); }

  // float carries enough extra bits that rounding its result again is the same as rounding once.
  friend constexpr Self operator+(Self a, Self b) { return Self(static_cast<float>(a) + static_cast<float>(b)); }
  friend constexpr Self operator-(Self a, Self b) { return Self(static_cast<float>(a) - static_cast<float>(b)); }
  friend constexpr Self operator*(Self a, Self b) { return Self(static_cast<float>(a) * static_cast<float>(b)); }
  friend constexpr Self operator/(Self a, Self b) { return Self(static_cast<float>(a) / static_cast<float>(b)); }
  friend constexpr Self operator-(Self a) { return from_bits(static_cast<std::uint16_t>(a.bits ^ 0x8000u)); }
  friend constexpr bool operator==(Self a, Self b) { return static_cast<float>(a) == static_cast<float>(b); }
  friend constexpr bool operator<(Self a, Self b) { return static_cast<float>(a) < static_cast<float>(b); }
  friend constexpr bool operator>(Self a, Self b) { return b < a; }
  friend constexpr bool operator<=(Self a, Self b) { return static_cast<float>(a) <= static_cast<float>(b); }
  friend constexpr bool operator>=(Self a, Self b) { return b <= a; }

 private:
  // To nearest, ties to even, in one rounding; through float it would be two.
  static constexpr std::uint16_t round(double x) {
    const std::uint64_t source = std::bit_cast<std::uint64_t>(x);
    const std::uint32_t sign = static_cast<std::uint32_t>(source >> 48) & 0x8000u;
    const std::uint64_t fraction = source & ((std::uint64_t{1} << 52) - 1);
    const int field = static_cast<int>(source >> 52) & 0x7ff;
    const int exponent = field - 1023;

    std::uint32_t magnitude = infinity_bits;
    if (field == 0x7ff && fraction != 0) {
      magnitude |= quiet_bit | static_cast<std::uint32_t>(fraction >> (52 - MantissaBits));
    } else if (field == 0) {
      magnitude = 0;  // the subnormals of binary64 are far below half of the smallest half
    } else if (exponent <= bias) {
      const int target = exponent + bias > 1 ? exponent + bias : 1;  // exponent field; 1 is shared with the subnormals
      const int below = target - (exponent + bias);
      const int shift = 52 - MantissaBits + below < 63 ? 52 - MantissaBits + below : 63;
      const std::uint64_t significand = fraction | (std::uint64_t{1} << 52);
      const std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1);
      const std::uint64_t tie = std::uint64_t{1} << (shift - 1);
      std::uint32_t kept = static_cast<std::uint32_t>(significand >> shift);
      if (rest > tie || (rest == tie && kept % 2 == 1)) ++kept;
      // The leading bit and a carry of the rounding move into the exponent field by themselves, up to infinity.
      magnitude = (static_cast<std::uint32_t>(target - 1) << MantissaBits) + kept;
    }
    return static_cast<std::uint16_t>(sign | magnitude);
  }

  // An integer as a double whose last bit remembers what was cut off, so that `round` still sees every tie rightly.
  template <std::integral I>
  static constexpr double to_odd(I x) {
    const bool negative = std::is_signed_v<I> && x < I{0};
    std::uint64_t magnitude =
        negative ? std::uint64_t{0} - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    if ((magnitude >> 53) != 0) magnitude = ((magnitude >> 11) | ((magnitude & 0x7ffu) != 0 ? 1u : 0u)) << 11;
    return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  }
};

}  // namespace detail

// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
struct f16 : detail::HalfFormat<f16, 5, 10> {
  using detail::HalfFormat<f16, 5, 10>::HalfFormat;
};

// bfloat16: the upper half of a float.
struct bf16 : detail::HalfFormat<bf16, 8, 7> {
  using detail::HalfFormat<bf16, 8, 7>::HalfFormat;
};

template <class T>
concept Half = std::same_as<T, f16> || std::same_as<T, bf16>;

template <Half T>
constexpr bool is_infinite(const T& x) {
  return (x.bits & 0x7fffu) == T::infinity_bits;
}

template <Half T>
constexpr T abs(T x) {
  return T::from_bits(static_cast<std::uint16_t>(x.bits & 0x7fffu));
}

// Evaluated in double and rounded once.
template <Half T>
T exp(T x) {
  return T(std::exp(static_cast<double>(x)));
}
template <Half T>
T log(T x) {
  return T(std::log(static_cast<double>(x)));
}
template <Half T>
T pow(T x, double p) {
  return T(std::pow(static_cast<double>(x), p));
}

namespace detail {

template <Half T>
struct HalfLimits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool is_iec559 = std::same_as<T, f16>;  // the only one of the two that IEEE 754 defines
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = false;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr int radix = 2;
  static constexpr int digits = T::mantissa_bits + 1;
  static constexpr int digits10 = T::mantissa_bits * 30103 / 100000;  // log10(2) = 0.30103
  static constexpr int max_digits10 = digits * 30103 / 100000 + 2;
  static constexpr int min_exponent = 2 - T::bias;
  static constexpr int min_exponent10 = (min_exponent - 1) * 30103 / 100000;
  static constexpr int max_exponent = T::bias + 1;
  static constexpr int max_exponent10 = max_exponent * 30103 / 100000;

  static constexpr T min() noexcept { return pattern(1u << T::mantissa_bits); }
  static constexpr T max() noexcept { return pattern(T::infinity_bits - 1); }
  static constexpr T lowest() noexcept { return -max(); }
  static constexpr T epsilon() noexcept {
    return pattern(static_cast<std::uint32_t>(T::bias - T::mantissa_bits) << T::mantissa_bits);
  }
  static constexpr T round_error() noexcept { return T(0.5); }
  static constexpr T infinity() noexcept { return pattern(T::infinity_bits); }
  static constexpr T quiet_NaN() noexcept { return pattern(T::infinity_bits | T::quiet_bit); }
  static constexpr T signaling_NaN() noexcept { return quiet_NaN(); }
  static constexpr T denorm_min() noexcept { return pattern(1); }

 private:
  static constexpr T pattern(std::uint32_t bits) { return T::from_bits(static_cast<std::uint16_t>(bits)); }
};

}  // namespace detail
}  // namespace cenote

template <>
class std::numeric_limits<cenote::f16> : public cenote::detail::HalfLimits<cenote::f16> {};
template <>
class std::numeric_limits<cenote::bf16> : public cenote::detail::HalfLimits<cenote::bf16> {};
