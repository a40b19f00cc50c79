// Maximum and minimum: the scan for the winner and the tie policies (M1 to M8). max.hpp and min.hpp give it its names.
#pragma once

#include "cenote/scalar.hpp"
#include "cenote/window.hpp"

namespace cenote {

// Who receives the gradient when several taps are maximal (M7).
enum class Ties : std::uint8_t { first, all, split };

// Largest = true: maximum; false: minimum, the same with the order turned round.
template <bool Largest>
struct Extreme {
  Ties ties = Ties::first;

  static constexpr const char* name = Largest ? "max" : "min";
  static constexpr bool linear = false;
  static constexpr bool selects = true;  // one tap, the winner, decides the value
  template <class T>
  static constexpr bool accepts = Scalar<T>;

  [[nodiscard]] static constexpr std::optional<Problem> problem() { return {}; }

  // The first extreme tap in row-major order; of NaNs the last one. The window has a real tap.
  template <class T>
  [[nodiscard]] static constexpr Tap<T> winner(const Window<T>& window) {
    Tap<T> best = window.front();
    window.each([&](const Tap<T>& tap) {
      if (takes(tap.value, best.value)) best = tap;
    });
    return best;
  }

  template <class T>
  [[nodiscard]] constexpr T value(const Window<T>& window) const {
    if (window.empty()) return T(Index{0});  // M5
    if constexpr (set_valued<T>) return join(window);
    T best = window.front().value;
    bool nan = false;  // looked for on the side: the loop then has no branch
    window.each([&](const Tap<T>& tap) {
      best = beats(tap.value, best) ? tap.value : best;
      nan = nan || is_nan(tap.value);
    });
    if (nan) best = winner(window).value;
    if constexpr (carries_tangent<T>) {
      if (ties != Ties::first) return anchor(best) + tied_tangents(window, best);
    }
    return best;
  }

  template <class T, class Give>
  constexpr void weights(const Window<T>& window, Give&& give) const {
    if (window.empty()) return;
    if constexpr (set_valued<T>) {
      set_weights(window, give);
    } else {
      const Tap<T> best = winner(window);
      if (ties == Ties::first) return give(best, One{});
      const Index count = ties == Ties::split ? ties_of(window, best.value) : 1;
      window.each([&](const Tap<T>& tap) {
        if (!tied(tap.value, best.value)) return;
        if (ties == Ties::all)
          give(tap, One{});
        else
          give(tap, Over{count});
      });
    }
  }

 private:
  template <class T>
  static constexpr bool beats(const T& challenger, const T& best) {
    return Largest ? challenger > best : best > challenger;
  }

  // The scan's one rule: strictly better wins, so the first of equals stays (M2); a NaN wins over all before it (M3).
  template <class T>
  static constexpr bool takes(const T& challenger, const T& best) {
    return beats(challenger, best) || is_nan(challenger);
  }

  // NaN against NaN counts as equal: with NaN as the value, the tied taps are the NaN taps (M7).
  template <class T>
  static constexpr bool tied(const T& x, const T& best) {
    return x == best || (is_nan(x) && is_nan(best));
  }

  template <class T>
  static constexpr Index ties_of(const Window<T>& window, const T& best) {
    Index count = 0;
    window.each([&](const Tap<T>& tap) { count += tied(tap.value, best) ? 1 : 0; });
    return count;
  }

  // The tangent of the extreme where several taps share it: the sum or the mean of theirs (M7).
  template <class T>
  [[nodiscard]] constexpr T tied_tangents(const Window<T>& window, const T& best) const {
    T sum(Index{0});
    window.each([&](const Tap<T>& tap) {
      if (tied(tap.value, best)) sum = sum + perturbation(tap.value);
    });
    return ties == Ties::all ? sum : sum / T(ties_of(window, best));
  }

  // The set of all values that the extreme can take, for scalars that are sets.
  template <class T>
  static constexpr T join(const Window<T>& window) {
    T best = window.front().value;
    window.each([&](const Tap<T>& tap) { best = Largest ? max_of(best, tap.value) : min_of(best, tap.value); });
    return best;
  }

  // Every tap that can win has a weight between 0 and 1; if there is only one, its weight is 1.
  template <class T, class Give>
  static constexpr void set_weights(const Window<T>& window, Give&& give) {
    const T best = join(window);
    Index candidates = 0;
    window.each([&](const Tap<T>& tap) { candidates += beats(best, tap.value) ? 0 : 1; });
    window.each([&](const Tap<T>& tap) {
      if (beats(best, tap.value)) return;
      if (candidates == 1)
        give(tap, One{});
      else
        give(tap, hull(T(Index{0}), T(Index{1})));
    });
  }
};

}  // namespace cenote
