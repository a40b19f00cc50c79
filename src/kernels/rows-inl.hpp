// Reducing the last axis where its cells are neighbours in memory and vectors stand along it. Small windows read the
// row at several offsets, after it has been split into the phases of the stride; all others turn many rows into lanes.
#if defined(CENOTE_KERNELS_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_ROWS_INL_HPP
#undef CENOTE_KERNELS_ROWS_INL_HPP
#else
#define CENOTE_KERNELS_ROWS_INL_HPP
#endif

#include <algorithm>

#include "kernels/passes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

inline constexpr Index max_lanes = 256;        // side by side in one task
inline constexpr Index prefetch_bytes = 2048;  // how far ahead of its use a row is asked for
inline constexpr Index max_phase_taps = 16;    // of windows that are reduced in phases

// Elements between two phases, and of all phases of a row: whole vectors may be read behind the last output.
template <class Raw>
constexpr Index PhasePitch(const PooledAxis& axis) {
  constexpr Index n = vector_lanes<Raw>;
  return (axis.outputs_per_block + (axis.kernel - 1) * axis.step / axis.stride + n - 1) / n * n + 2 * n;
}
template <class Raw>
constexpr Index PhaseLength(const PooledAxis& axis) {
  return axis.stride * PhasePitch<Raw>(axis);
}

// One vector per phase from `s` vectors of a row.
template <Index s, class U>
HWY_INLINE void SplitPhases(const U* HWY_RESTRICT from, U* HWY_RESTRICT to, Index pitch) {
  const hn::ScalableTag<U> d;
  constexpr Index n = vector_lanes<U>;
  if constexpr (s == 1) {
    hn::StoreU(hn::LoadU(d, from), d, to);
  } else if constexpr (s == 2) {
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + n);
    hn::StoreU(hn::ConcatEven(d, b, a), d, to);
    hn::StoreU(hn::ConcatOdd(d, b, a), d, to + pitch);
  } else if constexpr (s == 3) {
    hn::VFromD<decltype(d)> a, b, c;
    hn::LoadInterleaved3(d, from, a, b, c);
    hn::StoreU(a, d, to);
    hn::StoreU(b, d, to + pitch);
    hn::StoreU(c, d, to + 2 * pitch);
  } else {
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + n);
    const auto e = hn::LoadU(d, from + 2 * n), f = hn::LoadU(d, from + 3 * n);
    const auto even0 = hn::ConcatEven(d, b, a), even1 = hn::ConcatEven(d, f, e);
    const auto odd0 = hn::ConcatOdd(d, b, a), odd1 = hn::ConcatOdd(d, f, e);
    hn::StoreU(hn::ConcatEven(d, even1, even0), d, to);
    hn::StoreU(hn::ConcatEven(d, odd1, odd0), d, to + pitch);
    hn::StoreU(hn::ConcatOdd(d, even1, even0), d, to + 2 * pitch);
    hn::StoreU(hn::ConcatOdd(d, odd1, odd0), d, to + 3 * pitch);
  }
}

// Splits what outputs begin .. end-1 see of a row into the phases of the stride s: tap w of output o goes to phase
// w % s, place o - begin + w / s. Where windows reach beyond the row, an extreme sees the nearest tap of its own once
// more (which changes no winner), a sum sees 0.
template <Index s, class E, bool repeat>
HWY_INLINE void FillPhasesBy(const PooledAxis& axis, Index begin, Index end, const E* const* rows, Index count,
                             Index pitch, E* to, Index length) {
  using U = Bits<E>;
  const Index low = axis.low - begin * s;                                    // position p goes to place p + low
  const Index last = (end - 1 - begin) * s + (axis.kernel - 1) * axis.step;  // place of the last tap
  const auto nearest = [&](Index p) {                                        // of the same class modulo the step
    if (axis.step == 1) return p < 0 ? Index{0} : axis.in - 1;
    const Index back = p < 0 ? (-p + axis.step - 1) / axis.step : -((p - axis.in) / axis.step + 1);
    return std::clamp(p + back * axis.step, Index{0}, axis.in - 1);
  };
  const Index first = std::max(Index{0}, -low);  // positions that anyone reads
  const Index stop = std::max(first, std::min(axis.in, last + 1 - low));
  const Index left = std::min(low, last + 1);
  const Index right = std::max(Index{0}, low + stop);
  constexpr Index chunk = s * vector_lanes<U>;
  const Index aligned = std::min(stop, first + (s - (first + low) % s) % s);  // in phase 0
  const Index chunks = (stop - aligned) / chunk;
  const Index behind = aligned + chunks * chunk;
  const Index again = behind - chunk + (stop - behind) / s * s;  // the last chunk, overlapping
  for (Index r = 0; r < count; ++r, to += length) {
    const E* HWY_RESTRICT row = rows[r];
    const auto put = [&](Index u, E value) { to[s == 1 ? u : u % s * pitch + u / s] = value; };
    for (Index u = 0; u < left; ++u) put(u, repeat ? row[nearest(u - low)] : E{});
    for (Index u = right; u <= last; ++u) put(u, repeat ? row[nearest(u - low)] : E{});
    const auto* from = reinterpret_cast<const U*>(row);
    auto* out = reinterpret_cast<U*>(to);
    if (chunks == 0) {
      for (Index p = first; p < stop; ++p) put(p + low, row[p]);
      continue;
    }
    for (Index p = first; p < aligned; ++p) put(p + low, row[p]);
    const U* HWY_RESTRICT f = from + aligned;
    U* HWY_RESTRICT o = out + (aligned + low) / s;
    for (Index i = 0; i < chunks; ++i) {
      for (Index line = 0; line < chunk; line += 64 / Index{sizeof(U)})
        hwy::Prefetch(f + prefetch_bytes / Index{sizeof(U)} + line);
      SplitPhases<s>(f, o, pitch);
      f += chunk;
      o += vector_lanes<U>;
    }
    if (behind < stop) {
      SplitPhases<s>(from + again, out + (again + low) / s, pitch);
      for (Index p = again + chunk; p < stop; ++p) put(p + low, row[p]);
    }
  }
}
template <class E, bool repeat>
HWY_NOINLINE void FillPhases(const PooledAxis& axis, Index begin, Index end, const E* const* rows, Index count,
                             Index pitch, E* to, Index length) {
  switch (axis.stride) {
    case 1: return FillPhasesBy<1, E, repeat>(axis, begin, end, rows, count, pitch, to, length);
    case 2: return FillPhasesBy<2, E, repeat>(axis, begin, end, rows, count, pitch, to, length);
    case 3: return FillPhasesBy<3, E, repeat>(axis, begin, end, rows, count, pitch, to, length);
    default: return FillPhasesBy<4, E, repeat>(axis, begin, end, rows, count, pitch, to, length);
  }
}

// Numbers of taps that lie outside the row become those of the nearest tap inside: it was a repetition that won.
template <class S>
void ClampNumbers(const PooledAxis& axis, Index first, Index stop, typename S::Lane* row, Index width) {
  using Number = Bits<typename S::Lane>;
  auto* numbers = reinterpret_cast<Number*>(row + width);
  const auto clamp = [&](Index begin, Index end) {
    for (Index o = begin; o < end; ++o) {
      const Taps& window = axis.taps[o];
      if (window.count == 0) continue;
      Number& number = numbers[o - first];
      number =
          static_cast<Number>(std::clamp(static_cast<Index>(number), window.first, window.first + window.count - 1));
    }
  };
  clamp(first, std::min(stop, axis.run_begin));
  clamp(std::max(first, std::max(axis.run_begin, axis.run_end)), stop);
}

// All outputs of some rows from their phases, which stand `length` apart for each input.
template <class S, int taps>
HWY_INLINE void ReducePhasesBy(const PooledAxis& axis, const typename S::Raw* source, Index pitch,
                               typename S::Lane* const* rows, Index count, Index width) {
  constexpr Index step = vector_lanes<typename S::Lane>;
  Index offsets[max_phase_taps];
  const Index kernel = taps > 0 ? taps : axis.kernel;
  for (Index t = 0; t < kernel; ++t) offsets[t] = t * axis.step % axis.stride * pitch + t * axis.step / axis.stride;
  const Index length = axis.stride * pitch;
  for (Index r = 0; r < count; ++r, source += S::inputs * length) {
    typename S::Lane* HWY_RESTRICT row = rows[r];
    for (Index o = 0; o < width; o += step) {
      typename S::V acc[S::parts];
      S::First(acc, source + offsets[0] + o, length, 0, 1);
      const auto add = [&](Index t) HWY_ATTR {
        typename S::V later[S::parts];
        S::First(later, source + offsets[t] + o, length, t, 1);
        S::Merge(acc, later);
      };
      if constexpr (taps > 0) {
        HWY_UNROLL(16)
        for (int t = 1; t < taps; ++t) add(t);
      } else {
        for (Index t = 1; t < kernel; ++t) add(t);
      }
      S::Store(acc, row + o, width);
    }
  }
}
template <class S>
HWY_NOINLINE void ReducePhases(const PooledAxis& axis, const typename S::Raw* source, Index pitch,
                               typename S::Lane* const* rows, Index count, Index width) {
  switch (axis.kernel) {
    case 2: return ReducePhasesBy<S, 2>(axis, source, pitch, rows, count, width);
    case 3: return ReducePhasesBy<S, 3>(axis, source, pitch, rows, count, width);
    default: return ReducePhasesBy<S, 0>(axis, source, pitch, rows, count, width);
  }
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
