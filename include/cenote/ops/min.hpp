// Minimum: the smallest real tap, by the rules of the maximum with the order turned round. Padding never takes part.
#pragma once

#include "cenote/ops/extreme.hpp"

namespace cenote {

struct Min {
  Ties ties = Ties::first;

  static constexpr const char* name = "min";
  static constexpr bool linear = false;
  static constexpr bool selects = true;  // one tap, the winner, decides the value
  template <class T>
  static constexpr bool accepts = Scalar<T>;

  [[nodiscard]] static constexpr std::optional<Problem> problem() { return {}; }
  template <class T>
  [[nodiscard]] static constexpr Tap<T> winner(const Window<T>& window) {
    return detail::Extreme<false>::winner(window);
  }
  template <class T>
  [[nodiscard]] constexpr T value(const Window<T>& window) const {
    return detail::Extreme<false>::value(window, ties);
  }
  template <class T, class Give>
  constexpr void weights(const Window<T>& window, Give&& give) const {
    detail::Extreme<false>::weights(window, ties, give);
  }
};

}  // namespace cenote
