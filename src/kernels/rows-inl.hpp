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

// Copies cells; the last vector may begin inside the one before.
template <class T>
HWY_INLINE void CopyCells(const T* from, Index count, T* to) {
  const hn::ScalableTag<T> d;
  constexpr Index n = vector_lanes<T>;
  if (count < n) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    return;
  }
  for (Index i = 0; i + n <= count; i += n) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (count % n != 0) hn::StoreU(hn::LoadU(d, from + count - n), d, to + count - n);
}

// Of integers, the largest or smallest of some rows, cell by cell; the last vector may begin inside the one before.
template <bool largest, class T>
HWY_INLINE void BestOfRows(const T* rows, Index count, Index pitch, plan::Span cells, T* to) {
  if (count == 0) return;
  const auto best = [&](auto d, Index at) HWY_ATTR {
    auto acc = hn::LoadU(d, rows + at);
    for (Index r = 1; r < count; ++r) {
      const T* const later = rows + r * pitch + at;
      hwy::Prefetch(later + 2048 / sizeof(T));  // rows side by side are more than the hardware foresees
      acc = largest ? hn::Max(acc, hn::LoadU(d, later)) : hn::Min(acc, hn::LoadU(d, later));
    }
    hn::StoreU(acc, d, to + at);
  };
  const auto all = [&](auto d) HWY_ATTR {
    const auto n = static_cast<Index>(hn::MaxLanes(d));
    for (Index i = cells.begin; i + n <= cells.end; i += n) best(d, i);
    best(d, cells.end - n);
  };
  constexpr Index few = 16 / sizeof(T);
  if (cells.size() >= vector_lanes<T>) return all(hn::ScalableTag<T>());
  if (cells.size() >= few) return all(hn::FixedTag<T, few>());
  for (Index i = cells.begin; i < cells.end; ++i) best(hn::FixedTag<T, 1>(), i);
}

// How the outputs of a block are read from a row: in chunks of one vector of outputs. The last one shares outputs with
// the one before, or is more than there are where they make no vector. Chunks at the ends of the row see taps that do
// not exist; there an extreme sees the nearest tap once more (which changes no winner), and a sum sees 0. Lanes wide
// enough are moved into place in registers, by tables made here; others are copied between margins first.
template <class Raw, bool repeat>
class RowTable {
 public:
  using U = Bits<Raw>;
  static constexpr Index n = vector_lanes<Raw>;
  static constexpr bool in_registers = sizeof(Raw) >= 4;

  // `common`: the state has loops of its own for the most usual windows.
  RowTable(const PooledAxis& axis, Index begin, Index end, bool common) : axis_(axis), begin_(begin), end_(end) {
    reads_ = ((axis.kernel - 1) * axis.step / axis.stride + 1) * axis.stride;
    if (common && in_registers && axis.step == 1 && axis.stride == 2 && axis.kernel == 3) back_ = Back(2, 3);
    chunks_ = (end - begin + n - 1) / n;
    inner_begin_ = 0;
    while (inner_begin_ < chunks_ && !Inside(inner_begin_)) ++inner_begin_;
    copied_.begin = std::clamp(Position(0), Index{0}, axis_.in);
    copied_.end = std::clamp(End(chunks_ - 1), copied_.begin, axis_.in);
    filled_ = {-MarginBefore(), (end - 1) * axis.stride - axis.low + (axis.kernel - 1) * axis.step + 1};
    inner_end_ = chunks_;
    while (inner_end_ > inner_begin_ && !Inside(inner_end_ - 1)) --inner_end_;
  }
  void Ask(plan::Scratch& scratch) {
    lanes_asked_ = scratch.Ask<U>(in_registers ? edges() * reads_ * n : 0);
    real_asked_ = scratch.Ask<U>(in_registers && !repeat ? edges() * reads_ * n : 0);
    bounds_asked_ = scratch.Ask<U>(edges() * 2 * n);
    offsets_asked_ = scratch.Ask<Index>(edges() * reads_);
    straight_asked_ = scratch.Ask<bool>(edges() * reads_);
  }
  void Fill(const plan::Scratch& scratch) {
    lanes_ = scratch.At(lanes_asked_);
    real_ = scratch.At(real_asked_);
    bounds_ = scratch.At(bounds_asked_);
    offsets_ = scratch.At(offsets_asked_);
    straight_ = scratch.At(straight_asked_);
    for (Index edge = 0; edge < edges(); ++edge) {
      const Index chunk = EdgeChunk(edge);
      for (Index l = 0; l < n; ++l) {
        const Taps& window = axis_.taps[std::min(begin_ + First(chunk) + l, end_ - 1)];
        bounds_[edge * 2 * n + l] = static_cast<U>(window.first);
        bounds_[edge * 2 * n + n + l] = static_cast<U>(window.first + window.count - 1);
      }
      if constexpr (in_registers) {
        Index* offsets = offsets_ + edge * reads_;
        for (Index read = 0; read < reads_; ++read) {
          const Index from = Position(chunk, read);
          offsets[read] = std::clamp(from, Index{0}, axis_.in - n);
          straight_[edge * reads_ + read] = offsets[read] == from;
        }
        for (Index read = 0; read < reads_; ++read)
          for (Index l = 0; l < n; ++l) {
            const Index at = (edge * reads_ + read) * n + l;
            const Index cell = Cell(chunk, read, l);
            const Index nearest = Nearest(cell);
            const Index* from = offsets + (axis_.stride == 2 ? read / 2 * 2 : read);
            const bool second = axis_.stride == 2 && !(nearest >= from[0] && nearest < from[0] + n);
            lanes_[at] = static_cast<U>(second ? nearest - from[1] + n : nearest - from[0]);
            if constexpr (!repeat) real_[at] = cell >= 0 && cell < axis_.in ? static_cast<U>(-1) : U{0};
          }
      }
    }
  }

  // So far back begins the last block of s cells of windows of k, so as to read nothing behind them.
  static constexpr Index Back(Index s, Index k) { return (s - k % s) % s; }

  [[nodiscard]] const PooledAxis& axis() const { return axis_; }
  [[nodiscard]] Index chunks() const { return chunks_; }
  [[nodiscard]] Index inner_begin() const { return inner_begin_; }
  [[nodiscard]] Index inner_end() const { return inner_end_; }
  [[nodiscard]] Index edges() const { return chunks_ - (inner_end_ - inner_begin_); }
  [[nodiscard]] Index EdgeChunk(Index edge) const {
    return edge < inner_begin_ ? edge : edge + inner_end_ - inner_begin_;
  }
  // The first output of a chunk, counted from the block's.
  [[nodiscard]] HWY_INLINE Index First(Index chunk) const {
    return HWY_MIN(chunk * n, HWY_MAX(Index{0}, end_ - begin_ - n));
  }
  [[nodiscard]] Index Edge(Index chunk) const {
    return chunk < inner_begin_ ? chunk : chunk - (inner_end_ - inner_begin_);
  }

  // The position that vector 0 of a chunk begins with.
  [[nodiscard]] HWY_INLINE Index Position(Index chunk) const {
    return (begin_ + First(chunk)) * axis_.stride - axis_.low;
  }
  // Of a chunk at an edge: numbers of the first taps of its outputs, and behind them those of the last.
  [[nodiscard]] const U* Bounds(Index chunk) const { return bounds_ + Edge(chunk) * 2 * n; }
  // And of its reads: where they begin, whether they stay as they are, which of their lanes go where, and which are
  // real. With a stride of 2, pairs of reads become even and odd cells at once: lanes from n on are the second one's.
  [[nodiscard]] const Index* Offsets(Index chunk) const { return offsets_ + Edge(chunk) * reads_; }
  [[nodiscard]] const bool* Straight(Index chunk) const { return straight_ + Edge(chunk) * reads_; }
  [[nodiscard]] const U* LanesOf(Index chunk) const { return lanes_ + Edge(chunk) * reads_ * n; }
  [[nodiscard]] const U* RealOf(Index chunk) const { return real_ + Edge(chunk) * reads_ * n; }

  // What the cells of a row are multiplied by, from some position before the first to some behind the last.
  void SetWeights(const double* weights) { weights_ = weights; }
  [[nodiscard]] const double* weights() const { return weights_; }

  // Positions that rows between margins have before and behind the row's own.
  [[nodiscard]] Index MarginBefore() const { return std::max(Index{0}, -Position(0)); }
  [[nodiscard]] Index MarginBehind() const { return std::max(Index{0}, End(chunks_ - 1) - axis_.in) + n; }
  // The cells of a row that the block reads.
  [[nodiscard]] plan::Span copied() const { return copied_; }
  // Copies a row between margins. Only what the block reads of it needs to be right.
  void CopyBetweenMargins(const Raw* row, Raw* to) const {
    CopyCells(row + copied_.begin, copied_.size(), to + copied_.begin);
    FillMargins(row, to);
  }
  // The margins of a row that is there.
  void FillMargins(const Raw* row, Raw* to) const {
    const auto fill = [&](Index begin, Index end) {
      for (Index p = begin; p < end; ++p) to[p] = repeat ? row[Nearest(p)] : Raw{};
    };
    fill(filled_.begin, 0);
    fill(axis_.in, filled_.end);
  }

 private:
  // Read number q * stride + j begins j vectors behind where the first taps of the outputs q later begin.
  [[nodiscard]] Index Position(Index chunk, Index read) const {
    return Position(chunk) + BlockOfRead(read) + read % axis_.stride * n;
  }
  [[nodiscard]] Index BlockOfRead(Index read) const {
    const Index first = read / axis_.stride * axis_.stride;
    return first + axis_.stride == reads_ ? first - back_ : first;
  }
  // What lane l of a read holds in the end.
  [[nodiscard]] Index Cell(Index chunk, Index read, Index l) const {
    if (axis_.stride == 2) return Position(chunk) + BlockOfRead(read) + 2 * l + read % 2;
    return Position(chunk, read) + l;
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
    if (axis_.step == 1) return p < 0 ? 0 : axis_.in - 1;
    const Index back = p < 0 ? (-p + axis_.step - 1) / axis_.step : -((p - axis_.in) / axis_.step + 1);
    return std::clamp(p + back * axis_.step, Index{0}, axis_.in - 1);
  }

  const PooledAxis& axis_;
  Index begin_, end_;
  Index reads_ = 1;  // vectors that a chunk reads
  Index back_ = 0;
  Index chunks_ = 0, inner_begin_ = 0, inner_end_ = 0;
  plan::Span copied_{}, filled_{};  // of rows between margins: what is copied, and what is filled around it
  plan::Scratch::Array<U> lanes_asked_{}, real_asked_{}, bounds_asked_{};
  plan::Scratch::Array<Index> offsets_asked_{};
  plan::Scratch::Array<bool> straight_asked_{};
  U* lanes_ = nullptr;   // of every vector at an edge: which lane of what is read goes where
  U* real_ = nullptr;    // and whether there is a tap
  U* bounds_ = nullptr;  // of every chunk at an edge: numbers of the first and last tap of its outputs
  Index* offsets_ = nullptr;
  bool* straight_ = nullptr;
  const double* weights_ = nullptr;
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

  Chunk() = default;
  // Of the chunk whose first tap lies at `position`.
  template <class Table>
  static HWY_INLINE Chunk At(const Table& table, Index position) {
    static_assert(taps > 0 && !edge);
    Chunk chunk;
    chunk.position_ = position;
    if constexpr (S::weighted) chunk.weights_ = table.weights();
    return chunk;
  }
  template <class Table>
  HWY_INLINE Chunk(const Table& table, Index chunk)
      : position_(table.Position(chunk)), kernel_(taps > 0 ? taps : table.axis().kernel),
        step_(taps > 0 ? 1 : table.axis().step) {
    if constexpr (S::weighted) weights_ = table.weights();
    if constexpr (edge) bounds_ = table.Bounds(chunk);
    if constexpr (looks_up) {
      offsets_ = table.Offsets(chunk);
      straight_ = table.Straight(chunk);
      lanes_ = table.LanesOf(chunk);
      if constexpr (!S::repeats) real_ = table.RealOf(chunk);
      if constexpr (taps > 0) {
        HWY_UNROLL(16)
        for (Index read = 0; read < reads; ++read) kept_[read] = {offsets_[read], straight_[read]};
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
  static constexpr bool widens = groups > 1 && S::parts == 1;
  static constexpr Index reads = taps > 0 ? ((taps - 1) / s + 1) * s : 1;
  using D = hn::ScalableTag<Raw>;
  using VR = hn::VFromD<D>;

  [[nodiscard]] HWY_INLINE VR ReadAt(const Raw* row, Index read) const {
    return hn::LoadU(D(), row + (taps > 0 ? kept_[read].offset : offsets_[read]));
  }
  [[nodiscard]] HWY_INLINE auto LanesOf(Index read) const {
    const hn::RebindToSigned<D> di;
    return hn::LoadU(di, reinterpret_cast<const hn::TFromD<decltype(di)>*>(lanes_) + read * n);
  }
  [[nodiscard]] HWY_INLINE VR Real(VR v, Index read) const {
    if constexpr (S::repeats) return v;
    return hn::And(v, hn::BitCast(D(), hn::LoadU(hn::ScalableTag<Bits<Raw>>(), real_ + read * n)));
  }

  // The cells from q * s on, or somewhat before, as vectors of every s-th.
  HWY_INLINE void Phases(const Raw* row, Index q, VR (&phases)[s]) const {
    const D d;
    if constexpr (!looks_up) {
      VR read[s];
      HWY_UNROLL(16)
      for (Index j = 0; j < s; ++j) read[j] = hn::LoadU(d, row + position_ + q * s - BackAt(q) + j * n);
      SplitPhases<s>(d, read, phases);
    } else if constexpr (s == 2) {
      const VR a = ReadAt(row, q * s);
      const VR b = ReadAt(row, q * s + 1);
      HWY_UNROLL(16)
      for (Index r = 0; r < s; ++r) phases[r] = Real(LookupTwo(d, a, b, LanesOf(q * s + r)), q * s + r);
    } else {
      VR read[s];
      HWY_UNROLL(16)
      for (Index j = 0; j < s; ++j) {
        const Index number = q * s + j;
        read[j] = ReadAt(row, number);
        if (taps > 0 ? kept_[number].straight : straight_[number]) continue;
        read[j] = Real(hn::TableLookupLanes(read[j], hn::IndicesFromVec(d, LanesOf(number))), number);
      }
      SplitPhases<s>(d, read, phases);
    }
  }

  static HWY_INLINE constexpr Index BackAt(Index q) {
    constexpr bool steps_back = taps > 0 && RowTable<Raw, S::repeats>::in_registers;
    return steps_back && (q + 1) * s >= taps ? RowTable<Raw, S::repeats>::Back(s, taps) : 0;
  }

  // The taps from q * s to q * s + s - 1.
  HWY_INLINE void Block(const Raw* const* rows, Index q, Piece& acc) const {
    if constexpr (widens && !looks_up) {
      HWY_UNROLL(16)
      for (int g = 0; g < groups; ++g) WideBlock(rows[0] + position_ + q * s - BackAt(q), q, g, acc);
      return;
    }
    if constexpr (widens && looks_up && s == 1) {
      if (taps > 0 ? kept_[q].straight : straight_[q]) {
        HWY_UNROLL(16)
        for (int g = 0; g < groups; ++g) WideBlock(rows[0] + (taps > 0 ? kept_[q].offset : offsets_[q]), q, g, acc);
        return;
      }
    }
    VR phases[S::inputs][s];
    HWY_UNROLL(16)
    for (int i = 0; i < S::inputs; ++i) Phases(rows[i], q, phases[i]);
    EachTap(q, [&](Index r, Index tap) HWY_ATTR {
      VR raw[S::inputs];
      HWY_UNROLL(16)
      for (int i = 0; i < S::inputs; ++i) raw[i] = phases[i][r];
      HWY_UNROLL(16)
      for (int g = 0; g < groups; ++g) {
        V later[S::parts];
        S::Tap(later, raw, tap, g);
        if constexpr (S::weighted) later[0] = Weighed(later[0], q, g);
        Join<S>(later, tap == 0, acc[g]);
      }
    });
  }
  // Only windows that are one cell apart weigh theirs.
  [[nodiscard]] HWY_INLINE V Weighed(V v, Index q, int g) const {
    static_assert(s == 1 || !S::weighted);
    return hn::Mul(v, hn::LoadU(typename S::D(), weights_ + position_ + q + g * vector_lanes<typename S::Lane>));
  }
  // The same for one group of outputs, whose cells are widened as they are read: cheaper than to widen them in
  // registers.
  HWY_INLINE void WideBlock(const Raw* block, Index q, int g, Piece& acc) const {
    if constexpr (widens) {
      constexpr Index lanes = vector_lanes<typename S::Lane>;
      V read[s], phases[s];
      HWY_UNROLL(16)
      for (Index j = 0; j < s; ++j) {
        read[j] = S::Of(LoadWide<typename S::Scalar>(typename S::D(), block + (g * s + j) * lanes));
        if constexpr (S::weighted) read[j] = Weighed(read[j], q, g);
      }
      SplitPhases<s>(typename S::D(), read, phases);
      EachTap(q, [&](Index r, Index tap) HWY_ATTR {
        const V later[1] = {phases[r]};
        Join<S>(later, tap == 0, acc[g]);
      });
    }
  }
  // Calls use(phase, tap) for the taps of a block.
  template <class F>
  HWY_INLINE void EachTap(Index q, F&& use) const {
    HWY_UNROLL(16)
    for (Index r = 0; r < s; ++r) {
      const Index reach = q * s + r;
      if (taps > 0 && reach >= taps) continue;
      if (taps == 0 && step_ != 1 && reach % step_ != 0) continue;
      const Index tap = taps > 0 || step_ == 1 ? reach : reach / step_;
      if (tap >= (taps > 0 ? taps : kernel_)) continue;
      use(r + BackAt(q), tap);
    }
  }

  Index position_ = 0, kernel_ = taps, step_ = 1;
  const Bits<Raw>* bounds_ = nullptr;
  const Index* offsets_ = nullptr;
  const bool* straight_ = nullptr;
  const double* weights_ = nullptr;
  const Bits<Raw>* lanes_ = nullptr;
  const Bits<Raw>* real_ = nullptr;
  struct Kept {
    Index offset;
    bool straight;
  };
  Kept kept_[looks_up ? reads : 1] = {};
};

// Stores the pieces of a row, chunk by chunk, in parts of `width` lanes.
template <class S>
struct StorePieces {
  typename S::Lane* to;
  Index width;
  HWY_INLINE void operator()(const typename S::V (&acc)[S::parts], Index slot, Index) const {
    S::Store(acc, to + slot, width);
  }
};

// `put` takes every vector of pieces, the slot that it has among whole vectors, and its first output.
template <class S, Index s, int taps, class Table, class Put>
HWY_INLINE void ReduceChunks(const Table& table, const typename S::Raw* const* rows, const Put& put) {
  using Inner = Chunk<S, s, taps, false>;
  using Edge = Chunk<S, s, taps, true>;
  const auto put_all = [&](const typename Inner::Piece& acc, Index chunk) HWY_ATTR {
    HWY_UNROLL(16)
    for (int g = 0; g < Inner::groups; ++g) {
      const Index lane = g * vector_lanes<typename S::Lane>;
      put(acc[g], chunk * Inner::n + lane, table.First(chunk) + lane);
    }
  };
  typename Inner::Piece acc;
  for (Index e = 0; e < table.edges(); ++e) {
    Edge(table, table.EdgeChunk(e)).Reduce(rows, acc);
    put_all(acc, table.EdgeChunk(e));
  }
  for (Index chunk = table.inner_begin(); chunk < table.inner_end(); ++chunk) {
    Inner(table, chunk).Reduce(rows, acc);
    put_all(acc, chunk);
  }
}

// All outputs of a row.
template <class S, class Table, class Put>
HWY_NOINLINE void ReduceRow(const Table& table, const typename S::Raw* const* rows, const Put put) {
  const PooledAxis& axis = table.axis();
  if constexpr (S::common && S::weighted) {
    if (axis.step == 1 && axis.kernel == 3) return ReduceChunks<S, 1, 3>(table, rows, put);
  } else if constexpr (S::common) {
    const Index taps = axis.step == 1 ? axis.kernel : 0;
    if (axis.stride == 1 && taps == 3) return ReduceChunks<S, 1, 3>(table, rows, put);
    if (axis.stride == 2 && taps == 2) return ReduceChunks<S, 2, 2>(table, rows, put);
    if (axis.stride == 2 && taps == 3) return ReduceChunks<S, 2, 3>(table, rows, put);
    if (axis.stride == 3) return ReduceChunks<S, 3, 0>(table, rows, put);
    if (axis.stride == 4 && taps == 4) return ReduceChunks<S, 4, 4>(table, rows, put);
    if (axis.stride == 4) return ReduceChunks<S, 4, 0>(table, rows, put);
  }
  if constexpr (!S::weighted)
    if (axis.stride == 2) return ReduceChunks<S, 2, 0>(table, rows, put);
  ReduceChunks<S, 1, 0>(table, rows, put);
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
    CopyCells(row + begin, end - begin, to + begin);
    std::fill(to + end, to + first_ + count_, Raw{});
  }

 private:
  [[nodiscard]] Index Low() const { return first_ - (kernel_ - 1) / spread_; }

  Index in_, kernel_, spread_;
  Index first_ = 0, skip_ = 0, count_ = 0;
};

// `weights` are those of the row's cells, if they have any.
template <class S, Index s>
HWY_INLINE void SpreadRowBy(const SpreadTable<typename S::Raw>& table, const typename S::Raw* row,
                            const double* weights, typename S::Lane* to) {
  const typename S::D d;
  constexpr Index lanes = vector_lanes<typename S::Lane>;
  for (Index q = 0; q < table.count(); q += lanes) {
    typename S::V phases[s];
    HWY_UNROLL(16)
    for (Index r = 0; r < s; ++r) {
      typename S::V acc[1] = {hn::Zero(d)};
      for (Index tap = r + (table.kernel() - 1 - r) / s * s; tap >= r && r < table.kernel(); tap -= s) {
        const Index cell = table.first() + q - tap / s;
        typename S::V later[1] = {LoadWide<typename S::Scalar>(d, row + cell)};
        if constexpr (S::weighted) later[0] = hn::Mul(later[0], hn::LoadU(d, weights + cell));
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
                            const double* weights, typename S::Lane* to) {
  switch (table.spread()) {
    case 2: return SpreadRowBy<S, 2>(table, row, weights, to);
    case 3: return SpreadRowBy<S, 3>(table, row, weights, to);
    default: return SpreadRowBy<S, 4>(table, row, weights, to);
  }
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
