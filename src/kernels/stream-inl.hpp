// A reduction that streams: rows of the input are reduced where they lie, one after the other, and kept in a ring for
// as long as some window needs them; as soon as the last row of a window is there, its results are written. Serves
// windows that are reduced tap by tap. Vectors stand along the last axis (`plan.rows`), or along lanes that are
// neighbours.
#if defined(CENOTE_KERNELS_STREAM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_STREAM_INL_HPP
#undef CENOTE_KERNELS_STREAM_INL_HPP
#else
#define CENOTE_KERNELS_STREAM_INL_HPP
#endif

#include "kernels/finish-inl.hpp"
#include "kernels/passes-inl.hpp"
#include "kernels/rows-inl.hpp"
#include "kernels/task-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// Merges pieces of `count` slices in their order and hands every vector to put(state, lane). Pieces stand `pitch`
// apart. Vectors of a slice are loaded as they were stored: what has just been stored cannot be read in other portions.
template <class S, int taps, class Put>
HWY_INLINE void MergeSlices(const typename S::Lane* const* from, const Index* numbers, const double* weights,
                            Index count, Index lanes, Index pitch, Put&& put) {
  constexpr Index step = vector_lanes<typename S::Lane>;
  for (Index lane = 0; lane < lanes; lane += step) {
    typename S::V acc[S::parts];
    S::Load(acc, from[0] + lane, pitch, numbers[0], S::weighted ? weights[0] : 1.0);
    const auto add = [&](Index t) HWY_ATTR {
      typename S::V later[S::parts];
      S::Load(later, from[t] + lane, pitch, numbers[t], S::weighted ? weights[t] : 1.0);
      S::Merge(acc, later);
    };
    if constexpr (taps > 0) {
      HWY_UNROLL(16)
      for (int t = 1; t < taps; ++t) add(t);
    } else {
      for (Index t = 1; t < count; ++t) add(t);
    }
    put(acc, lane);
  }
}

template <class S>
class Stream {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;

  static Index Tasks(const plan::Plan& plan) {
    const Index groups = Lanes::Groups(plan, plan.rows ? 1 : plan.together);
    return (groups + PerTask(plan) - 1) / PerTask(plan) * BlocksOf(plan);
  }
  static void Run(const plan::Plan& plan, Index task) {
    const Index blocks = BlocksOf(plan);
    Stream stream(plan, BlockOf(plan, task % blocks));
    // Lanes side by side are a task together: groups of them may overlap.
    const Index each = plan.rows ? 1 : plan.together;
    const Index groups = PerTask(plan);
    const Index first = task / blocks * groups;
    const Index stop = HWY_MIN(Lanes::Groups(plan, each), first + groups);
    for (Index group = first; group < stop; ++group) {
      stream.Enter(Lanes::OfGroup(plan, each, group));
      stream.Results();
    }
  }

 private:
  static Index PerTask(const plan::Plan& plan) {
    if (plan.rows) return plan.together;
    return (plan.lanes.sizes[static_cast<std::size_t>(plan.lanes.rank - 1)] + plan.together - 1) / plan.together;
  }

  using Table = RowTable<Raw, S::repeats>;
  static constexpr bool squares = S::common && Table::in_registers;
  static constexpr bool spreads = S::common && !S::repeats;
  static constexpr Index batch = 8;  // rows that are copied between margins together: stores must settle before loads

  Stream(const plan::Plan& plan, const Block& block)
      : plan_(plan), block_(block), last_(static_cast<std::size_t>(plan.rank - 1)),
        table_(plan.axes[last_], block.begin[last_], block.end[last_]),
        spread_(plan.axes[last_], block.begin[last_], block.end[last_]) {
    columns_ = outputs(last_);
    const bool copies = plan.rows && (!Table::in_registers || Spreads());
    if (plan.rows) {
      constexpr Index n = vector_lanes<Raw>;
      cells_ = 1;
      width_ = Spreads() ? spread_.count() * spread_.spread() : (columns_ + n - 1) / n * n;
    } else {
      cells_ = columns_;
      width_ = plan.together;
    }
    slice_[last_] = cells_ * S::parts * width_;
    for (std::size_t a = last_; a-- > 0;) {
      slice_[a] = outputs(a) * slice_[a + 1];
      const PooledAxis& axis = plan.axes[a];
      while (ring_[a].size < axis.extent) ring_[a].size *= 2;
      ring_[a].slices = scratch_.Ask<Lane>(ring_[a].size * slice_[a + 1]);
      ring_[a].tags = scratch_.Ask<Index>(ring_[a].size);
    }
    if (last_ == 0) ring_[0].slices = scratch_.Ask<Lane>(slice_[0]);
    numbers_ = scratch_.Ask<double>(Finish<S>::Numbers(columns_));
    if (plan.rows) {
      if (!Spreads()) table_.Ask(scratch_);
      if (copies) {
        margin_pitch_ = WithTable(
            [&](const auto& table) { return table.MarginBefore() + plan.axes[last_].in + table.MarginBehind(); });
        margins_ = scratch_.Ask<Raw>(batch * S::inputs * margin_pitch_);
      }
      if constexpr (squares) carried_ = scratch_.Ask<Lane>(2 * S::parts * width_);
      finished_ = scratch_.Ask<Raw>(2 * width_);
      won_ = scratch_.Ask<Bits<Lane>>(width_);
    }
    scratch_.Take();
    if (plan.rows) {
      if (!Spreads()) table_.Fill(scratch_);
      for (std::size_t i = 0; i < 2; ++i)
        round_[i] = plan.outputs[i].data != nullptr && plan.outputs[i].pooled[last_] != 1;
      round_[2] = plan.winners != nullptr && (plan.winner_bytes != 1 || plan.winner.pooled[last_] != 1);
      squares_ = ServesSquares();
    }
    Index multiplier = 1;
    for (std::size_t a = last_ + 1; a-- > 0;) {
      multiplier_[a] = multiplier;
      multiplier *= plan.axes[a].kernel;
    }
  }

  // Rows are spread, not reduced.
  [[nodiscard]] bool Spreads() const {
    if constexpr (!spreads) return false;
    return plan_.rows && plan_.axes[last_].spread > 0;
  }
  template <class F>
  auto WithTable(F&& use) const {
    return Spreads() ? use(spread_) : use(table_);
  }

  [[nodiscard]] Index outputs(std::size_t a) const { return block_.end[a] - block_.begin[a]; }

  void Enter(const Lanes& lanes) {
    for (int i = 0; i < S::inputs; ++i)
      in_[i] = static_cast<const Raw*>(plan_.inputs[static_cast<std::size_t>(i)].data) +
               lanes.First(plan_.lanes, plan_.inputs[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 2; ++i) {
      const plan::Operand& operand = plan_.outputs[static_cast<std::size_t>(i)];
      out_[i] = operand.data == nullptr ? nullptr : static_cast<Raw*>(operand.data) + lanes.First(plan_.lanes, operand);
    }
    if (plan_.winners != nullptr)
      winners_ = plan_.winners + lanes.First(plan_.lanes, plan_.winner) * plan_.winner_bytes;
    margins_begin_ = margins_end_ = 0;
    for (std::size_t a = 0; a < last_; ++a) Forget(a);
  }

  // Where a slice begins in each input.
  struct Place {
    Index offset[S::inputs] = {};
    [[nodiscard]] Place Along(const plan::Plan& plan, std::size_t a, Index position) const {
      Place place = *this;
      for (int i = 0; i < S::inputs; ++i)
        place.offset[i] += position * plan.inputs[static_cast<std::size_t>(i)].pooled[a];
      return place;
    }
  };

  // Slices along an axis, found by position.
  struct Ring {
    Index size = 1;  // a power of two
    plan::Scratch::Array<Lane> slices{};
    plan::Scratch::Array<Index> tags{};
  };
  void Forget(std::size_t a) { std::fill_n(scratch_.At(ring_[a].tags), ring_[a].size, Index{-1}); }

  // The pieces that output o along axis a consists of.
  struct Pieces {
    const Lane* from[plan::max_extent];
    Index numbers[plan::max_extent];
    double weights[plan::max_extent];
    Index count = 0;
  };
  // To the next cell, or in rows mode to the next row.
  HWY_INLINE void Advance(Pieces& pieces) const {
    for (Index t = 0; t < pieces.count; ++t) pieces.from[t] += S::parts * width_;
  }
  void Collect(std::size_t a, Index o, const Place& place, Pieces& pieces) {
    const PooledAxis& axis = plan_.axes[a];
    const Taps& window = axis.taps[o];
    const Ring& ring = ring_[a];
    pieces.count = window.count;
    for (Index t = 0; t < window.count; ++t) {
      const Index position = window.start + t * axis.step;
      const Index slot = position & (ring.size - 1);
      Lane* slice = scratch_.At(ring.slices) + slot * slice_[a + 1];
      if (scratch_.At(ring.tags)[slot] != position) {
        Slice(a + 1, place.Along(plan_, a, position), position, slice);
        scratch_.At(ring.tags)[slot] = position;
      }
      pieces.from[t] = slice + (Spreads() && a + 1 == last_ ? spread_.skip() : 0);
      pieces.numbers[t] = (window.first + t) * multiplier_[a];
      if constexpr (S::weighted) pieces.weights[t] = axis.weights[position];
    }
  }

  // The slice of outputs along the axes from `a` on, at position `row` along the axis before.
  void Slice(std::size_t a, const Place& place, Index row, Lane* to) {
    if (a == last_) return Row(place, row, to);
    margins_begin_ = margins_end_ = 0;  // copies of rows of another slice
    if (a + 1 == last_ && squares_) return Squares(place, PieceLines{*this, to});
    Forget(a);
    for (Index o = block_.begin[a]; o < block_.end[a]; ++o) {
      Pieces pieces;
      Collect(a, o, place, pieces);
      Lane* line = to + (o - block_.begin[a]) * slice_[a + 1];
      const Index parts = S::parts == 1 ? 1 : slice_[a + 1] / (S::parts * width_);
      const Index lanes = S::parts == 1 ? slice_[a + 1] : width_;
      for (Index cell = 0; cell < parts; ++cell) {
        MergeSlices<S, 0>(pieces.from, pieces.numbers, pieces.weights, pieces.count, lanes, width_,
                          [&](const auto& acc, Index lane) HWY_ATTR { S::Store(acc, line + lane, width_); });
        Advance(pieces);
        line += S::parts * width_;
      }
    }
  }

  template <class Put>
  HWY_INLINE void MergeAny(const Pieces& pieces, Index lanes, Put&& put) const {
    switch (pieces.count) {
      case 2: return MergeSlices<S, 2>(pieces.from, pieces.numbers, pieces.weights, 2, lanes, width_, put);
      case 3: return MergeSlices<S, 3>(pieces.from, pieces.numbers, pieces.weights, 3, lanes, width_, put);
      default: return MergeSlices<S, 0>(pieces.from, pieces.numbers, pieces.weights, pieces.count, lanes, width_, put);
    }
  }

  void Row(const Place& place, Index row, Lane* to) {
    if (!plan_.rows) {
      const PooledAxis& axis = plan_.axes[last_];
      const Raw* base = in_[0] + place.offset[0];
      const Index pitch = plan_.inputs[0].pooled[last_];
      PassShape shape{
          &axis, block_.begin[last_], block_.end[last_], 0, axis.in, pitch, S::parts * width_, 1, width_, width_, 1};
      if constexpr (S::inputs == 2) shape.in_part = in_[1] + place.offset[1] - base;
      return Pass<S, true>(shape, base, to, nullptr);
    }
    const Raw* rows[S::inputs];
    for (int i = 0; i < S::inputs; ++i) rows[i] = in_[i] + place.offset[i];
    if constexpr (spreads) {
      if (Spreads()) {
        Copied(row, rows);
        return SpreadRow<S>(spread_, rows[0], to);
      }
    }
    if constexpr (!Table::in_registers) Copied(row, rows);
    if constexpr (!S::weighted) ReduceRow<S>(table_, rows, to, width_);  // weights of rows are not served
  }

  // Exchanges rows for copies between margins; some more are copied on the way.
  void Copied(Index row, const Raw* (&rows)[S::inputs]) {
    Raw* base = scratch_.At(margins_) + WithTable([](const auto& table) { return table.MarginBefore(); });
    if (row < 0 || row < margins_begin_ || row >= margins_end_) {
      margins_begin_ = HWY_MAX(row, Index{0});
      const Index limit = row < 0 ? 1 : block_.limit[last_ - 1];
      margins_end_ = HWY_MIN(limit, margins_begin_ + batch);
      for (Index r = margins_begin_; r < margins_end_; ++r)
        for (int i = 0; i < S::inputs; ++i) {
          const Index away = row < 0 ? 0 : (r - row) * plan_.inputs[static_cast<std::size_t>(i)].pooled[last_ - 1];
          Raw* to = base + ((r - margins_begin_) * S::inputs + i) * margin_pitch_;
          WithTable([&](const auto& table) { table.CopyBetweenMargins(rows[i] + away, to); });
        }
    }
    const Index at = row < 0 ? 0 : row - margins_begin_;
    for (int i = 0; i < S::inputs; ++i) rows[i] = base + (at * S::inputs + i) * margin_pitch_;
  }

  // All results of the block.
  void Results() {
    Pieces pieces;
    Outer outer;
    if (last_ == 0) {
      Lane* row = scratch_.At(ring_[0].slices);
      Row({}, -1, row);
      pieces.from[0] = row + (Spreads() ? spread_.skip() : 0);
      pieces.numbers[0] = 0;
      pieces.weights[0] = 1;
      pieces.count = 1;
      return FinishRow(pieces, outer);
    }
    if (last_ == 1 && squares_) return Squares({}, ResultLines{*this, {}});
    for (Index o = block_.begin[0]; o < block_.end[0]; ++o) {
      Collect(0, o, {}, pieces);
      Rows(1, pieces, outer.Along(plan_, 0, o));
    }
  }

  // What the rows of results have in common along the axes before the last: where they go and how many taps they have.
  struct Outer {
    Index offset[3] = {};
    Index real = 1, padded = 1;
    [[nodiscard]] Outer Along(const plan::Plan& plan, std::size_t a, Index o) const {
      Outer outer = *this;
      outer.offset[0] += o * plan.outputs[0].pooled[a];
      outer.offset[1] += o * plan.outputs[1].pooled[a];
      outer.offset[2] += o * plan.winner.pooled[a];
      outer.real *= plan.axes[a].taps[o].count;
      outer.padded *= plan.axes[a].taps[o].padded;
      return outer;
    }
  };

  // What comes out of two axes, row after row: pieces, or results.
  struct PieceLines {
    Stream& stream;
    Lane* to;
    void Go(Index o) { line_ = to + (o - stream.block_.begin[stream.last_ - 1]) * stream.slice_[stream.last_]; }
    HWY_INLINE void Next() { line_ += stream.slice_[stream.last_]; }
    HWY_INLINE void Put(const typename S::V (&acc)[S::parts], Index lane) const {
      S::Store(acc, line_ + lane, stream.width_);
    }
    Lane* line_ = nullptr;
  };
  struct ResultLines {
    Stream& stream;
    Finish<S> finish;  // a copy that no store can reach
    void Go(Index o) {
      target_ = stream.Begin(Outer{}.Along(stream.plan_, 0, o));
      finish = stream.finish_;
      for (std::size_t i = 0; i < 2; ++i) pitch_[i] = stream.plan_.outputs[i].pooled[0];
      pitch_[2] = stream.plan_.winner.pooled[0] * stream.plan_.winner_bytes;
      columns_ = stream.columns_;
    }
    HWY_INLINE void Next() {
      for (int i = 0; i < 2; ++i)
        if (target_.out[i] != nullptr) target_.out[i] += pitch_[i];
      if (Finish<S>::winners) target_.winners += pitch_[2];
    }
    HWY_INLINE void Put(const typename S::V (&acc)[S::parts], Index lane) const {
      finish.Put(stream.plan_, acc, lane, 0, columns_, target_);
    }
    RowTarget<Raw> target_{};
    Index pitch_[3] = {};
    Index columns_ = 0;
  };

  // The last two axes at once, for the most usual windows.
  template <class Lines>
  void Squares(const Place& place, Lines&& lines) {
    if constexpr (squares) {
      const PooledAxis& axis = plan_.axes[last_];
      if (axis.stride == 1) return SquaresBy<1, 3>(place, lines);
      if (axis.kernel == 2) return SquaresBy<2, 2>(place, lines);
      return SquaresBy<2, 3>(place, lines);
    }
  }
  template <Index s, int k, class Lines>
  HWY_INLINE void SquaresBy(const Place& place, Lines& lines) {
    if (table_.chunks() <= 4) return Strips<s, k>(place, lines);
    Sweep<s, k>(place, lines);
  }
  [[nodiscard]] bool ServesSquares() const {
    if constexpr (!squares) return false;
    if (!plan_.rows || last_ == 0 || round_[0] || round_[1] || round_[2]) return false;
    const PooledAxis& a = plan_.axes[last_ - 1];
    const PooledAxis& b = plan_.axes[last_];
    return a.slides && a.step == 1 && b.step == 1 && a.kernel == b.kernel && a.stride == b.stride &&
           ((b.kernel == 3 && b.stride <= 2) || (b.kernel == 2 && b.stride == 2));
  }
  // One output row from all the rows of its window, at an end of the axis.
  template <Index s, int k, bool edge, class Lines>
  HWY_INLINE void BorderChunk(const Raw* const* planes, Index o, Index chunk, const Lines& lines) {
    using Reader = Chunk<S, s, k, edge>;
    const Reader reader(table_, chunk);
    const Taps& window = plan_.axes[last_ - 1].taps[o];
    typename Reader::Piece acc;
    for (Index t = 0; t < window.count; ++t) {
      const Raw* rows[S::inputs];
      for (int i = 0; i < S::inputs; ++i) rows[i] = planes[i] + (window.start + t) * RowPitch(i);
      typename Reader::Piece later;
      reader.Reduce(rows, later);
      for (int g = 0; g < Reader::groups; ++g) {
        S::Shift(later[g], (window.first + t) * multiplier_[last_ - 1]);
        if (t == 0)
          for (int part = 0; part < S::parts; ++part) acc[g][part] = later[g][part];
        else
          S::Merge(acc[g], later[g]);
      }
    }
    PutPiece(acc, chunk, lines);
  }
  template <Index s, int k, class Lines>
  HWY_NOINLINE void Border(const Raw* const* planes, Index o, Lines& lines) {
    lines.Go(o);
    EachChunk([&]<bool edge>(std::bool_constant<edge>, Index chunk)
                  HWY_ATTR { BorderChunk<s, k, edge>(planes, o, chunk, lines); });
  }
  template <int groups, class Lines>
  HWY_INLINE static void PutPiece(const typename S::V (&acc)[groups][S::parts], Index chunk, const Lines& lines) {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) lines.Put(acc[g], chunk * vector_lanes<Raw> + g * vector_lanes<Lane>);
  }
  [[nodiscard]] Index RowPitch(int input) const {
    return plan_.inputs[static_cast<std::size_t>(input)].pooled[last_ - 1];
  }
  template <class F>
  HWY_INLINE void EachChunk(F&& use) const {
    Index chunk = 0;
    for (; chunk < table_.inner_begin(); ++chunk) use(std::true_type{}, chunk);
    for (; chunk < table_.inner_end(); ++chunk) use(std::false_type{}, chunk);
    for (; chunk < table_.chunks(); ++chunk) use(std::true_type{}, chunk);
  }
  // Merges the pieces of k rows.
  template <int k, int groups>
  HWY_INLINE void MergeRows(const typename S::V (&pieces)[k][groups][S::parts],
                            typename S::V (&acc)[groups][S::parts]) const {
    const Index multiplier = multiplier_[last_ - 1];
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) {
      HWY_UNROLL(16)
      for (int part = 0; part < S::parts; ++part) acc[g][part] = pieces[0][g][part];
      HWY_UNROLL(16)
      for (int r = 1; r < k; ++r) {
        typename S::V later[S::parts];
        HWY_UNROLL(16)
        for (int part = 0; part < S::parts; ++part) later[part] = pieces[r][g][part];
        S::Shift(later, r * multiplier);
        S::Merge(acc[g], later);
      }
    }
  }

  // Row after row, as they lie in memory: what a window shares with the next one is carried in a row of pieces.
  template <Index s, int k, class Lines>
  HWY_NOINLINE void Sweep(const Place& place, Lines& lines) {
    const PooledAxis& axis = plan_.axes[last_ - 1];
    const Raw* planes[S::inputs];
    for (int i = 0; i < S::inputs; ++i) planes[i] = in_[i] + place.offset[i];
    Index o = block_.begin[last_ - 1];
    const Index end = block_.end[last_ - 1];
    const Index run = HWY_MIN(end, axis.run_end);
    for (; o < HWY_MIN(end, axis.run_begin); ++o) Border<s, k>(planes, o, lines);
    if (o < run) {
      lines.Go(o);
      const Raw* rows[k][S::inputs];
      for (int i = 0; i < S::inputs; ++i)
        for (int r = 0; r < k; ++r) rows[r][i] = planes[i] + (axis.taps[o].start + r) * RowPitch(i);
      Lane* carried[2] = {scratch_.At(carried_), scratch_.At(carried_) + S::parts * width_};
      for (int r = 0; r < k - s; ++r)
        EachChunk([&]<bool edge>(std::bool_constant<edge>, Index chunk) HWY_ATTR {
          typename Chunk<S, s, k, edge>::Piece piece;
          Chunk<S, s, k, edge>(table_, chunk).Reduce(rows[r], piece);
          StorePiece(piece, chunk, carried[r]);
        });
      for (; o < run; ++o) {
        EachChunk([&]<bool edge>(std::bool_constant<edge>, Index chunk)
                      HWY_ATTR { SweepChunk<s, k, edge>(rows, chunk, carried, lines); });
        if constexpr (k - s == 2) std::swap(carried[0], carried[1]);
        for (int i = 0; i < S::inputs; ++i)
          for (int r = 0; r < k; ++r) rows[r][i] += s * RowPitch(i);
        lines.Next();
      }
    }
    for (; o < end; ++o) Border<s, k>(planes, o, lines);
  }
  template <Index s, int k, bool edge, class Lines>
  HWY_INLINE void SweepChunk(const Raw* const (&rows)[k][S::inputs], Index chunk, Lane* const (&carried)[2],
                             const Lines& lines) const {
    using Reader = Chunk<S, s, k, edge>;
    const Reader reader(table_, chunk);
    typename Reader::Piece pieces[k];
    HWY_UNROLL(16)
    for (int r = 0; r < k - s; ++r) {
      HWY_UNROLL(16)
      for (int g = 0; g < Reader::groups; ++g)
        S::Load(pieces[r][g], carried[r] + chunk * vector_lanes<Raw> + g * vector_lanes<Lane>, width_, 0, 1);
    }
    HWY_UNROLL(16)
    for (int r = k - s; r < k; ++r) reader.Reduce(rows[r], pieces[r]);
    if constexpr (k > s) StorePiece(pieces[k - 1], chunk, carried[0]);  // in the place of the row that is done with
    typename Reader::Piece acc;
    MergeRows(pieces, acc);
    PutPiece(acc, chunk, lines);
  }
  template <int groups>
  HWY_INLINE void StorePiece(const typename S::V (&piece)[groups][S::parts], Index chunk, Lane* to) const {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g)
      S::Store(piece[g], to + chunk * vector_lanes<Raw> + g * vector_lanes<Lane>, width_);
  }

  // Small planes, strip by strip: a vector of columns from the first row to the last, with the rows that windows share
  // in registers.
  template <Index s, int k, class Lines>
  HWY_NOINLINE void Strips(const Place& place, Lines& lines) {
    const Raw* planes[S::inputs];
    for (int i = 0; i < S::inputs; ++i) planes[i] = in_[i] + place.offset[i];
    EachChunk([&]<bool edge>(std::bool_constant<edge>, Index chunk)
                  HWY_ATTR { Strip<s, k, edge>(planes, chunk, lines); });
  }
  template <Index s, int k, bool edge, class Lines>
  HWY_INLINE void Strip(const Raw* const* planes, Index chunk, Lines lines) {
    using Reader = Chunk<S, s, k, edge>;
    const Reader reader(table_, chunk);
    const PooledAxis& axis = plan_.axes[last_ - 1];
    Index o = block_.begin[last_ - 1];
    const Index end = block_.end[last_ - 1];
    const Index run = HWY_MIN(end, axis.run_end);
    for (; o < HWY_MIN(end, axis.run_begin); ++o) {
      lines.Go(o);
      BorderChunk<s, k, edge>(planes, o, chunk, lines);
    }
    if (o < run) {
      lines.Go(o);
      Index pitch[S::inputs];
      const Raw* rows[S::inputs];
      for (int i = 0; i < S::inputs; ++i) {
        pitch[i] = RowPitch(i);
        rows[i] = planes[i] + axis.taps[o].start * pitch[i];
      }
      typename Reader::Piece pieces[k];
      HWY_UNROLL(16)
      for (int r = 0; r < k - s; ++r) {
        reader.Reduce(rows, pieces[r]);
        for (int i = 0; i < S::inputs; ++i) rows[i] += pitch[i];
      }
      for (; o < run; ++o) {
        HWY_UNROLL(16)
        for (int r = k - s; r < k; ++r) {
          reader.Reduce(rows, pieces[r]);
          for (int i = 0; i < S::inputs; ++i) rows[i] += pitch[i];
        }
        typename Reader::Piece acc;
        MergeRows(pieces, acc);
        PutPiece(acc, chunk, lines);
        lines.Next();
        HWY_UNROLL(16)
        for (int r = 0; r < k - s; ++r)
          for (int g = 0; g < Reader::groups; ++g)
            for (int part = 0; part < S::parts; ++part) pieces[r][g][part] = pieces[r + s][g][part];
      }
    }
    for (; o < end; ++o) {
      lines.Go(o);
      BorderChunk<s, k, edge>(planes, o, chunk, lines);
    }
  }

  // The rows of a slice along the axes from `a` on, of which `pieces` are merged.
  void Rows(std::size_t a, Pieces& pieces, const Outer& outer) {
    if (a == last_) {
      FinishRow(pieces, outer);
      return;
    }
    for (Index o = block_.begin[a]; o < block_.end[a]; ++o) Rows(a + 1, pieces, outer.Along(plan_, a, o));
  }

  // A row of results begins: where it goes.
  HWY_INLINE RowTarget<Raw> Begin(const Outer& outer) {
    const RowShape shape{&plan_, block_.begin[last_], columns_, outer.real, outer.padded, cells_, width_};
    finish_.Begin(shape, scratch_.At(numbers_));
    const Index begin = block_.begin[last_];
    RowTarget<Raw> target;
    for (int i = 0; i < 2; ++i)
      if (out_[i] != nullptr)
        target.out[i] = out_[i] + outer.offset[i] + begin * plan_.outputs[static_cast<std::size_t>(i)].pooled[last_];
    if (plan_.winners != nullptr)
      target.winners = winners_ + (outer.offset[2] + begin * plan_.winner.pooled[last_]) * plan_.winner_bytes;
    return target;
  }

  // One row of results from the next rows of pieces.
  void FinishRow(Pieces& pieces, const Outer& outer) {
    RowTarget<Raw> target = Begin(outer);
    if (!plan_.rows) {
      for (Index c = 0; c < cells_; ++c) {
        MergeAny(pieces, width_,
                 [&](const auto& acc, Index lane) HWY_ATTR { finish_.Put(plan_, acc, lane, c, width_, target); });
        Advance(pieces);
        for (int i = 0; i < 2; ++i)
          if (out_[i] != nullptr) target.out[i] += plan_.outputs[static_cast<std::size_t>(i)].pooled[last_];
        if (plan_.winners != nullptr) target.winners += plan_.winner.pooled[last_] * plan_.winner_bytes;
      }
      return;
    }
    RowTarget<Raw> to = target;
    for (int i = 0; i < 2; ++i)
      if (round_[i]) to.out[i] = scratch_.At(finished_) + i * width_;
    if (round_[2]) to.winners = reinterpret_cast<std::uint8_t*>(scratch_.At(won_));
    MergeAny(pieces, columns_,
             [&](const auto& acc, Index lane) HWY_ATTR { finish_.Put(plan_, acc, lane, 0, columns_, to); });
    Advance(pieces);
    if (!round_[0] && !round_[1] && !round_[2]) return;
    for (int i = 0; i < 2; ++i) {
      const Index stride = plan_.outputs[static_cast<std::size_t>(i)].pooled[last_];
      for (Index c = 0; round_[i] && c < columns_; ++c) target.out[i][c * stride] = to.out[i][c];
    }
    // Numbers are little-endian, so that their low bytes come first.
    const auto bytes = static_cast<std::size_t>(plan_.winner_bytes);
    const Index stride = plan_.winner.pooled[last_] * plan_.winner_bytes;
    const std::size_t each = bytes == 1 ? 1 : sizeof(Bits<Lane>);
    for (Index c = 0; round_[2] && c < columns_; ++c)
      std::memcpy(target.winners + c * stride, to.winners + static_cast<std::size_t>(c) * each, bytes);
  }

  const plan::Plan& plan_;
  Block block_;
  std::size_t last_;
  Table table_;
  SpreadTable<Raw> spread_;
  plan::Scratch scratch_;
  Index columns_ = 0, cells_ = 1, width_ = 0;
  std::array<Index, max_rank> slice_{};       // lanes of a slice of outputs along the axes from each on
  std::array<Index, max_rank> multiplier_{};  // of the numbers of taps along each axis
  std::array<Ring, max_rank> ring_{};
  plan::Scratch::Array<Lane> carried_{};
  plan::Scratch::Array<double> numbers_{};
  plan::Scratch::Array<Raw> margins_{}, finished_{};
  plan::Scratch::Array<Bits<Lane>> won_{};
  Index margin_pitch_ = 0, margins_begin_ = 0, margins_end_ = 0;
  Finish<S> finish_{};
  bool squares_ = false;  // both last axes go together
  bool round_[3] = {};    // results and winners that are no neighbours along the row take a way round
  const Raw* in_[S::inputs] = {};
  Raw* out_[2] = {};
  std::uint8_t* winners_ = nullptr;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
