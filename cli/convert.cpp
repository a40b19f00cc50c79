#include "convert.hpp"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "targets/interleave.hpp"

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

template <class From, class To>
void convert_each(const From* __restrict in, To* __restrict out, Index elements) {
  for (Index i = 0; i < elements; ++i) out[i] = converted<To>(in[i]);
}

}  // namespace

void convert(Element from, const std::byte* source, Element to, std::byte* target, Index elements) {
  with_element(from, [&]<class From>() {
    with_element(to, [&]<class To>() {
      convert_each(reinterpret_cast<const From*>(source), reinterpret_cast<To*>(target), elements);
    });
  });
}

// Line by line, so that what lies between the two steps stays in the first-level cache.
void convert_apart(Element from, const std::byte* source, Element to, std::byte* target, const Lines& lines) {
  const Index row = lines.columns * lines.channels;
  std::vector<std::byte> planes(static_cast<std::size_t>(row * size_of(from)));
  for (Index line = 0; line < lines.count; ++line) {
    split_channels(size_of(from), source + line * row * size_of(from), lines.channels, lines.columns, planes.data(),
                   lines.columns);
    convert(from, planes.data(), to, target + line * row * size_of(to), row);
  }
}

void convert_together(Element from, const std::byte* source, Element to, std::byte* target, const Lines& lines) {
  const Index row = lines.columns * lines.channels;
  std::vector<std::byte> planes(static_cast<std::size_t>(row * size_of(to)));
  for (Index line = 0; line < lines.count; ++line) {
    convert(from, source + line * row * size_of(from), to, planes.data(), row);
    join_channels(size_of(to), planes.data(), lines.columns, lines.channels, lines.columns,
                  target + line * row * size_of(to));
  }
}

}  // namespace cenote::cli
