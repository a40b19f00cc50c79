// Average: the sum of the real taps over a divisor (A1 to A7).
#pragma once

#include "cenote/scalar.hpp"
#include "cenote/window.hpp"

namespace cenote {

// What an average divides by: the taps in the padded input (A2), the real taps only, or a number of the caller's (A3).
struct Divisor {
  enum class Kind : std::uint8_t { padded, real, fixed };
  Kind kind = Kind::padded;
  Index number = 0;

  constexpr Divisor() = default;
  constexpr Divisor(Index fixed) : kind(Kind::fixed), number(fixed) {}  // NOLINT(google-explicit-constructor)
  static const Divisor padded, real;

 private:
  constexpr explicit Divisor(Kind k) : kind(k) {}
};
inline constexpr Divisor Divisor::padded{Kind::padded};
inline constexpr Divisor Divisor::real{Kind::real};

struct Average {
  Divisor divisor = Divisor::padded;

  static constexpr const char* name = "average";
  static constexpr bool linear = true;  // the JVP is the operator itself (A6)
  static constexpr bool selects = false;
  template <class T>
  static constexpr bool accepts = Scalar<T>;

  [[nodiscard]] constexpr std::optional<Problem> problem() const {
    if (divisor.kind == Divisor::Kind::fixed && divisor.number == 0) return Problem{Rule::divisor_nonzero, "divisor"};
    return {};
  }
  template <class T>
  [[nodiscard]] constexpr T value(const Window<T>& window) const {
    if (window.empty()) return T(Index{0});  // A4
    Total<T> sum;
    window.each([&](const Tap<T>& tap) { sum.add(tap.value); });
    return sum.mean(count(window));
  }
  template <class T, class Give>
  constexpr void weights(const Window<T>& window, Give&& give) const {
    window.each([&](const Tap<T>& tap) { give(tap, Over{count(window)}); });
  }

 private:
  template <class T>
  [[nodiscard]] constexpr Index count(const Window<T>& window) const {
    switch (divisor.kind) {
      case Divisor::Kind::fixed: return divisor.number;
      case Divisor::Kind::real: return window.real();
      case Divisor::Kind::padded: break;
    }
    return window.padded();
  }
};

}  // namespace cenote
