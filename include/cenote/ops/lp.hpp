// Lp norm of the real taps: (sum |x|^p)^(1/p), p >= 1 (L1). Padding adds 0.
//
//   y = c * (sum (|x|/c)^p)^(1/p)        dy/dx = sign(x) * (|x|/y)^(p-1)
//
// hold for every constant c > 0; c = the largest magnitude keeps the powers from overflowing and underflowing (L2).
#pragma once

#include "cenote/scalar.hpp"
#include "cenote/window.hpp"

namespace cenote {

struct Lp {
  double p = 2;

  static constexpr const char* name = "lp";
  static constexpr bool linear = false;
  static constexpr bool selects = false;
  template <class T>
  static constexpr bool accepts = Transcendental<T>;

  [[nodiscard]] constexpr std::optional<Problem> problem() const {
    if (!(p >= 1) || is_infinite(p)) return Problem{Rule::p_legal, "p", -1, 0, 0, p};
    return {};
  }

  template <class T>
  [[nodiscard]] constexpr T value(const Window<T>& window) const {
    if (window.empty()) return T(Index{0});
    return static_cast<T>(norm(window, largest(window)));
  }

  template <class T, class Give>
  constexpr void weights(const Window<T>& window, Give&& give) const {
    if (window.empty()) return;
    const Wide<T> scale = largest(window);
    if (scale == Wide<T>(Index{0})) return;  // all taps are 0: the subgradient 0 (L3)
    if (is_infinite(scale)) return infinite_weights(window, give);
    const Wide<T> y = norm(window, scale);
    window.each([&](const Tap<T>& tap) {
      const Wide<T> x(tap.value);
      give(tap, is_nan(scale) ? scale : sign(x) * pow(abs(x) / y, p - 1));
    });
  }

 private:
  // The limit of equal, ever larger taps: the infinite ones share, the others vanish (L4).
  template <class T, class Give>
  constexpr void infinite_weights(const Window<T>& window, Give&& give) const {
    Index count = 0;
    window.each([&](const Tap<T>& tap) { count += is_infinite(tap.value) ? 1 : 0; });
    const Wide<T> weight = pow(Wide<T>(count), (1 - p) / p);
    window.each([&](const Tap<T>& tap) {
      if (is_infinite(tap.value)) give(tap, sign(Wide<T>(tap.value)) * weight);
    });
  }

  // The largest magnitude, as a constant; NaN if there is one. It is 0 only if every tap is.
  template <class T>
  static constexpr Wide<T> largest(const Window<T>& window) {
    const Wide<T> zero(Index{0});
    Wide<T> best = zero;
    bool all_zero = true;
    window.each([&](const Tap<T>& tap) {
      const Wide<T> magnitude = anchor(abs(Wide<T>(tap.value)));
      if (magnitude > best || is_nan(magnitude)) best = magnitude;
      all_zero = all_zero && abs(Wide<T>(tap.value)) == zero;
    });
    return best == zero && !all_zero ? Wide<T>(Index{1}) : best;  // an interval [0, inf] has the anchor 0
  }

  template <class T>
  [[nodiscard]] constexpr Wide<T> norm(const Window<T>& window, const Wide<T>& scale) const {
    if (scale == Wide<T>(Index{0}) || is_nan(scale) || is_infinite(scale)) return scale;
    Total<Wide<T>> sum;
    window.each([&](const Tap<T>& tap) { sum.add(pow(abs(Wide<T>(tap.value)) / scale, p)); });
    return scale * pow(sum.total(), 1 / p);
  }
};

}  // namespace cenote
