// Sum of the real taps. Padding adds 0; a window without a real tap sums to 0. Integer sums are clamped to their type.
#pragma once

#include "cenote/scalar.hpp"
#include "cenote/window.hpp"

namespace cenote {

struct Sum {
  static constexpr const char* name = "sum";
  static constexpr bool linear = true;
  static constexpr bool selects = false;
  template <class T>
  static constexpr bool accepts = Scalar<T>;

  [[nodiscard]] static constexpr std::optional<Problem> problem() { return {}; }
  template <class T>
  [[nodiscard]] static constexpr T value(const Window<T>& window) {
    Total<T> sum;
    window.each([&](const Tap<T>& tap) { sum.add(tap.value); });
    return sum.total();
  }
  template <class T, class Give>
  static constexpr void weights(const Window<T>& window, Give&& give) {
    window.each([&](const Tap<T>& tap) { give(tap, One{}); });
  }
};

}  // namespace cenote
