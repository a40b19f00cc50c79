// Any function of a window as an operator: forward only, since nobody knows its derivative.
#pragma once

#include <utility>

#include "cenote/scalar.hpp"
#include "cenote/window.hpp"

namespace cenote {

// value = function(window). The window is a range of taps; it may be empty.
template <class F>
struct Reduce {
  F function;

  static constexpr const char* name = "reduce";
  static constexpr bool linear = false;
  static constexpr bool selects = false;
  template <class T>
  static constexpr bool accepts = std::is_invocable_r_v<T, const F&, const Window<T>&>;

  [[nodiscard]] static constexpr std::optional<Problem> problem() { return {}; }
  template <class T>
  [[nodiscard]] constexpr T value(const Window<T>& window) const {
    return function(window);
  }
};
template <class F>
Reduce(F) -> Reduce<F>;

// A left fold over the real taps, in row-major order, from `init`.
template <class T, class F>
constexpr auto fold(T init, F step) {
  return Reduce{[init = std::move(init), step = std::move(step)](const Window<T>& window) {
    T out = init;
    window.each([&](const Tap<T>& tap) { out = step(out, tap.value); });
    return out;
  }};
}

}  // namespace cenote
