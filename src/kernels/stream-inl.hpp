// A reduction that streams: rows of the input are reduced where they lie, one after the other, and kept in a ring for
// as long as some window needs them; as soon as the last row of a window is there, its results are written. Serves
// windows that are reduced tap by tap. Vectors stand along the last axis (`plan.rows`), or along lanes that are
// neighbours. States that `lift` have rows of terms made from rows of cells on the way, each of them once.
#if defined(CENOTE_KERNELS_STREAM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_STREAM_INL_HPP
#undef CENOTE_KERNELS_STREAM_INL_HPP
#else
#define CENOTE_KERNELS_STREAM_INL_HPP
#endif

#include "kernels/finish-inl.hpp"
#include "kernels/passes-inl.hpp"
#include "kernels/pieces-inl.hpp"
#include "kernels/rows-inl.hpp"
#include "kernels/squares-inl.hpp"
#include "kernels/task-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

template <class S>
class Stream {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;
  using Source = typename SourceOf<S>::type;

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
  static constexpr bool lifts = !std::is_same_v<Source, Raw>;
  static constexpr int sources = SourceOf<S>::count;
  static constexpr bool squares = S::common && !lifts;
  static constexpr bool spreads = S::common && !S::repeats && !lifts;
  // Integers know neither -0 nor NaN: their extremes may be taken in any order.
  static constexpr bool any_order = S::common && requires { requires S::overlaps; } && std::is_integral_v<Raw>;
  // Rows that are copied between margins together: stores must settle before loads.
  static constexpr Index plane_batch = 32;
  Index batch_ = 8;

  Stream(const plan::Plan& plan, const Block& block)
      : plan_(plan), block_(block), last_(static_cast<std::size_t>(plan.rank - 1)), multiplier_(MultipliersOf(plan)),
        table_(plan.axes[last_], block.begin[last_], block.end[last_], S::common),
        spread_(plan.axes[last_], block.begin[last_], block.end[last_]) {
    columns_ = outputs(last_);
    if (plan.rows) {
      cells_ = 1;
      width_ = Spreads() ? spread_.count() * spread_.spread() : table_.chunks() * Table::n;
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
    if constexpr (squares) carried_ = scratch_.Ask<Lane>(2 * slice_[last_]);
    numbers_ = scratch_.Ask<double>(Finish<S>::Numbers(columns_));
    if (plan.rows) {
      if (!Spreads()) table_.Ask(scratch_);
      margin_pitch_ = WithTable(
          [&](const auto& table) { return table.MarginBefore() + plan.axes[last_].in + table.MarginBehind(); });
      if (lifts) batch_ = std::clamp(4096 / margin_pitch_, Index{1}, batch_);
      if (!Table::in_registers || lifts || Spreads())
        margins_ = scratch_.Ask<Raw>((squares ? plane_batch : batch_) * S::inputs * margin_pitch_);
      if constexpr (lifts) sums_ = scratch_.Ask<Lane>(S::parts * width_);
      if constexpr (S::weighted) weights_ = scratch_.Ask<double>(margin_pitch_);
      finished_ = scratch_.Ask<Source>(2 * width_);
      won_ = scratch_.Ask<Bits<Lane>>(width_);
    }
    scratch_.Take();
    if (plan.rows) {
      if (!Spreads()) table_.Fill(scratch_);
      if constexpr (S::weighted) FillWeights();
      for (std::size_t i = 0; i < 2; ++i)
        round_[i] = plan.outputs[i].data != nullptr && plan.outputs[i].pooled[last_] != 1;
      round_[2] = plan.winners != nullptr &&
                  (PutBytes<Bits<Lane>>(plan.winner_bytes) != plan.winner_bytes || plan.winner.pooled[last_] != 1);
    }
    squares_ = ServesSquares();
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

  // The weights of a row, between margins of zeros.
  void FillWeights() {
    double* weights = scratch_.At(weights_);
    const Index before = WithTable([](const auto& table) { return table.MarginBefore(); });
    std::fill_n(weights, margin_pitch_, 0.0);
    std::copy_n(plan_.axes[last_].weights, plan_.axes[last_].in, weights + before);
    table_.SetWeights(weights + before);
  }

  [[nodiscard]] Index outputs(std::size_t a) const { return block_.end[a] - block_.begin[a]; }

  void Enter(const Lanes& lanes) {
    for (int i = 0; i < sources; ++i)
      in_[i] = static_cast<const Source*>(plan_.inputs[static_cast<std::size_t>(i)].data) +
               lanes.First(plan_.lanes, plan_.inputs[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 2; ++i) {
      const plan::Operand& operand = plan_.outputs[static_cast<std::size_t>(i)];
      out_[i] =
          operand.data == nullptr ? nullptr : static_cast<Source*>(operand.data) + lanes.First(plan_.lanes, operand);
    }
    if (plan_.winners != nullptr)
      winners_ = plan_.winners + lanes.First(plan_.lanes, plan_.winner) * plan_.winner_bytes;
    margins_begin_ = margins_end_ = 0;
    for (std::size_t a = 0; a < last_; ++a) Forget(a);
  }

  // Where a slice begins in each input.
  struct Place {
    Index offset[sources] = {};
    [[nodiscard]] Place Along(const plan::Plan& plan, std::size_t a, Index position) const {
      Place place = *this;
      for (int i = 0; i < sources; ++i)
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

  // To the next cell, or in rows mode to the next row.
  HWY_INLINE void Advance(Pieces<S>& pieces) const {
    for (Index t = 0; t < pieces.count; ++t) pieces.from[t] += S::parts * width_;
  }
  // The pieces that output o along axis a consists of, but for the last `but` of them.
  void Collect(std::size_t a, Index o, const Place& place, Pieces<S>& pieces, Index but = 0) {
    const PooledAxis& axis = plan_.axes[a];
    const Taps& window = axis.taps[o];
    pieces.count = window.count - but;
    for (Index t = 0; t < pieces.count; ++t) {
      const Index position = window.start + t * axis.step;
      const Kept kept = Keep(a, position);
      Lane* slice = kept.slice;
      if (!kept.there) Slice(a + 1, place.Along(plan_, a, position), position, slice);
      pieces.from[t] = slice + (Spreads() && a + 1 == last_ ? spread_.skip() : 0);
      pieces.numbers[t] = (window.first + t) * multiplier_[a];
      if constexpr (S::weighted) pieces.weights[t] = axis.weights[position];
    }
  }

  // The place of a slice in the ring of an axis, and whether it is there. From now on it is said to be.
  struct Kept {
    Lane* slice;
    bool there;
  };
  Kept Keep(std::size_t a, Index position) {
    const Index slot = position & (ring_[a].size - 1);
    Index& tag = scratch_.At(ring_[a].tags)[slot];
    const bool there = tag == position;
    tag = position;
    return {scratch_.At(ring_[a].slices) + slot * slice_[a + 1], there};
  }

  // The slice of outputs along the axes from `a` on, at position `row` along the axis before.
  void Slice(std::size_t a, const Place& place, Index row, Lane* to) {
    if (a == last_) return Row(place, row, to);
    margins_begin_ = margins_end_ = 0;  // copies of rows of another slice
    if (a + 1 == last_ && squares_) return LastTwo(place, SliceLines{{*this, {}}, nullptr, to});
    Forget(a);
    for (Index o = block_.begin[a]; o < block_.end[a]; ++o) {
      Pieces<S> pieces;
      Collect(a, o, place, pieces);
      Lane* line = to + (o - block_.begin[a]) * slice_[a + 1];
      const Index parts = S::parts == 1 ? 1 : slice_[a + 1] / (S::parts * width_);
      const Index lanes = S::parts == 1 ? slice_[a + 1] : width_;
      for (Index cell = 0; cell < parts; ++cell) {
        MergeSlices<S, 0>(pieces, lanes, width_,
                          [&](const auto& acc, Index lane) HWY_ATTR { S::Store(acc, line + lane, width_); });
        Advance(pieces);
        line += S::parts * width_;
      }
    }
  }

  template <class Put>
  HWY_INLINE void MergeAny(const Pieces<S>& pieces, Index lanes, Put&& put) const {
    switch (pieces.count) {
      case 2: return MergeSlices<S, 2>(pieces, lanes, width_, put);
      case 3: return MergeSlices<S, 3>(pieces, lanes, width_, put);
      default: return MergeSlices<S, 0>(pieces, lanes, width_, put);
    }
  }

  void Row(const Place& place, Index row, Lane* to) {
    if constexpr (!lifts) {
      if (!plan_.rows) return LaneRow(place, to);
    }
    const Source* rows[sources];
    for (int i = 0; i < sources; ++i) rows[i] = in_[i] + place.offset[i];
    if constexpr (spreads) {
      if (Spreads()) {
        Copied(row, rows, rows);
        return SpreadRow<S>(spread_, rows[0], table_.weights(), to);
      }
    }
    if constexpr (lifts) {
      const Raw* terms[S::inputs];
      Copied(row, rows, terms);
      ReduceRow<S>(table_, terms, StorePieces<S>{to, width_});
    } else {
      if constexpr (!Table::in_registers) Copied(row, rows, rows);
      ReduceRow<S>(table_, rows, StorePieces<S>{to, width_});
    }
  }
  // The same where lanes are neighbours.
  void LaneRow(const Place& place, Lane* to) {
    const PooledAxis& axis = plan_.axes[last_];
    const Raw* base = in_[0] + place.offset[0];
    const Index pitch = plan_.inputs[0].pooled[last_];
    PassShape shape{
        &axis, block_.begin[last_], block_.end[last_], 0, axis.in, pitch, S::parts * width_, 1, width_, width_, 1};
    if constexpr (S::inputs == 2) shape.in_part = in_[1] + place.offset[1] - base;
    Pass<S, true>(shape, base, to, nullptr);
  }

  // Copies of rows between margins, or rows of terms; some more are made on the way.
  void Copied(Index row, const Source* const (&rows)[sources], const Raw* (&copies)[S::inputs]) {
    Raw* base = scratch_.At(margins_) + WithTable([](const auto& table) { return table.MarginBefore(); });
    if (row < 0 || row < margins_begin_ || row >= margins_end_) {
      margins_begin_ = HWY_MAX(row, Index{0});
      const Index limit = row < 0 ? 1 : block_.limit[last_ - 1];
      margins_end_ = HWY_MIN(limit, margins_begin_ + batch_);
      for (Index r = margins_begin_; r < margins_end_; ++r) {
        const Source* from[sources];
        for (int i = 0; i < sources; ++i)
          from[i] = rows[i] + (row < 0 ? 0 : (r - row) * plan_.inputs[static_cast<std::size_t>(i)].pooled[last_ - 1]);
        Raw* const to = base + (r - margins_begin_) * S::inputs * margin_pitch_;
        if constexpr (lifts) {
          S::LiftRow(plan_.formula, from, table_.copied(), to, margin_pitch_);
        } else {
          for (int i = 0; i < S::inputs; ++i)
            WithTable([&](const auto& table) { table.CopyBetweenMargins(from[i], to + i * margin_pitch_); });
        }
      }
    }
    const Index at = row < 0 ? 0 : row - margins_begin_;
    for (int i = 0; i < S::inputs; ++i) copies[i] = base + (at * S::inputs + i) * margin_pitch_;
  }

  // All results of the block.
  void Results() {
    Pieces<S> pieces;
    Outer outer;
    if (last_ == 0) {
      if (OneRow()) return;
      Lane* row = scratch_.At(ring_[0].slices);
      Row({}, -1, row);
      pieces.from[0] = row + (Spreads() ? spread_.skip() : 0);
      pieces.numbers[0] = 0;
      pieces.weights[0] = 1;
      pieces.count = 1;
      return FinishRow(pieces, outer);
    }
    if (last_ == 1 && squares_) return LastTwo({}, ResultLines{*this, {}});
    for (Index o = block_.begin[0]; o < block_.end[0]; ++o) {
      if (last_ == 2 && squares_) {
        LastSlice(o, pieces);
        continue;
      }
      Collect(0, o, {}, pieces);
      if constexpr (lifts)
        if (S::Failed()) return;
      Rows(1, pieces, outer.Along(plan_, 0, o));
    }
  }

  // Planes of results: the last slice of their windows is merged with the ones before it on its way.
  void LastSlice(Index o, Pieces<S>& pieces) {
    const Taps& window = plan_.axes[0].taps[o];
    const Index position = window.start + (window.count - 1) * plan_.axes[0].step;
    Collect(0, o, {}, pieces, 1);
    const Kept kept = Keep(0, position);
    const Place place = Place{}.Along(plan_, 0, position);
    SliceLines lines{{*this, Outer{}.Along(plan_, 0, o)}, &pieces};
    lines.number = (window.first + window.count - 1) * multiplier_[0];
    if constexpr (S::weighted) lines.weight = plan_.axes[0].weights[position];
    // Windows that come later may want it as well.
    lines.keep = plan_.axes[0].kernel * plan_.axes[0].step > plan_.axes[0].stride ? kept.slice : nullptr;
    LastTwo(place, lines);
  }

  // The only row, reduced to results at once if they are neighbours.
  bool OneRow() {
    if constexpr (Table::in_registers && !lifts) {
      if (!plan_.rows || Spreads() || round_[0] || round_[1] || round_[2]) return false;
      ResultLines lines{*this, {}};
      lines.Begin({});
      ReduceRow<S>(table_, in_, lines);
      return true;
    }
    return false;
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

  // Where the pieces of row o of the last two axes begin in a slice.
  [[nodiscard]] Index LineOf(Index o) const { return (o - block_.begin[last_ - 1]) * slice_[last_]; }

  // Where the same columns of row after row of results go: what depends on the column alone has been looked up.
  template <int groups>
  struct ResultSpots {
    const plan::Plan& plan;
    Finish<S> finish;
    typename Finish<S>::Spot spot[groups];
    RowTarget<Source> target;
    Index pitch[3];
    Index column, columns;
    HWY_INLINE void Put(const typename S::V (&acc)[groups][S::parts]) {
      HWY_UNROLL(16)
      for (int g = 0; g < groups; ++g)
        finish.PutAt(spot[g], plan, acc[g], column + g * vector_lanes<Lane>, 0, columns, target);
      target.Step(pitch);
    }
  };
  // What comes out of two axes, row after row: results.
  struct ResultLines {
    Stream& stream;
    Outer outer;
    void Go(Index o) { Begin(outer.Along(stream.plan_, stream.last_ - 1, o)); }
    void Begin(const Outer& row) {
      target_ = stream.Begin(row);
      finish_ = stream.finish_;
      const std::size_t rows = stream.last_ > 0 ? stream.last_ - 1 : 0;
      for (std::size_t i = 0; i < 2; ++i) {
        pitch_[i] = target_.out[i] != nullptr ? stream.plan_.outputs[i].pooled[rows] : 0;
        cell_[i] = stream.plan_.outputs[i].pooled[stream.last_];
      }
      pitch_[2] = Finish<S>::winners ? stream.plan_.winner.pooled[rows] * stream.plan_.winner_bytes : 0;
      cell_[2] = stream.plan_.winner.pooled[stream.last_] * stream.plan_.winner_bytes;
      columns_ = stream.columns_;
      width_ = stream.width_;
    }
    HWY_INLINE void Next() { target_.Step(pitch_); }
    template <int groups>
    HWY_INLINE ResultSpots<groups> Spots(Index, Index column) const {
      ResultSpots<groups> spots{stream.plan_, finish_, {}, target_, {pitch_[0], pitch_[1], pitch_[2]},
                                column,       columns_};
      HWY_UNROLL(16)
      for (int g = 0; g < groups; ++g) spots.spot[g] = finish_.At(column + g * vector_lanes<Lane>, 0);
      return spots;
    }
    HWY_INLINE void operator()(const typename S::V (&acc)[S::parts], Index, Index column) const {
      finish_.Put(stream.plan_, acc, column, 0, columns_, target_);
    }
    HWY_INLINE void AtLane(const typename S::V (&acc)[S::parts], Index column, Index lane) const {
      RowTarget<Source> target = target_;
      for (int i = 0; i < 2; ++i)
        if (target.out[i] != nullptr) target.out[i] += column * cell_[i];
      if (Finish<S>::winners) target.winners += column * cell_[2];
      finish_.Put(stream.plan_, acc, lane, column, width_, target);
    }
    Finish<S> finish_{};  // a copy that no store can reach
    RowTarget<Source> target_{};
    Index pitch_[3] = {}, cell_[3] = {};  // between rows and between cells
    Index columns_ = 0, width_ = 0;
  };
  // Or pieces of a slice, which are kept, or merged with those of slices before it and become results, or both. One
  // kind of lines for all of them: every kind is compiled with every loop.
  struct SliceLines {
    ResultLines results;
    const Pieces<S>* before;  // null: there are no results
    Lane* keep = nullptr;     // where pieces go
    Index number = 0;         // of the taps of this slice
    double weight = 1;
    Index line = 0;  // the beginning of the row of pieces
    Index width = 0;
    void Go(Index o) {
      if (before != nullptr) results.Go(o);
      line = results.stream.LineOf(o);
      width = results.stream.width_;
    }
    HWY_INLINE void Next() {
      if (before != nullptr) results.Next();
      line += results.stream.slice_[results.stream.last_];
    }
    // Whether a piece becomes a result.
    HWY_INLINE bool Merge(typename S::V (&acc)[S::parts], Index at) const {
      if (keep != nullptr) S::Store(acc, keep + at, width);
      if (before == nullptr) return false;
      if constexpr (S::weighted) acc[0] = hn::Mul(acc[0], hn::Set(typename S::D(), weight));
      S::Shift(acc, number);
      if (before->count == 0) return true;
      typename S::V earlier[S::parts];
      before->Merge(at, width, earlier);
      S::MergeBefore(earlier, acc);
      return true;
    }
    HWY_INLINE void operator()(typename S::V (&acc)[S::parts], Index slot, Index column) const {
      if (Merge(acc, line + slot)) results(acc, slot, column);
    }
    HWY_INLINE void AtLane(typename S::V (&acc)[S::parts], Index column, Index lane) const {
      if (Merge(acc, line + column * S::parts * width + lane)) results.AtLane(acc, column, lane);
    }
    // The same columns of row after row.
    template <int groups>
    struct LineSpots {
      SliceLines lines;
      Index slot, column;
      HWY_INLINE void Put(typename S::V (&acc)[groups][S::parts]) {
        HWY_UNROLL(16)
        for (int g = 0; g < groups; ++g) lines(acc[g], slot + g * vector_lanes<Lane>, column + g * vector_lanes<Lane>);
        lines.Next();
      }
    };
    template <int groups>
    HWY_INLINE LineSpots<groups> Spots(Index slot, Index column) const {
      return {*this, slot, column};
    }
  };

  // The last two axes at once, for the most usual windows.
  template <class Lines>
  void LastTwo(const Place& place, Lines&& lines) {
    if constexpr (squares) {
      SquarePlane<S> plane;
      for (int i = 0; i < S::inputs; ++i) {
        plane.base[i] = in_[i] + place.offset[i];
        plane.pitch[i] = plan_.inputs[static_cast<std::size_t>(i)].pooled[last_ - 1];
      }
      plane.axis = &plan_.axes[last_ - 1];
      plane.begin = block_.begin[last_ - 1];
      plane.end = block_.end[last_ - 1];
      plane.multiplier = multiplier_[last_ - 1];
      plane.width = width_;
      plane.carried = scratch_.At(carried_);
      const PooledAxis& axis = plan_.axes[last_];
      const auto run = [&]<Index s, int k>() {
        if (plan_.rows) return RowSquares<s, k>(plane, lines);
        using Kernel = LaneSquares<S, s, k>;
        Kernel::Run({&axis, block_.begin[last_], block_.end[last_], plan_.inputs[0].pooled[last_]}, plane, lines);
      };
      if (axis.stride == 1) return run.template operator()<1, 3>();
      if constexpr (!S::weighted) {  // weighted windows are one cell apart
        if (axis.kernel == 2) return run.template operator()<2, 2>();
        return run.template operator()<2, 3>();
      }
    }
  }
  // Where rows are read between margins, as many as there is room for are copied at a time.
  template <Index s, int k, class Lines>
  void RowSquares(SquarePlane<S>& plane, Lines& lines) {
    if constexpr (Table::in_registers) {
      Squares<S, s, k>::Run(table_, plane, lines);
    } else if constexpr (any_order && k > s && s > 1) {
      RowsOfBest<s, k>(plane, lines);
    } else {
      static_assert(S::inputs == 1);
      const Taps* taps = plane.axis->taps;
      const Raw* base = plane.base[0];
      Raw* copies = scratch_.At(margins_) + table_.MarginBefore();
      const Index pitch = std::exchange(plane.pitch[0], margin_pitch_);
      for (const Index end = plane.end; plane.begin < end; plane.begin = plane.end) {
        const Index first = taps[plane.begin].start;
        Index stop = first;
        for (plane.end = plane.begin; plane.end < end; ++plane.end) {
          const Index last = taps[plane.end].start + taps[plane.end].count;
          if (last - first > plane_batch) break;
          stop = last;
        }
        for (Index r = first; r < stop; ++r)
          table_.CopyBetweenMargins(base + r * pitch, copies + (r - first) * margin_pitch_);
        plane.base[0] = copies - first * margin_pitch_;
        Squares<S, s, k>::Run(table_, plane, lines);
      }
    }
  }
  // The rows of a window become one between margins first, which is then reduced along itself: to split bytes
  // into the phases of the stride costs more than anything else, and otherwise happens in each of those rows.
  template <Index s, int k, class Lines>
  HWY_NOINLINE void RowsOfBest(const SquarePlane<S>& plane, Lines& lines) {
    Raw* const copies = scratch_.At(margins_) + table_.MarginBefore();
    const auto put = [&](const typename S::V(&acc)[S::parts], Index slot, Index column) HWY_ATTR {
      typename S::V piece[S::parts] = {acc[0]};
      lines(piece, slot, column);
    };
    for (Index begin = plane.begin; begin < plane.end; begin += plane_batch) {
      const Index end = HWY_MIN(plane.end, begin + plane_batch);
      for (Index o = begin; o < end; ++o) {
        const Taps& window = plane.axis->taps[o];
        Raw* const to = copies + (o - begin) * margin_pitch_;
        BestOfRows<S::is_largest>(plane.base[0] + window.start * plane.pitch[0], window.count, plane.pitch[0],
                                  table_.copied(), to);
        table_.FillMargins(to, to);
      }
      for (Index o = begin; o < end; ++o) {
        lines.Go(o);
        const Raw* const row = copies + (o - begin) * margin_pitch_;
        ReduceChunks<S, s, k>(table_, &row, put);
      }
    }
  }
  [[nodiscard]] bool ServesSquares() const {
    if constexpr (!squares) return false;
    if (last_ == 0 || round_[0] || round_[1] || round_[2]) return false;
    if (plan_.rows && table_.edges() > Squares<S, 1, 3>::max_edges) return false;
    const PooledAxis& a = plan_.axes[last_ - 1];
    const PooledAxis& b = plan_.axes[last_];
    if (S::weighted && b.stride != 1) return false;
    return a.slides && b.slides && a.step == 1 && b.step == 1 && a.kernel == b.kernel && a.stride == b.stride &&
           ((b.kernel == 3 && b.stride <= 2) || (b.kernel == 2 && b.stride == 2));
  }

  // The rows of a slice along the axes from `a` on, of which `pieces` are merged.
  void Rows(std::size_t a, Pieces<S>& pieces, const Outer& outer) {
    if (a == last_) {
      FinishRow(pieces, outer);
      return;
    }
    for (Index o = block_.begin[a]; o < block_.end[a]; ++o) Rows(a + 1, pieces, outer.Along(plan_, a, o));
  }

  [[nodiscard]] RowShape ShapeOf(const Outer& outer) const {
    return {&plan_, block_.begin[last_], columns_, outer.real, outer.padded, cells_, width_};
  }
  // A row of results begins: where it goes.
  HWY_INLINE RowTarget<Source> Begin(const Outer& outer) {
    if constexpr (!lifts) finish_.Begin(ShapeOf(outer), scratch_.At(numbers_));
    const Index begin = block_.begin[last_];
    RowTarget<Source> target;
    for (int i = 0; i < 2; ++i)
      if (out_[i] != nullptr)
        target.out[i] = out_[i] + outer.offset[i] + begin * plan_.outputs[static_cast<std::size_t>(i)].pooled[last_];
    if (plan_.winners != nullptr)
      target.winners = winners_ + (outer.offset[2] + begin * plan_.winner.pooled[last_]) * plan_.winner_bytes;
    return target;
  }

  // One row of results from the next rows of pieces.
  void FinishRow(Pieces<S>& pieces, const Outer& outer) {
    if constexpr (lifts)
      FinishSums(pieces, outer);
    else
      FinishVectors(pieces, outer);
  }
  // Vector by vector, as they are merged.
  void FinishVectors(Pieces<S>& pieces, const Outer& outer) {
    RowTarget<Source> target = Begin(outer);
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
    RowTarget<Source> to = target;
    for (int i = 0; i < 2; ++i)
      if (round_[i]) to.out[i] = scratch_.At(finished_) + i * width_;
    if (round_[2]) to.winners = reinterpret_cast<std::uint8_t*>(scratch_.At(won_));
    const bool spread = Spreads();
    MergeAny(pieces, spread ? columns_ : width_, [&](const auto& acc, Index lane) HWY_ATTR {
      finish_.Put(plan_, acc, spread ? lane : ColumnAt(lane), 0, columns_, to);
    });
    Advance(pieces);
    if (!round_[0] && !round_[1] && !round_[2]) return;
    for (int i = 0; i < 2; ++i) {
      const Index stride = plan_.outputs[static_cast<std::size_t>(i)].pooled[last_];
      for (Index c = 0; round_[i] && c < columns_; ++c) target.out[i][c * stride] = to.out[i][c];
    }
    // Numbers are little-endian, so that their low bytes come first.
    const auto bytes = static_cast<std::size_t>(plan_.winner_bytes);
    const Index stride = plan_.winner.pooled[last_] * plan_.winner_bytes;
    const auto each = static_cast<std::size_t>(PutBytes<Bits<Lane>>(plan_.winner_bytes));
    for (Index c = 0; round_[2] && c < columns_; ++c)
      std::memcpy(target.winners + c * stride, to.winners + static_cast<std::size_t>(c) * each, bytes);
  }

  // The column of a lane of pieces.
  [[nodiscard]] HWY_INLINE Index ColumnAt(Index lane) const {
    constexpr Index n = vector_lanes<Raw>;
    return table_.First(lane / n) + lane % n;
  }
  // All sums together.
  void FinishSums(Pieces<S>& pieces, const Outer& outer) {
    const RowTarget<Source> target = Begin(outer);
    Lane* const sums = scratch_.At(sums_);
    MergeAny(pieces, width_,
             [&](const auto& acc, Index lane) HWY_ATTR { S::Store(acc, sums + ColumnAt(lane), width_); });
    Advance(pieces);
    Source* const finished = scratch_.At(finished_);
    finish_.Row(ShapeOf(outer), sums, finished, scratch_.At(numbers_));
    for (int i = 0; i < 2; ++i) {
      if (target.out[i] == nullptr) continue;
      const Index stride = plan_.outputs[static_cast<std::size_t>(i)].pooled[last_];
      if (stride == 1)
        CopyCells(finished + i * width_, columns_, target.out[i]);
      else
        for (Index c = 0; c < columns_; ++c) target.out[i][c * stride] = finished[i * width_ + c];
    }
  }

  const plan::Plan& plan_;
  Block block_;
  std::size_t last_;
  std::array<Index, max_rank> multiplier_;
  Table table_;
  SpreadTable<Raw> spread_;
  plan::Scratch scratch_;
  Index columns_ = 0, cells_ = 1, width_ = 0;
  std::array<Index, max_rank> slice_{};  // lanes of a slice of outputs along the axes from each on
  std::array<Ring, max_rank> ring_{};
  plan::Scratch::Array<Lane> carried_{}, sums_{};
  plan::Scratch::Array<double> numbers_{}, weights_{};
  plan::Scratch::Array<Raw> margins_{};
  plan::Scratch::Array<Source> finished_{};
  plan::Scratch::Array<Bits<Lane>> won_{};
  Index margin_pitch_ = 0, margins_begin_ = 0, margins_end_ = 0;
  Finish<S> finish_{};
  bool squares_ = false;  // both last axes go together
  bool round_[3] = {};    // results and winners that are no neighbours along the row take a way round
  const Source* in_[sources] = {};
  Source* out_[2] = {};
  std::uint8_t* winners_ = nullptr;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
