// Reducing the last axis where its cells are neighbours in memory: vectors stand along the row, tap by tap, and are
// split into the phases of the stride in registers. Nothing outside the row is read.
#if defined(CENOTE_KERNELS_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_ROWS_INL_HPP
#undef CENOTE_KERNELS_ROWS_INL_HPP
#else
#define CENOTE_KERNELS_ROWS_INL_HPP
#endif

#include <algorithm>

#include "kernels/passes-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// How the outputs of a block are read from a row: in chunks of one vector of outputs, the last of which may be more
// than there are. Chunks at the ends of the row see taps that do not exist; there an extreme sees the nearest tap once
// more (which changes no winner), and a sum sees 0. Lanes wide enough are moved into place in registers, by tables made
// here; others are copied between margins first.
template <class Raw, bool repeat>
class RowTable {
 public:
  using U = Bits<Raw>;
  static constexpr Index n = vector_lanes<Raw>;
  static constexpr bool in_registers = sizeof(Raw) >= 4;

  RowTable(const PooledAxis& axis, Index begin, Index end) : axis_(axis), begin_(begin), end_(end) {
    reads_ = ((axis.kernel - 1) * axis.step / axis.stride + 1) * axis.stride;
    chunks_ = (end - begin + n - 1) / n;
    inner_begin_ = 0;
    while (inner_begin_ < chunks_ && !Inside(inner_begin_)) ++inner_begin_;
    inner_end_ = inner_begin_;
    while (inner_end_ < chunks_ && Inside(inner_end_)) ++inner_end_;
  }
  void Ask(plan::Scratch& scratch) {
    const Index edges = chunks_ - (inner_end_ - inner_begin_);
    lanes_asked_ = scratch.Ask<U>(in_registers ? edges * reads_ * n : 0);
    real_asked_ = scratch.Ask<U>(in_registers && !repeat ? edges * reads_ * n : 0);
    bounds_asked_ = scratch.Ask<U>(edges * 2 * n);
    offsets_asked_ = scratch.Ask<Index>(edges * reads_);
  }
  void Fill(const plan::Scratch& scratch) {
    lanes_ = scratch.At(lanes_asked_);
    real_ = scratch.At(real_asked_);
    bounds_ = scratch.At(bounds_asked_);
    offsets_ = scratch.At(offsets_asked_);
    for (Index chunk = 0; chunk < chunks_; ++chunk) {
      if (inner_begin_ <= chunk && chunk < inner_end_) continue;
      const Index edge = Edge(chunk);
      for (Index l = 0; l < n; ++l) {
        const Taps& window = axis_.taps[std::min(begin_ + First(chunk) + l, end_ - 1)];
        bounds_[edge * 2 * n + l] = static_cast<U>(window.first);
        bounds_[edge * 2 * n + n + l] = static_cast<U>(window.first + window.count - 1);
      }
      if constexpr (in_registers) {
        for (Index read = 0; read < reads_; ++read) {
          const Index from = Position(chunk, read);
          const Index base = std::clamp(from, Index{0}, axis_.in - n);
          offsets_[edge * reads_ + read] = base;
          for (Index l = 0; l < n; ++l) {
            const Index at = (edge * reads_ + read) * n + l;
            lanes_[at] = static_cast<U>(Nearest(from + l) - base);
            if constexpr (!repeat) real_[at] = from + l >= 0 && from + l < axis_.in ? static_cast<U>(-1) : U{0};
          }
        }
      }
    }
  }

  [[nodiscard]] const PooledAxis& axis() const { return axis_; }
  [[nodiscard]] Index chunks() const { return chunks_; }
  [[nodiscard]] Index inner_begin() const { return inner_begin_; }
  [[nodiscard]] Index inner_end() const { return inner_end_; }
  // The first output of a chunk, counted from the block's.
  [[nodiscard]] static Index First(Index chunk) { return chunk * n; }
  [[nodiscard]] Index Edge(Index chunk) const {
    return chunk < inner_begin_ ? chunk : chunk - (inner_end_ - inner_begin_);
  }

  // The position that vector 0 of a chunk begins with.
  [[nodiscard]] HWY_INLINE Index Position(Index chunk) const {
    return (begin_ + First(chunk)) * axis_.stride - axis_.low;
  }
  // Of a chunk at an edge: numbers of the first taps of its outputs, and behind them those of the last.
  [[nodiscard]] const U* Bounds(Index chunk) const { return bounds_ + Edge(chunk) * 2 * n; }
  // And of its reads: where they begin, which of their lanes go where, and which are real.
  [[nodiscard]] const Index* Offsets(Index chunk) const { return offsets_ + Edge(chunk) * reads_; }
  [[nodiscard]] const U* LanesOf(Index chunk) const { return lanes_ + Edge(chunk) * reads_ * n; }
  [[nodiscard]] const U* RealOf(Index chunk) const { return real_ + Edge(chunk) * reads_ * n; }

  // Positions that rows between margins have before and behind the row's own.
  [[nodiscard]] Index MarginBefore() const { return std::max(Index{0}, -Position(0)); }
  [[nodiscard]] Index MarginBehind() const { return std::max(Index{0}, End(chunks_ - 1) - axis_.in) + n; }
  // Copies a row between margins. Only what the block reads of it needs to be right.
  void CopyBetweenMargins(const Raw* row, Raw* to) const {
    const Index first = std::clamp(Position(0), Index{0}, axis_.in);
    const Index stop = std::clamp(End(chunks_ - 1), first, axis_.in);
    std::memcpy(to + first, row + first, static_cast<std::size_t>(stop - first) * sizeof(Raw));
    const auto fill = [&](Index begin, Index end) {
      for (Index p = begin; p < end; ++p) to[p] = repeat ? row[Nearest(p)] : Raw{};
    };
    fill(-MarginBefore(), 0);
    fill(axis_.in, (end_ - 1) * axis_.stride - axis_.low + (axis_.kernel - 1) * axis_.step + 1);
  }

 private:
  // Read number q * stride + j begins j vectors behind where the first taps of the outputs q later begin.
  [[nodiscard]] Index Position(Index chunk, Index read) const {
    return Position(chunk) + read / axis_.stride * axis_.stride + read % axis_.stride * n;
  }
  [[nodiscard]] Index End(Index chunk) const { return Position(chunk, reads_ - 1) + n; }
  [[nodiscard]] bool Inside(Index chunk) const {
    const Index last = std::min(begin_ + First(chunk) + n, end_) - 1;
    return axis_.run_begin <= begin_ + First(chunk) && last < axis_.run_end &&
           (!in_registers || (Position(chunk) >= 0 && End(chunk) <= axis_.in));
  }
  // The nearest position of the row among those of the same class modulo the step.
  [[nodiscard]] Index Nearest(Index p) const {
    if (p >= 0 && p < axis_.in) return p;
    const Index back = p < 0 ? (-p + axis_.step - 1) / axis_.step : -((p - axis_.in) / axis_.step + 1);
    return std::clamp(p + back * axis_.step, Index{0}, axis_.in - 1);
  }

  const PooledAxis& axis_;
  Index begin_, end_;
  Index reads_ = 1;  // vectors that a chunk reads
  Index chunks_ = 0, inner_begin_ = 0, inner_end_ = 0;
  plan::Scratch::Array<U> lanes_asked_{}, real_asked_{}, bounds_asked_{};
  plan::Scratch::Array<Index> offsets_asked_{};
  U* lanes_ = nullptr;   // of every vector at an edge: which lane of what is read goes where
  U* real_ = nullptr;    // and whether there is a tap
  U* bounds_ = nullptr;  // of every chunk at an edge: numbers of the first and last tap of its outputs
  Index* offsets_ = nullptr;
};

// Vectors of neighbours become vectors of every s-th.
template <Index s, class D, class V = hn::VFromD<D>>
HWY_INLINE void SplitPhases(D d, const V (&v)[s], V (&phases)[s]) {
  if constexpr (s == 1) {
    phases[0] = v[0];
  } else if constexpr (s == 2) {
    phases[0] = hn::ConcatEven(d, v[1], v[0]);
    phases[1] = hn::ConcatOdd(d, v[1], v[0]);
  } else if constexpr (s == 3) {
    constexpr std::size_t n = hn::MaxLanes(D());
    HWY_ALIGN hn::TFromD<D> row[3 * n];
    for (std::size_t i = 0; i < 3; ++i) hn::Store(v[i], d, row + i * n);
    hn::LoadInterleaved3(d, row, phases[0], phases[1], phases[2]);
  } else {
    const V even[2] = {hn::ConcatEven(d, v[1], v[0]), hn::ConcatEven(d, v[3], v[2])};
    const V odd[2] = {hn::ConcatOdd(d, v[1], v[0]), hn::ConcatOdd(d, v[3], v[2])};
    phases[0] = hn::ConcatEven(d, even[1], even[0]);
    phases[1] = hn::ConcatEven(d, odd[1], odd[0]);
    phases[2] = hn::ConcatOdd(d, even[1], even[0]);
    phases[3] = hn::ConcatOdd(d, odd[1], odd[0]);
  }
}

// Reduces one chunk of outputs, of any row. `taps` is their number if the compiler knows it, and the step 1; or 0.
template <class S, Index s, int taps, bool edge>
class Chunk {
 public:
  using Raw = typename S::Raw;
  using V = typename S::V;
  static constexpr Index n = vector_lanes<Raw>;
  static constexpr int groups = static_cast<int>(n / vector_lanes<typename S::Lane>);
  using Piece = V[groups][S::parts];

  template <class Table>
  HWY_INLINE Chunk(const Table& table, Index chunk)
      : position_(table.Position(chunk)), kernel_(taps > 0 ? taps : table.axis().kernel),
        step_(taps > 0 ? 1 : table.axis().step) {
    if constexpr (edge) bounds_ = table.Bounds(chunk);
    if constexpr (looks_up) {
      offsets_ = table.Offsets(chunk);
      lanes_ = table.LanesOf(chunk);
      if constexpr (!S::repeats) real_ = table.RealOf(chunk);
      if constexpr (taps > 0) {
        HWY_UNROLL(16)
        for (Index read = 0; read < reads; ++read) kept_[read] = offsets_[read];
      }
    }
  }

  HWY_INLINE void Reduce(const Raw* const* rows, Piece& acc) const {
    Block(rows, 0, acc);
    if constexpr (taps > 0) {
      if constexpr (taps > s) Block(rows, 1, acc);
      if constexpr (taps > 2 * s) Block(rows, 2, acc);
      static_assert(taps <= 3 * s);
    } else {
      for (Index q = 1; q < (kernel_ - 1) * step_ / s + 1; ++q) Block(rows, q, acc);
    }
    if constexpr (edge) {
      HWY_UNROLL(16)
      for (int g = 0; g < groups; ++g) S::Bound(acc[g], bounds_, bounds_ + n);
    }
  }

 private:
  static constexpr bool looks_up = edge && RowTable<Raw, S::repeats>::in_registers;
  static constexpr Index reads = taps > 0 ? ((taps - 1) / s + 1) * s : 1;
  using D = hn::ScalableTag<Raw>;
  using VR = hn::VFromD<D>;

  HWY_INLINE VR Read(const Raw* row, Index q, Index j) const {
    const D d;
    if constexpr (looks_up) {
      const hn::RebindToSigned<D> di;
      const Index read = q * s + j;
      const auto from = hn::LoadU(d, row + (taps > 0 ? kept_[read] : offsets_[read]));
      const auto lanes = hn::LoadU(di, reinterpret_cast<const hn::TFromD<decltype(di)>*>(lanes_) + read * n);
      const auto moved = hn::TableLookupLanes(from, hn::IndicesFromVec(d, lanes));
      if constexpr (S::repeats) return moved;
      return hn::And(moved, hn::BitCast(d, hn::LoadU(hn::ScalableTag<Bits<Raw>>(), real_ + read * n)));
    } else {
      return hn::LoadU(d, row + position_ + q * s + j * n);
    }
  }

  // The taps from q * s to q * s + s - 1.
  HWY_INLINE void Block(const Raw* const* rows, Index q, Piece& acc) const {
    const D d;
    VR phases[S::inputs][s];
    HWY_UNROLL(16)
    for (int i = 0; i < S::inputs; ++i) {
      VR read[s];
      HWY_UNROLL(16)
      for (Index j = 0; j < s; ++j) read[j] = Read(rows[i], q, j);
      SplitPhases<s>(d, read, phases[i]);
    }
    HWY_UNROLL(16)
    for (Index r = 0; r < s; ++r) {
      const Index reach = q * s + r;
      if (taps == 0 && step_ != 1 && reach % step_ != 0) continue;
      const Index tap = taps > 0 || step_ == 1 ? reach : reach / step_;
      if (tap >= (taps > 0 ? taps : kernel_)) continue;
      VR raw[S::inputs];
      HWY_UNROLL(16)
      for (int i = 0; i < S::inputs; ++i) raw[i] = phases[i][r];
      HWY_UNROLL(16)
      for (int g = 0; g < groups; ++g) {
        if (tap == 0) {
          S::Tap(acc[g], raw, 0, g);
        } else {
          V later[S::parts];
          S::Tap(later, raw, tap, g);
          S::Merge(acc[g], later);
        }
      }
    }
  }

  Index position_, kernel_, step_;
  const Bits<Raw>* bounds_ = nullptr;
  const Index* offsets_ = nullptr;
  const Bits<Raw>* lanes_ = nullptr;
  const Bits<Raw>* real_ = nullptr;
  Index kept_[reads];
};

template <class S, Index s, int taps, bool edge, class Table>
HWY_INLINE void ReduceChunk(const Table& table, Index chunk, const typename S::Raw* const* rows, typename S::Lane* to,
                            Index width) {
  using Reader = Chunk<S, s, taps, edge>;
  typename Reader::Piece acc;
  Reader(table, chunk).Reduce(rows, acc);
  HWY_UNROLL(16)
  for (int g = 0; g < Reader::groups; ++g)
    S::Store(acc[g], to + table.First(chunk) + g * vector_lanes<typename S::Lane>, width);
}

template <class S, Index s, int taps, class Table>
HWY_INLINE void ReduceChunks(const Table& table, const typename S::Raw* const* rows, typename S::Lane* to,
                             Index width) {
  Index chunk = 0;
  for (; chunk < table.inner_begin(); ++chunk) ReduceChunk<S, s, taps, true>(table, chunk, rows, to, width);
  for (; chunk < table.inner_end(); ++chunk) ReduceChunk<S, s, taps, false>(table, chunk, rows, to, width);
  for (; chunk < table.chunks(); ++chunk) ReduceChunk<S, s, taps, true>(table, chunk, rows, to, width);
}

// All outputs of a row, in parts of `width` lanes.
template <class S, class Table>
HWY_NOINLINE void ReduceRow(const Table& table, const typename S::Raw* const* rows, typename S::Lane* to, Index width) {
  const PooledAxis& axis = table.axis();
  if constexpr (S::common) {
    const Index taps = axis.step == 1 ? axis.kernel : 0;
    if (axis.stride == 1 && taps == 3) return ReduceChunks<S, 1, 3>(table, rows, to, width);
    if (axis.stride == 2 && taps == 2) return ReduceChunks<S, 2, 2>(table, rows, to, width);
    if (axis.stride == 2 && taps == 3) return ReduceChunks<S, 2, 3>(table, rows, to, width);
    if (axis.stride == 3) return ReduceChunks<S, 3, 0>(table, rows, to, width);
    if (axis.stride == 4) return ReduceChunks<S, 4, 0>(table, rows, to, width);
  }
  if (axis.stride == 1) return ReduceChunks<S, 1, 0>(table, rows, to, width);
  return ReduceChunks<S, 2, 0>(table, rows, to, width);
}

// The adjoint of windows that are `spread` apart: what the outputs of a row send to positions begin .. end-1. Position
// i hears from output (i + low) / spread and from some before it; those that do not exist send 0.
template <class Raw>
class SpreadTable {
 public:
  static constexpr Index n = vector_lanes<Raw>;

  SpreadTable(const PooledAxis& axis, Index begin, Index end)
      : in_(axis.in), kernel_(axis.source.kernel), spread_(axis.spread > 0 ? axis.spread : 1) {
    first_ = (begin + axis.low) / spread_;
    skip_ = (begin + axis.low) % spread_;
    count_ = ((end - 1 + axis.low) / spread_ - first_ + n) / n * n;
  }
  [[nodiscard]] Index kernel() const { return kernel_; }
  [[nodiscard]] Index spread() const { return spread_; }
  [[nodiscard]] Index first() const { return first_; }  // output, and how many from there on, in whole vectors
  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] Index skip() const { return skip_; }  // positions that the row has before `begin`
  [[nodiscard]] Index MarginBefore() const { return std::max(Index{0}, -Low()); }
  [[nodiscard]] Index MarginBehind() const { return std::max(Index{0}, first_ + count_ - in_); }
  void CopyBetweenMargins(const Raw* row, Raw* to) const {
    const Index begin = std::clamp(Low(), Index{0}, in_);
    const Index end = std::clamp(first_ + count_, begin, in_);
    std::fill(to + Low(), to + begin, Raw{});
    std::memcpy(to + begin, row + begin, static_cast<std::size_t>(end - begin) * sizeof(Raw));
    std::fill(to + end, to + first_ + count_, Raw{});
  }

 private:
  [[nodiscard]] Index Low() const { return first_ - (kernel_ - 1) / spread_; }

  Index in_, kernel_, spread_;
  Index first_ = 0, skip_ = 0, count_ = 0;
};

template <class S, Index s>
HWY_INLINE void SpreadRowBy(const SpreadTable<typename S::Raw>& table, const typename S::Raw* row,
                            typename S::Lane* to) {
  const typename S::D d;
  constexpr Index lanes = vector_lanes<typename S::Lane>;
  for (Index q = 0; q < table.count(); q += lanes) {
    typename S::V phases[s];
    HWY_UNROLL(16)
    for (Index r = 0; r < s; ++r) {
      typename S::V acc[1] = {hn::Zero(d)};
      for (Index tap = r + (table.kernel() - 1 - r) / s * s; tap >= r && r < table.kernel(); tap -= s) {
        typename S::V later[1];
        S::First(later, row + table.first() + q - tap / s, 0, 0, 1);
        S::Merge(acc, later);
      }
      phases[r] = acc[0];
    }
    auto* place = to + q * s;
    if constexpr (s == 2) hn::StoreInterleaved2(phases[0], phases[1], d, place);
    if constexpr (s == 3) hn::StoreInterleaved3(phases[0], phases[1], phases[2], d, place);
    if constexpr (s == 4) hn::StoreInterleaved4(phases[0], phases[1], phases[2], phases[3], d, place);
  }
}
template <class S>
HWY_NOINLINE void SpreadRow(const SpreadTable<typename S::Raw>& table, const typename S::Raw* row,
                            typename S::Lane* to) {
  switch (table.spread()) {
    case 2: return SpreadRowBy<S, 2>(table, row, to);
    case 3: return SpreadRowBy<S, 3>(table, row, to);
    default: return SpreadRowBy<S, 4>(table, row, to);
  }
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
