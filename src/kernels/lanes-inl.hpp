// Moving lanes between memory and tiles. A tile holds cells x lanes, lanes innermost: every step of a kernel on a tile
// is one operation on whole vectors. Memory where cells are innermost is transposed on the way, in registers.
#if defined(CENOTE_KERNELS_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_LANES_INL_HPP
#undef CENOTE_KERNELS_LANES_INL_HPP
#else
#define CENOTE_KERNELS_LANES_INL_HPP
#endif

#include <hwy/cache_control.h>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cenote/view.hpp"
#include "kernels/highway.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes of a whole vector, as a constant: the targets in use have fixed sizes.
template <class T>
inline constexpr Index vector_lanes = static_cast<Index>(hn::MaxLanes(hn::ScalableTag<T>()));

// Elements from `p` on to the next one at which an aligned vector begins, or a whole vector of them.
template <class T>
Index UntilAligned(const T* p) {
  constexpr Index n = vector_lanes<T>;
  return n - static_cast<Index>(reinterpret_cast<std::uintptr_t>(p) / sizeof(T)) % n;
}

// The masks of a tag; Highway 1.0.3 names them on some targets only.
template <class D>
using MaskOf = decltype(hn::MaskFromVec(hn::Zero(D())));

// The unsigned integer that moves a T.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                   std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// The lanes of two vectors that `lanes` names: those from the number of lanes on are b's.
template <class D, class V = hn::VFromD<D>>
HWY_INLINE V LookupTwo(D d, V a, V b, hn::VFromD<hn::RebindToSigned<D>> lanes) {
  static_assert(sizeof(hn::TFromD<D>) >= 4);
  const hn::RebindToSigned<D> di;
#if HWY_TARGET <= HWY_AVX3
  using VI = hn::VFromD<decltype(di)>;
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return hn::BitCast(d, VI{_mm512_permutex2var_epi32(hn::BitCast(di, a).raw, lanes.raw, hn::BitCast(di, b).raw)});
  else
    return hn::BitCast(d, VI{_mm512_permutex2var_epi64(hn::BitCast(di, a).raw, lanes.raw, hn::BitCast(di, b).raw)});
#else
  using I = hn::TFromD<decltype(di)>;
  constexpr I n = static_cast<I>(hn::MaxLanes(d));
  const auto within = hn::IndicesFromVec(d, hn::And(lanes, hn::Set(di, static_cast<I>(n - 1))));
  const auto first = hn::RebindMask(d, hn::Lt(lanes, hn::Set(di, n)));
  return hn::IfThenElse(first, hn::TableLookupLanes(a, within), hn::TableLookupLanes(b, within));
#endif
}

template <class D>
inline constexpr Index tag_bytes = static_cast<Index>(hn::MaxLanes(D()) * sizeof(hn::TFromD<D>));

// 16 bytes from each of the pointers p[0], p[step], p[2 * step], ... as the blocks of one vector.
template <class D, class T>
HWY_INLINE hn::VFromD<D> LoadBlocks(D d, const T* const* p, Index step, Index offset) {
  if constexpr (tag_bytes<D> == 16) {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(p[0]) + offset);
  } else {
    const hn::Half<D> half;
    const Index upper = tag_bytes<D> / 32 * step;
    return hn::Combine(d, LoadBlocks(half, p + upper, step, offset), LoadBlocks(half, p, step, offset));
  }
}
template <class D, class T>
HWY_INLINE void StoreBlocks(D d, hn::VFromD<D> v, T* const* p, Index step, Index offset) {
  if constexpr (tag_bytes<D> == 16) {
    hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D>*>(p[0]) + offset);
  } else {
    const hn::Half<D> half;
    StoreBlocks(half, hn::LowerHalf(half, v), p, step, offset);
    StoreBlocks(half, hn::UpperHalf(half, v), p + tag_bytes<D> / 32 * step, step, offset);
  }
}

// The same from places that are `pitch` apart.
template <class D, class T>
HWY_INLINE hn::VFromD<D> LoadBlocks(D d, const T* base, Index pitch) {
  if constexpr (tag_bytes<D> == 16) {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(base));
  } else {
    const hn::Half<D> half;
    const Index upper = tag_bytes<D> / 32 * pitch;
    return hn::Combine(d, LoadBlocks(half, base + upper, pitch), LoadBlocks(half, base, pitch));
  }
}

// Transposes the squares of 16-byte blocks: `side` vectors, each block a row.
template <class D, int side>
HWY_INLINE void TransposeBlocks(D d, hn::VFromD<D> (&rows)[side]) {
  for (int stage = 1; stage < side; stage *= 2) {
    hn::VFromD<D> next[side];
    HWY_UNROLL(16)
    for (int i = 0; i < side / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + side / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + side / 2]);
    }
    HWY_UNROLL(16)
    for (int i = 0; i < side; ++i) rows[i] = next[i];
  }
}

// Neighbouring cells of as many rows as fill a vector, `pitch` apart: cells of one column side by side.
template <class Raw>
inline constexpr int square_side = 16 / sizeof(Raw);
template <class Raw>
using Square = hn::VFromD<hn::ScalableTag<Bits<Raw>>>[square_side<Raw>];
template <class Raw>
HWY_INLINE void LoadSquare(const Raw* rows, Index pitch, Square<Raw>& square) {
  const hn::ScalableTag<Bits<Raw>> d;
  constexpr int side = square_side<Raw>;
  HWY_UNROLL(16)
  for (int r = 0; r < side; ++r) square[r] = LoadBlocks(d, rows + r * pitch, side * pitch);
  TransposeBlocks(d, square);
}
// Asks for cells of the rows that follow these, at the beginning of every cache line: so many short rows are more than
// the hardware follows.
template <class Raw>
HWY_INLINE void ForeseeRows(const Raw* rows, Index pitch, Index cell) {
  constexpr Index n = vector_lanes<Raw>;
  if (cell % (64 / Index{sizeof(Raw)}) != 0) return;
  const Raw* next = rows + n * pitch + cell;
  HWY_UNROLL(16)
  for (Index l = 0; l < n; ++l, next += pitch) hwy::Prefetch(next);
}

// tile[cell * pitch + lane] = p[lane][cell], for one vector of lanes. `D` is a tag of the vector, a whole one if it is
// not given.
template <class T, class D = hn::ScalableTag<Bits<T>>>
HWY_NOINLINE void LoadTransposed(const T* const* pointers, Index cells, T* tile, Index pitch, D d = D()) {
  using U = Bits<T>;
  constexpr int side = 16 / sizeof(U);
  constexpr Index lanes = static_cast<Index>(hn::MaxLanes(D()));
  auto* to = reinterpret_cast<U*>(tile);
  if (cells < side) {
    for (Index c = 0; c < cells; ++c)
      for (Index l = 0; l < lanes; ++l) tile[c * pitch + l] = pointers[l][c];
    return;
  }
  // The lanes behind these are asked for ahead of their turn: so many short rows are more than the hardware follows.
  const Index ahead = pointers[lanes - 1] - pointers[0] + (pointers[1] - pointers[0]);
  for (Index c = 0; c < cells; c += side) {
    if (c % (64 / Index{sizeof(T)}) == 0)
      for (Index l = 0; l < lanes; ++l) hwy::Prefetch(pointers[l] + c + ahead);
    if (c + side > cells) c = cells - side;  // the last square overlaps the one before
    hn::VFromD<decltype(d)> rows[side];
    HWY_UNROLL(16)
    for (int r = 0; r < side; ++r) rows[r] = LoadBlocks(d, pointers + r, side, c);
    TransposeBlocks(d, rows);
    HWY_UNROLL(16)
    for (int r = 0; r < side; ++r) hn::StoreU(rows[r], d, to + (c + r) * pitch);
  }
}

// p[lane][cell] = tile[cell * pitch + lane], for one vector of lanes.
template <class T, class D = hn::ScalableTag<Bits<T>>>
HWY_NOINLINE void StoreTransposed(const T* tile, Index pitch, Index cells, T* const* pointers, D d = D()) {
  using U = Bits<T>;
  constexpr int side = 16 / sizeof(U);
  constexpr Index lanes = static_cast<Index>(hn::MaxLanes(D()));
  const auto* from = reinterpret_cast<const U*>(tile);
  if (cells < side) {
    for (Index l = 0; l < lanes; ++l)
      for (Index c = 0; c < cells; ++c) pointers[l][c] = tile[c * pitch + l];
    return;
  }
  for (Index c = 0; c < cells; c += side) {
    if (c + side > cells) c = cells - side;
    hn::VFromD<decltype(d)> rows[side];
    HWY_UNROLL(16)
    for (int r = 0; r < side; ++r) rows[r] = hn::LoadU(d, from + (c + r) * pitch);
    TransposeBlocks(d, rows);
    HWY_UNROLL(16)
    for (int r = 0; r < side; ++r) StoreBlocks(d, rows[r], pointers + r, side, c);
  }
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
