// Smooth maximum: log-sum-exp with inverse temperature beta (S1 to S6). Negative beta gives the smooth minimum.
//
//   y = c + log(sum exp(beta * (x - c))) / beta        dy/dx = exp(beta * (x - c)) / sum
//
// hold for every constant c; c = the window's extreme keeps every exponent at or below 0, so nothing overflows (S3).
#pragma once

#include "cenote/ops/max.hpp"
#include "cenote/ops/min.hpp"

namespace cenote {

// Padding taps count as zeros, or are not there (S1).
enum class Padding : std::uint8_t { zeros, ignore };

struct SmoothMax {
  double beta = 0;  // 0 is no legal value (S4): the caller chooses
  Padding padding = Padding::zeros;

  static constexpr const char* name = "smooth_max";
  static constexpr bool linear = false;
  static constexpr bool selects = false;
  template <class T>
  static constexpr bool accepts = Transcendental<T>;

  [[nodiscard]] constexpr std::optional<Problem> problem() const {
    if (beta == 0 || is_nan(beta) || is_infinite(beta)) return Problem{Rule::beta_legal, "beta", -1, 0, 0, beta};
    return {};
  }

  template <class T>
  [[nodiscard]] constexpr T value(const Window<T>& window) const {
    const Index zeros = padding_taps(window);
    if (window.real() + zeros == 0) return T(Index{0});  // S5
    const T extreme = extreme_of(window, zeros);
    if (is_nan(extreme)) return extreme;
    if (is_infinite(extreme)) return beta > 0 ? Max{Ties::split}.value(window) : Min{Ties::split}.value(window);
    const Wide<T> shift(extreme);
    return static_cast<T>(shift + log(normaliser(window, shift, zeros)) / Wide<T>(beta));
  }

  template <class T, class Give>
  constexpr void weights(const Window<T>& window, Give&& give) const {
    if (window.empty()) return;
    const Index zeros = padding_taps(window);
    const T extreme = extreme_of(window, zeros);
    if (is_nan(extreme)) {
      window.each([&](const Tap<T>& tap) { give(tap, Wide<T>(extreme)); });
    } else if (is_infinite(extreme)) {  // uniform over the infinite taps: S5
      if (beta > 0)
        Max{Ties::split}.weights(window, give);
      else
        Min{Ties::split}.weights(window, give);
    } else {
      const Wide<T> shift(extreme);
      const Wide<T> sum = normaliser(window, shift, zeros);
      window.each([&](const Tap<T>& tap) { give(tap, term(tap.value, shift) / sum); });
    }
  }

 private:
  template <class T>
  [[nodiscard]] constexpr Index padding_taps(const Window<T>& window) const {
    return padding == Padding::zeros ? window.padded() - window.real() : 0;
  }

  // The largest tap for positive beta, the smallest for negative, as a constant; padding taps are zeros.
  template <class T>
  [[nodiscard]] constexpr T extreme_of(const Window<T>& window, Index zeros) const {
    const T zero(Index{0});
    if (window.empty()) return zero;
    const T best = anchor(beta > 0 ? Max{}.value(window) : Min{}.value(window));
    const bool zero_is_beyond = beta > 0 ? zero > best : best > zero;
    return zeros > 0 && zero_is_beyond ? zero : best;
  }

  template <class T>
  [[nodiscard]] constexpr Wide<T> term(const T& x, const Wide<T>& shift) const {
    return exp(Wide<T>(beta) * (Wide<T>(x) - shift));
  }

  template <class T>
  [[nodiscard]] constexpr Wide<T> normaliser(const Window<T>& window, const Wide<T>& shift, Index zeros) const {
    Total<Wide<T>> sum;
    window.each([&](const Tap<T>& tap) { sum.add(term(tap.value, shift)); });
    const Wide<T> padded = sum.total();
    return zeros == 0 ? padded : padded + Wide<T>(zeros) * exp(Wide<T>(beta) * (Wide<T>(Index{0}) - shift));
  }
};

}  // namespace cenote
