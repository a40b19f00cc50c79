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
  } else if constexpr (std::integral<To> && sizeof(To) <= 2 && std::floating_point<From>) {
    // The same as below in fewer steps: what is added has no bits for fractions.
    constexpr From low = std::numeric_limits<To>::min();
    constexpr From high = std::numeric_limits<To>::max();
    constexpr From whole = From{3} * (Index{1} << (std::numeric_limits<From>::digits - 2));
    const From number = x == x ? x : From{0};
    const From above = number > low ? number : low;
    const From within = above < high ? above : high;
    return static_cast<To>(static_cast<int>((within + whole) - whole));
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

// In blocks of a known size, of which compilers make vectors.
template <class From, class To>
void convert_each(const From* __restrict in, To* __restrict out, Index elements) {
  constexpr Index block = 64;
  Index i = 0;
  for (; i + block <= elements; i += block)
    for (Index j = i; j < i + block; ++j) out[j] = converted<To>(in[j]);
  for (; i < elements; ++i) out[i] = converted<To>(in[i]);
}

// The channels of pixels and the planes of a line, for numbers of channels that the compiler knows: 0 for any.
template <Index known, bool apart, class From, class To>
void convert_lines(const From* __restrict in, To* __restrict out, const Lines& lines) {
  const Index channels = known > 0 ? known : lines.channels;
  const Index columns = lines.columns;
  for (Index line = 0; line < lines.count; ++line, in += columns * channels, out += columns * channels)
    for (Index x = 0; x < columns; ++x)
      for (Index c = 0; c < channels; ++c) {
        const Index pixel = x * channels + c;
        const Index plane = c * columns + x;
        out[apart ? plane : pixel] = converted<To>(in[apart ? pixel : plane]);
      }
}

template <bool apart>
void convert_lines(Element from, const std::byte* source, Element to, std::byte* target, const Lines& lines) {
  with_element(from, [&]<class From>() {
    with_element(to, [&]<class To>() {
      const auto* in = reinterpret_cast<const From*>(source);
      auto* out = reinterpret_cast<To*>(target);
      switch (lines.channels) {
        case 2: return convert_lines<2, apart>(in, out, lines);
        case 3: return convert_lines<3, apart>(in, out, lines);
        case 4: return convert_lines<4, apart>(in, out, lines);
        default: return convert_lines<0, apart>(in, out, lines);
      }
    });
  });
}

}  // namespace

void convert(Element from, const std::byte* source, Element to, std::byte* target, Index elements) {
  with_element(from, [&]<class From>() {
    with_element(to, [&]<class To>() {
      convert_each(reinterpret_cast<const From*>(source), reinterpret_cast<To*>(target), elements);
    });
  });
}

void convert_apart(Element from, const std::byte* source, Element to, std::byte* target, const Lines& lines) {
  convert_lines<true>(from, source, to, target, lines);
}

void convert_together(Element from, const std::byte* source, Element to, std::byte* target, const Lines& lines) {
  convert_lines<false>(from, source, to, target, lines);
}

}  // namespace cenote::cli
