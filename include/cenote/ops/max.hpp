// Maximum: the largest real tap (M1 to M8). Padding never takes part.
#pragma once

#include "cenote/ops/extreme.hpp"

namespace cenote {

struct Max {
  Ties ties = Ties::first;

  static constexpr const char* name = "max";
  static constexpr bool linear = false;
  static constexpr bool selects = true;  // one tap, the winner, decides the value
  template <class T>
  static constexpr bool accepts = Scalar<T>;

  [[nodiscard]] static constexpr std::optional<Problem> problem() { return {}; }
  template <class T>
  [[nodiscard]] static constexpr Tap<T> winner(const Window<T>& window) {
    return detail::Extreme<true>::winner(window);
  }
  template <class T>
  [[nodiscard]] constexpr T value(const Window<T>& window) const {
    return detail::Extreme<true>::value(window, ties);
  }
  template <class T, class Give>
  constexpr void weights(const Window<T>& window, Give&& give) const {
    detail::Extreme<true>::weights(window, ties, give);
  }
};

}  // namespace cenote
