#include "convert.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace cenote::cli {

namespace {

template <class To, class From>
To converted(From x) {
  if constexpr (std::integral<To> && std::integral<From>) {
    if (std::cmp_less(x, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (std::cmp_greater(x, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else if constexpr (std::integral<To>) {
    const double rounded = std::nearbyint(static_cast<double>(x));
    // One above the largest value is a power of two, and exact where the largest value itself may not be.
    const double beyond = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (std::isnan(rounded)) return 0;
    if (rounded >= beyond) return std::numeric_limits<To>::max();
    if (rounded <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(rounded);
  } else if constexpr (Half<To> && Half<From>) {
    return To(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

void convert(Element from, const std::byte* source, Element to, std::byte* target, Index elements) {
  with_element(from, [&]<class From>() {
    with_element(to, [&]<class To>() {
      const auto* in = reinterpret_cast<const From*>(source);
      auto* out = reinterpret_cast<To*>(target);
      for (Index i = 0; i < elements; ++i) out[i] = converted<To>(in[i]);
    });
  });
}

}  // namespace cenote::cli
