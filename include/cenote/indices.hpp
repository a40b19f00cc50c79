// Winners as PyTorch numbers them, at the speed of memory: the numbers are those of spec::flat_indices.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "cenote/linearize.hpp"

namespace cenote {

namespace detail {

// A cell's flat index is that of its window's first tap, whether that lies in the input or not, plus the offset of the
// tap in the window.
class FlatPlaces {
 public:
  explicit FlatPlaces(const Geometry& g) : g_(g), box_(g.window_box()) {
    Dims plane = g.in();
    for (int a = 0; a < g.rank(); ++a)
      if (!g.axis(a).pooled()) plane[a] = 1;
    strides_ = row_major(plane);
    const Index taps = volume(box_);
    if (taps > most_tabled) return;
    table_.reserve(static_cast<std::size_t>(taps));
    for (Index tap = 0; tap < taps; ++tap) table_.push_back(computed(tap));
  }

  [[nodiscard]] Index first_tap(int a, Index o) const {
    return g_.axis(a).pooled() ? g_.axis(a).position(o, 0) * strides_[a] : 0;
  }
  [[nodiscard]] Index offset(Index tap) const {
    return table_.empty() ? computed(tap) : table_[static_cast<std::size_t>(tap)];
  }

 private:
  static constexpr Index most_tabled = 1 << 16;

  [[nodiscard]] Index computed(Index tap) const {
    Index out = 0;
    for (int a = box_.rank - 1; a >= 0; --a) {
      out += tap % box_[a] * g_.axis(a).dilation * strides_[a];
      tap /= box_[a];
    }
    return out;
  }

  const Geometry& g_;
  Dims box_, strides_;
  std::vector<Index> table_;
};

template <class U, class Number>
void flat_indices_of_width(const Geometry& g, const Winners& winners, std::span<Number> out) {
  const FlatPlaces places(g);
  Dims outer = g.out_kept();
  const int last = outer.rank - 1;
  std::vector<Index> along{0};  // first taps on the last axis
  if (last >= 0) {
    along.resize(static_cast<std::size_t>(outer[last]));
    for (std::size_t o = 0; o < along.size(); ++o) along[o] = places.first_tap(last, static_cast<Index>(o));
    outer[last] = outer[last] > 0 ? 1 : 0;
  }
  const std::uint8_t* from = winners.bytes().data();
  Number* to = out.data();
  for_each_index(outer, [&](const Dims& index) {
    Index row = 0;
    for (int a = 0; a < last; ++a) row += places.first_tap(a, index[a]);
    for (const Index first : along) {
      U winner;
      std::memcpy(&winner, from, sizeof(U));
      from += sizeof(U);
      const bool none = winners.has_none() && winner == static_cast<U>(Winners::none);
      const Index index_of_winner = none ? Winners::none : row + first + places.offset(static_cast<Index>(winner));
      *to++ = static_cast<Number>(index_of_winner);
    }
  });
}

template <class Number>
void flat_indices_into(const Geometry& g, const Winners& winners, std::span<Number> out) {
  const auto expected = static_cast<Index>(volume(g.out()));
  if (static_cast<Index>(out.size()) != expected)
    raise({Rule::element_count, "out", -1, static_cast<Index>(out.size()), expected}, "flat_indices");
  switch (winners.bytes_each()) {
    case 1: return flat_indices_of_width<std::uint8_t>(g, winners, out);
    case 2: return flat_indices_of_width<std::uint16_t>(g, winners, out);
    case 4: return flat_indices_of_width<std::uint32_t>(g, winners, out);
    default: return flat_indices_of_width<std::uint64_t>(g, winners, out);
  }
}

}  // namespace detail

// Into memory that is there: as many numbers as there are outputs, row-major. A flat index into the pooled axes without
// padding, or -1 (M6). The winners may stand on the last bytes of `out`: each is read before a number is written there.
inline void flat_indices(const Geometry& g, const Winners& winners, std::span<std::int64_t> out) {
  detail::flat_indices_into(g, winners, out);
}
// In numbers of 32 bits, which the caller knows to hold them.
inline void flat_indices(const Geometry& g, const Winners& winners, std::span<std::int32_t> out) {
  detail::flat_indices_into(g, winners, out);
}
inline Tensor<std::int64_t> flat_indices(const Geometry& g, const Winners& winners) {
  Tensor<std::int64_t> out(g.out());
  flat_indices(g, winners, out.data());
  return out;
}

}  // namespace cenote
