// One pass: reduces one axis of a tile, line by line. A line is `inner` cells of `lanes` lanes side by side; windows
// combine whole lines. Direct passes cost taps x lines; scanning passes cost three merges a line whatever the window.
#if defined(CENOTE_KERNELS_PASSES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_PASSES_INL_HPP
#undef CENOTE_KERNELS_PASSES_INL_HPP
#else
#define CENOTE_KERNELS_PASSES_INL_HPP
#endif

#include "kernels/states-inl.hpp"
#include "plan/plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

using plan::PooledAxis;
using plan::Taps;

// What a pass works on. Pitches are in elements of the array concerned.
struct PassShape {
  const PooledAxis* axis;
  Index begin, end;           // outputs
  Index origin, limit;        // positions that the source holds
  Index in_pitch, out_pitch;  // between neighbouring lines
  Index inner, lanes;
  Index in_part;     // between the parts of the source: `lanes`, unless it is the caller's memory
  Index multiplier;  // of tap numbers: what one step along this axis adds to a winner's number
};

// The source of a pass: taps of the input (`first`), or pieces that an earlier pass left.
template <class S, bool first>
struct Source {
  using Element = std::conditional_t<first, typename S::Raw, typename S::Lane>;
  static constexpr Index parts = first ? S::inputs : S::parts;
  static HWY_INLINE void Load(typename S::V (&s)[S::parts], const Element* p, Index pitch, Index number,
                              double weight) {
    if constexpr (first)
      S::First(s, p, pitch, number, weight);
    else
      S::Load(s, p, pitch, number, weight);
  }
};

// Outputs begin .. end-1 tap by tap. `taps` is their common number of taps if it is known to the compiler, or 0.
template <class S, bool first, int taps>
HWY_INLINE void DirectRun(const PassShape& shape, Index begin, Index end,
                          const typename Source<S, first>::Element* HWY_RESTRICT in,
                          typename S::Lane* HWY_RESTRICT out) {
  using From = Source<S, first>;
  const PooledAxis& axis = *shape.axis;
  constexpr Index step = vector_lanes<typename S::Lane>;
  // Where lines hold one part, their cells and lanes are one loop.
  constexpr bool flat = S::parts == 1 && From::parts == 1;
  const Index lanes = flat ? shape.inner * shape.lanes : shape.lanes;
  const Index cells = flat ? 1 : shape.inner;
  const Index next = axis.step * shape.in_pitch;
  const Index multiplier = shape.multiplier;
  const Index in_part = shape.in_part;
  for (Index o = begin; o < end; ++o) {
    const Taps& window = axis.taps[o];
    const Index count = taps > 0 ? taps : window.count;
    const Index number = window.first * multiplier;
    const auto* from = in + (window.start - shape.origin) * shape.in_pitch;
    auto* to = out + (o - shape.begin) * shape.out_pitch;
    const double* weights = S::weighted ? axis.weights + window.start : nullptr;
    for (Index cell = 0; cell < cells; ++cell) {
      for (Index lane = 0; lane < lanes; lane += step) {
        if (lane + step > lanes) lane = lanes - step;  // the last vector of a line may overlap the one before
        const auto* p = from + lane;
        typename S::V acc[S::parts];
        From::Load(acc, p, in_part, number, S::weighted ? weights[0] : 1.0);
        const auto add = [&](Index tap) HWY_ATTR {
          typename S::V later[S::parts];
          From::Load(later, p + tap * next, in_part, number + tap * multiplier,
                     S::weighted ? weights[tap * axis.step] : 1.0);
          S::Merge(acc, later);
        };
        if constexpr (taps > 0) {
          HWY_UNROLL(16)
          for (int tap = 1; tap < taps; ++tap) add(tap);
        } else {
          for (Index tap = 1; tap < count; ++tap) add(tap);
        }
        S::Store(acc, to + lane, lanes);
      }
      from += From::parts * lanes;
      to += S::parts * lanes;
    }
  }
}

template <class S>
HWY_INLINE void ClearLine(const PassShape& shape, typename S::Lane* to) {
  std::memset(to, 0, static_cast<std::size_t>(shape.inner * S::parts * shape.lanes) * sizeof(typename S::Lane));
}

template <class S, bool first>
HWY_NOINLINE void DirectPass(const PassShape& shape, const typename Source<S, first>::Element* in,
                             typename S::Lane* out) {
  const PooledAxis& axis = *shape.axis;
  const Index run_begin = HWY_MIN(HWY_MAX(shape.begin, axis.run_begin), shape.end);
  const Index run_end = HWY_MAX(run_begin, HWY_MIN(shape.end, axis.run_end));
  const auto border = [&](Index begin, Index end) HWY_ATTR {
    for (Index o = begin; o < end; ++o) {
      if (axis.taps[o].count == 0)
        ClearLine<S>(shape, out + (o - shape.begin) * shape.out_pitch);
      else
        DirectRun<S, first, 0>(shape, o, o + 1, in, out);
    }
  };
  border(shape.begin, run_begin);
  switch (axis.kernel) {
    case 2: DirectRun<S, first, 2>(shape, run_begin, run_end, in, out); break;
    case 3: DirectRun<S, first, 3>(shape, run_begin, run_end, in, out); break;
    default: DirectRun<S, first, 0>(shape, run_begin, run_end, in, out);
  }
  border(run_end, shape.end);
}

// What a scan does with one vector of a line.
template <class S, bool first>
struct ScanStep {
  using From = Source<S, first>;
  using Element = typename From::Element;
  using V = typename S::V;
  static constexpr Index line = S::parts * vector_lanes<typename S::Lane>;  // of the scratch
  // The line that a tap is loaded from.
  struct Tap {
    const Element* line;
    Index part, number;
    double weight;
  };
  static HWY_INLINE void Load(V (&s)[S::parts], const Tap& tap, Index offset) {
    From::Load(s, tap.line + offset, tap.part, tap.number, tap.weight);
  }
  static HWY_INLINE void Save(const V (&s)[S::parts], typename S::Lane* to) {
    S::Store(s, to, vector_lanes<typename S::Lane>);
  }
  static HWY_INLINE void Later(V (&prefix)[S::parts], const Tap& tap, Index offset) {
    V later[S::parts];
    Load(later, tap, offset);
    S::Merge(prefix, later);
  }
  static HWY_INLINE void Earlier(V (&suffix)[S::parts], const Tap& tap, Index offset, typename S::Lane* to) {
    V earlier[S::parts];
    Load(earlier, tap, offset);
    S::MergeBefore(earlier, suffix);
    Save(suffix, to);
  }
  // A window is a prefix (`suffix` is null), a suffix, or one merged with the other.
  static HWY_INLINE void Put(const V (&prefix)[S::parts], bool merges, const typename S::Lane* suffix, Index shift,
                             typename S::Lane* to, Index pitch) {
    V result[S::parts];
    if (suffix == nullptr) {
      HWY_UNROLL(16)
      for (int part = 0; part < S::parts; ++part) result[part] = prefix[part];
    } else {
      S::Load(result, suffix, vector_lanes<typename S::Lane>, 0, 1);
      if (merges) S::Merge(result, prefix);
    }
    S::Shift(result, shift);
    S::Store(result, to, pitch);
  }
};

// The van Herk/Gil-Werman scan of vectors c.. from `column` on. Positions are cut into blocks of axis.block taps,
// counted from the start of the axis; a window is the suffix of one block merged with the prefix of the next. Nothing
// is subtracted, so NaN, infinities and large values stay inside their windows (A5). `scratch` holds two blocks of
// suffixes.
template <class S, bool first, int... c>
HWY_INLINE void ScanColumns(std::integer_sequence<int, c...>, const PassShape& shape, Index column,
                            const typename Source<S, first>::Element* in, typename S::Lane* out,
                            typename S::Lane* scratch) {
  using Step = ScanStep<S, first>;
  using V = typename S::V;
  const PooledAxis& axis = *shape.axis;
  constexpr Index step = vector_lanes<typename S::Lane>;
  constexpr int columns = sizeof...(c);
  constexpr Index line = columns * Step::line;
  const Index per_cell = shape.lanes / step;
  const auto offset = [&](int number, int parts) {
    return (column + number) / per_cell * parts * shape.lanes + (column + number) % per_cell * step;
  };
  const Index from_offset[] = {offset(c, Source<S, first>::parts)...};
  const Index to_offset[] = {offset(c, S::parts)...};
  const Index pitch = axis.step * shape.in_pitch;
  for (Index phase = 0; phase < axis.step; ++phase) {  // positions that a step apart see each other
    const auto* base = in + (phase - shape.origin) * shape.in_pitch;
    const auto index_of = [&](Index at) { return axis.step == 1 ? at : (at - phase) / axis.step; };
    const auto tap = [&](Index q) -> typename Step::Tap {
      return {base + q * pitch, shape.in_part, q * shape.multiplier,
              S::weighted ? axis.weights[q * axis.step + phase] : 1.0};
    };
    const auto mine = [&](const Taps& window) {
      return window.count > 0 && (axis.step == 1 || window.start % axis.step == phase);
    };
    const Index length = (axis.in - phase + axis.step - 1) / axis.step;
    const Index low = HWY_MAX(Index{0}, (shape.origin - phase + axis.step - 1) / axis.step);
    const Index high = HWY_MIN(length, (shape.limit - phase + axis.step - 1) / axis.step);
    Index next = shape.begin;  // output
    Index from = 0;            // its first tap
    Index last = -1;           // and its last one
    const auto advance = [&] {
      while (next < shape.end && !mine(axis.taps[next])) ++next;
      if (next >= shape.end) {
        last = -1;
        return;
      }
      from = index_of(axis.taps[next].start);
      last = from + axis.taps[next].count - 1;
    };
    advance();
    auto* previous = scratch;
    auto* current = scratch + axis.block * line;
    for (Index start = low / axis.block * axis.block; start < high && next < shape.end; start += axis.block) {
      const Index stop = HWY_MIN(start + axis.block, length);
      const Index begin = HWY_MAX(start, low);
      const Index end = HWY_MIN(stop, high);
      if (end == stop) {
        V suffix[columns][S::parts];
        auto* to = current + (end - 1 - start) * line;
        (Step::Load(suffix[c], tap(end - 1), from_offset[c]), ...);
        (Step::Save(suffix[c], to + c * Step::line), ...);
        for (Index q = end - 1; q-- > begin;) {
          to -= line;
          (Step::Earlier(suffix[c], tap(q), from_offset[c], to + c * Step::line), ...);
        }
      }
      V prefix[columns][S::parts];
      (Step::Load(prefix[c], tap(begin), from_offset[c]), ...);
      for (Index q = begin; q < end; ++q) {
        if (q > begin) (Step::Later(prefix[c], tap(q), from_offset[c]), ...);
        while (q == last) {
          auto* to = out + (next - shape.begin) * shape.out_pitch;
          const Index shift = (axis.taps[next].first - from) * shape.multiplier;
          const bool merges = from < start;  // otherwise it begins with its block, or ends with it
          const auto* suffix = merges ? previous + (from - start + axis.block) * line : current + (from - start) * line;
          if (from == start)
            (Step::Put(prefix[c], false, nullptr, shift, to + to_offset[c], shape.lanes), ...);
          else
            (Step::Put(prefix[c], merges, suffix + c * Step::line, shift, to + to_offset[c], shape.lanes), ...);
          ++next;
          advance();
        }
      }
      std::swap(previous, current);
    }
  }
}

template <class S>
constexpr Index ScanScratch(Index block) {  // in lanes
  return 2 * block * 4 * S::parts * vector_lanes<typename S::Lane>;
}

template <class S, bool first>
HWY_NOINLINE void ScanPass(const PassShape& shape, const typename Source<S, first>::Element* in, typename S::Lane* out,
                           typename S::Lane* scratch) {
  for (Index o = shape.begin; o < shape.end; ++o)
    if (shape.axis->taps[o].count == 0) ClearLine<S>(shape, out + (o - shape.begin) * shape.out_pitch);
  const Index columns = shape.inner * shape.lanes / vector_lanes<typename S::Lane>;
  Index column = 0;
  constexpr std::make_integer_sequence<int, 4> four;
  constexpr std::make_integer_sequence<int, 1> one;
  for (; column + 4 <= columns; column += 4) ScanColumns<S, first>(four, shape, column, in, out, scratch);
  for (; column < columns; ++column) ScanColumns<S, first>(one, shape, column, in, out, scratch);
}

// Reduces one axis of one array of lines.
template <class S, bool first>
HWY_INLINE void Pass(const PassShape& shape, const typename Source<S, first>::Element* in, typename S::Lane* out,
                     typename S::Lane* scratch) {
  constexpr bool differs = first && !S::plain;  // a plain state's first taps are pieces already
  if (shape.axis->block > 0)
    ScanPass<S, differs>(shape, in, out, scratch);
  else
    DirectPass<S, differs>(shape, in, out);
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
