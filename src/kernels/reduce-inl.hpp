// A reduction over windows, task by task: brings lanes into a tile, reduces the pooled axes from the last to the first,
// and writes the results. One task is one block of outputs for one group of lanes; nothing that a task computes depends
// on the other tasks, nor on how many lanes stand side by side.
#if defined(CENOTE_KERNELS_REDUCE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_REDUCE_INL_HPP
#undef CENOTE_KERNELS_REDUCE_INL_HPP
#else
#define CENOTE_KERNELS_REDUCE_INL_HPP
#endif

#include "kernels/doubles-inl.hpp"
#include "kernels/finish-inl.hpp"
#include "kernels/folds-inl.hpp"
#include "kernels/passes-inl.hpp"
#include "kernels/planes-inl.hpp"
#include "kernels/runs-inl.hpp"
#include "kernels/stream-inl.hpp"
#include "kernels/task-inl.hpp"
#include "kernels/totals-inl.hpp"
#include "kernels/whole-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// Cells of a row of the last axis into the tile: tile[cell * pitch + lane].
template <class Raw>
HWY_NOINLINE void LoadRow(const plan::Operand& operand, Index stride, const Index* offsets, Index row, Index cells,
                          Index width, Raw* tile, Index pitch) {
  const Raw* data = static_cast<const Raw*>(operand.data) + row;
  switch (operand.access) {
    case plan::Access::lanes: {
      const hn::ScalableTag<Raw> d;
      for (Index c = 0; c < cells; ++c)
        for (Index l = 0; l < width; l += vector_lanes<Raw>)
          hn::StoreU(hn::LoadU(d, data + offsets[0] + c * stride + l), d, tile + c * pitch + l);
      return;
    }
    case plan::Access::cells:
      for (Index l = 0; l < width; l += vector_lanes<Raw>) {
        const Raw* pointers[vector_lanes<Raw>];
        for (Index i = 0; i < vector_lanes<Raw>; ++i) pointers[i] = data + offsets[l + i];
        LoadTransposed<Raw>(pointers, cells, tile + l, pitch);
      }
      return;
    case plan::Access::any:
      for (Index c = 0; c < cells; ++c)
        for (Index l = 0; l < width; ++l) tile[c * pitch + l] = data[offsets[l] + c * stride];
  }
}

template <class Raw>
HWY_NOINLINE void StoreRow(const plan::Operand& operand, Index stride, const Index* offsets, Index row, Index cells,
                           const Lanes& lanes, const Raw* tile, Index pitch) {
  Raw* data = static_cast<Raw*>(operand.data) + row;
  const auto one_by_one = [&](Index begin, Index end) {
    for (Index c = 0; c < cells; ++c)
      for (Index l = begin; l < end; ++l) data[offsets[l] + c * stride] = tile[c * pitch + l];
  };
  switch (operand.access) {
    case plan::Access::lanes: {
      const auto bytes = static_cast<std::size_t>(lanes.count - lanes.own) * sizeof(Raw);
      for (Index c = 0; c < cells; ++c)
        std::memcpy(data + offsets[0] + lanes.own + c * stride, tile + c * pitch + lanes.own, bytes);
      return;
    }
    case plan::Access::cells:
      for (Index l = 0; l < lanes.count; l += vector_lanes<Raw>) {
        const Index end = l + vector_lanes<Raw>;
        if (l < lanes.own) {  // the vector is not, or not wholly, this group's
          one_by_one(HWY_MIN(lanes.own, end), end);
          continue;
        }
        Raw* pointers[vector_lanes<Raw>];
        for (Index i = 0; i < vector_lanes<Raw>; ++i) pointers[i] = data + offsets[l + i];
        StoreTransposed<Raw>(tile + l, pitch, cells, pointers);  // surplus lanes write the last one again
      }
      return;
    case plan::Access::any: one_by_one(lanes.own, lanes.count);
  }
}

// Winners in their own width. `tile` holds `cells` cells, `pitch` apart; `narrow` is scratch.
template <class Number>
void StoreWinners(const plan::Plan& plan, const Index* offsets, Index row, Index cells, const Lanes& lanes,
                  const Number* tile, Index pitch, std::uint8_t* narrow) {
  const Index stride = plan.winner.pooled[static_cast<std::size_t>(plan.rank - 1)];
  const auto one_by_one = [&]<class U>(U, Index begin, Index end) {
    auto* data = reinterpret_cast<U*>(plan.winners) + row;
    for (Index l = begin; l < end; ++l)
      for (Index c = 0; c < cells; ++c) data[offsets[l] + c * stride] = static_cast<U>(tile[c * pitch + l]);
  };
  if constexpr (sizeof(Number) == 4) {
    if (plan.winner_bytes == 1 && stride == 1) {
      const hn::ScalableTag<Number> d;
      const hn::Rebind<std::uint8_t, decltype(d)> d8;
      constexpr Index n = vector_lanes<Number>;
      if (lanes.count == 1 && pitch == 1) {  // a row of columns
        auto* to = plan.winners + offsets[0] + row;
        Index c = 0;
        for (; c + n <= cells; c += n) hn::StoreU(hn::U8FromU32(hn::LoadU(d, tile + c)), d8, to + c);
        for (; c < cells; ++c) to[c] = static_cast<std::uint8_t>(tile[c]);
        return;
      }
      constexpr Index square = 16;
      const Index width = (lanes.count + square - 1) / square * square;
      if (cells >= square && pitch % (2 * square) == 0) {
        for (Index c = 0; c < cells; ++c)
          for (Index l = 0; l < width; l += n)
            hn::StoreU(hn::U8FromU32(hn::LoadU(d, tile + c * pitch + l)), d8, narrow + c * width + l);
        for (Index l = 0; l < width; l += square) {
          if (l < lanes.own) {
            const Index end = HWY_MIN(lanes.count, l + square);
            one_by_one(std::uint8_t{}, HWY_MIN(lanes.own, end), end);
            continue;
          }
          std::uint8_t* pointers[square];
          for (Index i = 0; i < square; ++i)
            pointers[i] = plan.winners + row + offsets[HWY_MIN(l + i, lanes.count - 1)];
          StoreTransposed<std::uint8_t>(narrow + l, width, cells, pointers, hn::Full128<std::uint8_t>());
        }
        return;
      }
    }
  }
  switch (plan.winner_bytes) {
    case 1: return one_by_one(std::uint8_t{}, lanes.own, lanes.count);
    case 2: return one_by_one(std::uint16_t{}, lanes.own, lanes.count);
    case 4: return one_by_one(std::uint32_t{}, lanes.own, lanes.count);
    default: return one_by_one(std::uint64_t{}, lanes.own, lanes.count);
  }
}

// The state of a stream that rows of terms go through, where there is one for a state that lifts.
template <class S>
struct RowTerms {
  using type = void;
};

// Sums of f32 and halves in f64.
template <class S>
constexpr bool IsWideSum() {
  if constexpr (requires { requires S::widens && !S::weighted && !S::squares; })
    return std::is_same_v<typename S::Lane, double> && !std::is_integral_v<typename S::Scalar>;
  return false;
}

// One task.
template <class S>
class Reduction {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;

  // Blocks and whole planes have their own ways.
  static constexpr bool folds = !S::lifts && !S::weighted && !requires { requires S::squares; },
                        wholes = folds && S::inputs == 1, doubles = requires { requires S::overlaps; },
                        runs = folds && requires { requires S::widens; },
                        planes = doubles && std::is_floating_point_v<Raw>, totals = IsWideSum<S>();
  using Streamed = std::conditional_t<S::lifts, typename RowTerms<S>::type, S>;
  static constexpr bool streams = !std::is_void_v<Streamed>;

  static Index width_of(const plan::Plan& plan) { return plan.vectors * vector_lanes<Raw>; }
  static Index Tasks(const plan::Plan& plan) {
    if constexpr (planes)
      if (plan.planes) return WholePlanes<S>::Tasks(plan);
    if constexpr (totals)
      if (plan.totals) return Totals<S>::Tasks(plan);
    if constexpr (wholes)
      if (plan.whole) return Whole<S>::Tasks(plan);
    if constexpr (folds)
      if (plan.folds) return Folds<S>::Tasks(plan);
    if constexpr (doubles)
      if (plan.doubles) return Doubles<S>::Tasks(plan);
    if constexpr (runs)
      if (plan.runs) return Runs<S>::Tasks(plan);
    if constexpr (streams)
      if (plan.streams) return Stream<Streamed>::Tasks(plan);
    return Lanes::Groups(plan, width_of(plan)) * BlocksOf(plan);
  }

  static void Run(const plan::Plan& plan, Index task) {
    if constexpr (planes)
      if (plan.planes) return WholePlanes<S>::Run(plan, task);
    if constexpr (totals)
      if (plan.totals) return Totals<S>::Run(plan, task);
    if constexpr (wholes)
      if (plan.whole) return Whole<S>::Run(plan, task);
    if constexpr (folds)
      if (plan.folds) return Folds<S>::Run(plan, task);
    if constexpr (doubles)
      if (plan.doubles) return Doubles<S>::Run(plan, task);
    if constexpr (runs)
      if (plan.runs) return Runs<S>::Run(plan, task);
    if constexpr (streams)
      if (plan.streams) return Stream<Streamed>::Run(plan, task);
    Reduction reduction(plan);
    const Index blocks = BlocksOf(plan);
    reduction.block_ = BlockOf(plan, task % blocks);
    reduction.SetLanes(task / blocks);
    if (plan.rows)
      reduction.Rows();
    else
      reduction.Planes();
  }

 private:
  explicit Reduction(const plan::Plan& plan)
      : plan_(plan), rank_(plan.rank), last_(static_cast<std::size_t>(plan.rank - 1)) {}

  void SetLanes(Index group) {
    const plan::LaneBox& box = plan_.lanes;
    lanes_ = Lanes::OfGroup(plan_, width_of(plan_), group);
    for (int i = 0; i < S::inputs; ++i) lanes_.Offsets(box, plan_.inputs[static_cast<std::size_t>(i)], in_offsets_[i]);
    for (int i = 0; i < 2; ++i)
      if (plan_.outputs[static_cast<std::size_t>(i)].data != nullptr)
        lanes_.Offsets(box, plan_.outputs[static_cast<std::size_t>(i)], out_offsets_[i]);
    if (plan_.winners != nullptr) lanes_.Offsets(box, plan_.winner, winner_offsets_);
  }

  [[nodiscard]] Index positions(std::size_t a) const { return block_.limit[a] - block_.origin[a]; }
  [[nodiscard]] Index outputs(std::size_t a) const { return block_.end[a] - block_.begin[a]; }

  // Rows of the last axis that the block needs.
  [[nodiscard]] Index RowCount() const {
    Index rows = 1;
    for (std::size_t a = 0; a < last_; ++a) rows *= positions(a);
    return rows;
  }
  // Walks over the rows of the block in order, keeping the place of each in the inputs.
  class RowWalk {
   public:
    explicit RowWalk(const Reduction& r) : r_(r) {
      for (int i = 0; i < S::inputs; ++i)
        for (std::size_t a = 0; a <= r.last_; ++a)
          offset[i] += r.block_.origin[a] * r.plan_.inputs[static_cast<std::size_t>(i)].pooled[a];
    }
    void Next() {
      for (std::size_t a = r_.last_; a-- > 0;) {
        const bool wraps = ++at_[a] == r_.positions(a);
        for (int i = 0; i < S::inputs; ++i) {
          const Index stride = r_.plan_.inputs[static_cast<std::size_t>(i)].pooled[a];
          offset[i] += wraps ? (1 - at_[a]) * stride : stride;
        }
        if (!wraps) return;
        at_[a] = 0;
      }
    }
    // Rows from here on that follow each other without a gap in one input.
    [[nodiscard]] Index Together(int input) const {
      const auto& strides = r_.plan_.inputs[static_cast<std::size_t>(input)].pooled;
      if (r_.last_ == 0 || strides[r_.last_ - 1] != r_.positions(r_.last_) * strides[r_.last_]) return 1;
      return r_.positions(r_.last_ - 1) - at_[r_.last_ - 1];
    }
    Index offset[S::inputs] = {};

   private:
    const Reduction& r_;
    std::array<Index, max_rank> at_{};
  };

  [[nodiscard]] PassShape ShapeOf(std::size_t a, Index in_pitch, Index out_pitch, Index inner, Index lanes) const {
    return {
        &plan_.axes[a], block_.begin[a], block_.end[a], block_.origin[a],       block_.limit[a], in_pitch, out_pitch,
        inner,          lanes,           lanes,         MultipliersOf(plan_)[a]};
  }

  // Lanes of the scratch that scans of any axis need.
  [[nodiscard]] Index ScanNeed() const {
    Index most = 0;
    for (std::size_t a = 0; a <= last_; ++a) most = HWY_MAX(most, plan_.axes[a].block);
    return ScanScratch<S>(most);
  }

  // The lane box in vectors, whole rows of cells as tiles.
  void Planes() {
    const Index width = lanes_.width;
    const Index rows = RowCount();
    const Index cells = positions(last_);
    const Index columns = outputs(last_);
    const Index row_lanes = columns * S::parts * width;
    const Index raw_row = cells * S::inputs * width;
    const Index batch = HWY_MAX(Index{1}, HWY_MIN(rows, 16384 / HWY_MAX(Index{1}, raw_row * Index{sizeof(Raw)})));
    plan::Scratch scratch;
    const bool in_place = ReadsInPlace();
    auto raw = scratch.Ask<Raw>(in_place ? 0 : batch * raw_row);
    auto lifted = scratch.Ask<Lane>(S::lifts ? cells * S::parts * width : 0);
    auto tile = scratch.Ask<Lane>(HWY_MAX(rows * row_lanes, MiddleLanes(row_lanes)));  // passes go to and fro
    auto other = scratch.Ask<Lane>(MiddleLanes(row_lanes));
    auto scan = scratch.Ask<Lane>(ScanNeed());
    auto finished = scratch.Ask<Raw>(2 * columns * width);
    auto numbers = scratch.Ask<double>(Finish<S>::Numbers(columns));
    scratch.Take();

    const PassShape shape = ShapeOf(last_, (S::lifts ? S::parts : S::inputs) * width, S::parts * width, 1, width);
    RowWalk walk(*this);
    if constexpr (!S::lifts)
      if (in_place) {
        PassShape direct = shape;
        direct.in_pitch = plan_.inputs[0].pooled[last_];
        const Raw* base = static_cast<const Raw*>(plan_.inputs[0].data) + in_offsets_[0][0];
        if constexpr (S::inputs == 2)
          direct.in_part = static_cast<const Raw*>(plan_.inputs[1].data) + in_offsets_[1][0] - base;
        for (Index r = 0; r < rows; ++r, walk.Next())
          Pass<S, true>(direct, base + walk.offset[0], scratch.At(tile) + r * row_lanes, scratch.At(scan));
      }
    for (Index done = in_place ? rows : 0; done < rows; done += batch) {
      const Index now = HWY_MIN(batch, rows - done);
      for (Index r = 0; r < now;) {
        Index together = now - r;
        for (int i = 0; i < S::inputs; ++i) together = HWY_MIN(together, walk.Together(i));
        for (int i = 0; i < S::inputs; ++i) {
          const plan::Operand& operand = plan_.inputs[static_cast<std::size_t>(i)];
          LoadRow<Raw>(operand, operand.pooled[last_], in_offsets_[i], walk.offset[i], together * cells, width,
                       scratch.At(raw) + r * raw_row + i * width, S::inputs * width);
        }
        r += together;
        while (together-- > 0) walk.Next();
      }
      for (Index r = 0; r < now; ++r) {
        const Raw* from = scratch.At(raw) + r * raw_row;
        Lane* to = scratch.At(tile) + (done + r) * row_lanes;
        if constexpr (S::lifts) {
          S::Lift(plan_.formula, from, scratch.At(lifted), cells, width);
          Pass<S, false>(shape, scratch.At(lifted), to, scratch.At(scan));
        } else {
          Pass<S, true>(shape, from, to, scratch.At(scan));
        }
      }
    }
    Lane* result = OuterPasses(scratch.At(tile), scratch.At(other), scratch.At(scan), row_lanes, columns, width, 0);
    Emit(result, columns, width, scratch.At(finished), scratch.At(numbers));
  }

  // Inputs whose lanes are neighbours are read where they are.
  [[nodiscard]] bool ReadsInPlace() const {
    if (S::lifts || plan_.inputs[0].access != plan::Access::lanes) return false;
    if (S::inputs == 1) return true;
    if (plan_.inputs[1].access != plan::Access::lanes) return false;
    for (std::size_t a = 0; a <= last_; ++a)
      if (plan_.inputs[0].pooled[a] != plan_.inputs[1].pooled[a]) return false;
    return true;
  }

  // The columns of the last axis in vectors, rows of cells as lines.
  void Rows() {
    const Index columns = outputs(last_);
    const auto in_vectors = [](Index count) {
      return (count + vector_lanes<Raw> - 1) / vector_lanes<Raw> * vector_lanes<Raw>;
    };
    Index width = in_vectors(columns);
    if (width * Index{sizeof(Lane)} % 512 == 0) width += vector_lanes<Raw>;  // rows must not meet in the cache's sets
    const Index rows = RowCount();
    const Index row_lanes = S::parts * width;
    // As many side by side as a scan takes at once.
    const Index batch = HWY_MIN(HWY_MAX(vector_lanes<Raw>, 4 * vector_lanes<Lane>), in_vectors(rows));
    const Index cells = positions(last_);
    plan::Scratch scratch;
    auto padded = scratch.Ask<Raw>(batch * S::inputs * cells);
    auto lifted = scratch.Ask<Lane>(S::lifts ? batch * S::parts * cells : 0);
    auto reduced = scratch.Ask<Lane>(batch * S::parts * columns);
    auto tile = scratch.Ask<Lane>(HWY_MAX(rows * row_lanes, MiddleLanes(row_lanes)));  // passes go to and fro
    auto other = scratch.Ask<Lane>(MiddleLanes(row_lanes));
    auto scan = scratch.Ask<Lane>(ScanNeed());
    auto finished = scratch.Ask<Raw>(2 * width);
    auto numbers = scratch.Ask<double>(Finish<S>::Numbers(columns));
    scratch.Take();

    RowWalk walk(*this);
    for (Index done = 0; done < rows; done += batch) {
      const Index now = HWY_MIN(batch, rows - done);
      const Raw* sources[S::inputs][max_lanes];
      Lane* targets[max_lanes];
      for (Index r = 0; r < batch; ++r) {  // surplus rows repeat the last one
        for (int i = 0; i < S::inputs; ++i)
          sources[i][r] = r < now ? static_cast<const Raw*>(plan_.inputs[static_cast<std::size_t>(i)].data) +
                                        in_offsets_[i][0] + walk.offset[i]
                                  : sources[i][r - 1];
        targets[r] = scratch.At(tile) + (done + HWY_MIN(r, now - 1)) * row_lanes;
        if (r < now) walk.Next();
      }
      Raw* raw = scratch.At(padded);
      Lane* to = scratch.At(reduced);
      for (int i = 0; i < S::inputs; ++i)
        for (Index l = 0; l < batch; l += vector_lanes<Raw>)
          LoadTransposed<Raw>(sources[i] + l, cells, raw + i * batch + l, S::inputs * batch);
      if constexpr (S::lifts) {
        S::Lift(plan_.formula, raw, scratch.At(lifted), cells, batch);
        Pass<S, false>(ShapeOf(last_, S::parts * batch, S::parts * batch, 1, batch), scratch.At(lifted), to,
                       scratch.At(scan));
      } else {
        Pass<S, true>(ShapeOf(last_, S::inputs * batch, S::parts * batch, 1, batch), raw, to, scratch.At(scan));
      }
      for (int part = 0; part < S::parts; ++part) {
        for (Index l = 0; l < now; l += vector_lanes<Lane>)
          StoreTransposed<Lane>(to + part * batch + l, S::parts * batch, columns, targets + l);
        for (Index r = 0; r < batch; ++r) targets[r] += width;
      }
    }
    if (WritesInPlace(columns))
      return LastPassInPlace(scratch.At(tile), scratch.At(other), scratch.At(scan), columns, width);
    Lane* result = OuterPasses(scratch.At(tile), scratch.At(other), scratch.At(scan), row_lanes, 1, width, 0);
    Emit(result, 1, width, scratch.At(finished), scratch.At(numbers));
  }

  // The last pass may write to the output itself if its pieces are results and its rows whole vectors.
  [[nodiscard]] bool WritesInPlace(Index columns) const {
    if constexpr (S::parts == 1 && std::is_same_v<Raw, Lane> && S::repeats)
      return rank_ > 1 && !plan_.some_empty && plan_.axes[0].block == 0 && plan_.outputs[0].pooled[last_] == 1 &&
             columns >= vector_lanes<Raw>;
    return false;
  }
  void LastPassInPlace(Lane* tile, Lane* other, Lane* scan, Index columns, Index width) {
    const Lane* from = OuterPasses(tile, other, scan, width, 1, width, 1);
    const plan::Operand& y = plan_.outputs[0];
    Index cells = 1;
    for (std::size_t a = 1; a < last_; ++a) cells *= outputs(a);
    PassShape shape = ShapeOf(0, cells * width, y.pooled[0], 1, columns);
    Index offset = out_offsets_[0][0];
    for (std::size_t a = 0; a <= last_; ++a) offset += block_.begin[a] * y.pooled[a];
    std::array<Index, max_rank> at{};
    for (Index cell = 0; cell < cells; ++cell) {
      DirectPass<S, false>(shape, from + cell * width, reinterpret_cast<Lane*>(static_cast<Raw*>(y.data)) + offset);
      for (std::size_t a = last_; a-- > 1;) {
        offset += y.pooled[a];
        if (++at[a] < outputs(a)) break;
        offset -= at[a] * y.pooled[a];
        at[a] = 0;
      }
    }
  }

  // The largest array between two outer passes.
  [[nodiscard]] Index MiddleLanes(Index row_lanes) const {
    Index most = 0;
    Index lanes = row_lanes;
    for (std::size_t a = last_; a-- > 0;) {
      lanes *= outputs(a);
      Index outer = 1;
      for (std::size_t b = 0; b < a; ++b) outer *= positions(b);
      most = HWY_MAX(most, outer * lanes);
    }
    return most;
  }

  // Reduces the axes before the last, down to axis `stop`. Returns where the results are.
  Lane* OuterPasses(Lane* from, Lane* to, Lane* scan, Index row_lanes, Index cells, Index width, std::size_t stop) {
    Index line = row_lanes;
    Index inner = cells;
    for (std::size_t a = last_; a-- > stop;) {
      Index outer = 1;
      for (std::size_t b = 0; b < a; ++b) outer *= positions(b);
      const PassShape shape = ShapeOf(a, line, line, inner, width);
      for (Index u = 0; u < outer; ++u)
        Pass<S, false>(shape, from + u * positions(a) * line, to + u * outputs(a) * line, scan);
      line *= outputs(a);
      inner *= outputs(a);
      std::swap(from, to);
    }
    return from;
  }

  // Turns pieces into results and writes them, row by row.
  void Emit(Lane* states, Index cells, Index width, Raw* finished, double* numbers) {
    const Index row_lanes = cells * S::parts * width;
    Index rows = 1;
    for (std::size_t a = 0; a < last_; ++a) rows *= outputs(a);
    const Index columns = outputs(last_);
    // Rows that follow each other in the output are written together.
    bool grouped = S::repeats && S::parts == 1 && !plan_.rows && plan_.outputs[0].data != nullptr && !plan_.some_empty;
    for (std::size_t a = last_; a-- > 0;)
      grouped = grouped && plan_.outputs[0].pooled[a] == outputs(a + 1) * plan_.outputs[0].pooled[a + 1];
    if (grouped) {
      Index offset = 0;
      for (std::size_t a = 0; a <= last_; ++a) offset += block_.begin[a] * plan_.outputs[0].pooled[a];
      StoreRow<Raw>(plan_.outputs[0], plan_.outputs[0].pooled[last_], out_offsets_[0], offset, rows * cells, lanes_,
                    reinterpret_cast<const Raw*>(states), width);
      return;
    }
    std::array<Index, max_rank> at = block_.begin;
    for (Index r = 0; r < rows; ++r) {
      Lane* row = states + r * row_lanes;
      Index outer_real = 1;
      Index outer_padded = 1;
      for (std::size_t a = 0; a < last_; ++a) {
        outer_real *= plan_.axes[a].taps[at[a]].count;
        outer_padded *= plan_.axes[a].taps[at[a]].padded;
      }
      const RowShape shape{&plan_, block_.begin[last_], columns, outer_real, outer_padded, cells, width};
      finish_.Row(shape, row, finished, numbers);
      const auto offset_in = [&](const plan::Operand& operand) {
        Index offset = 0;
        for (std::size_t a = 0; a <= last_; ++a) offset += at[a] * operand.pooled[a];
        return offset;
      };
      for (int i = 0; i < 2; ++i) {
        const plan::Operand& operand = plan_.outputs[static_cast<std::size_t>(i)];
        if (operand.data == nullptr) continue;
        const auto [base, pitch] = finish_.Output(i, shape, row, finished);
        const Index offset = offset_in(operand);
        if (plan_.rows) {
          Raw* to = static_cast<Raw*>(operand.data) + out_offsets_[i][0] + offset;
          const Index stride = operand.pooled[last_];
          if (stride == 1)
            std::memcpy(to, base, static_cast<std::size_t>(columns) * sizeof(Raw));
          else
            for (Index c = 0; c < columns; ++c) to[c * stride] = base[c];
        } else {
          StoreRow<Raw>(operand, operand.pooled[last_], out_offsets_[i], offset, cells, lanes_, base, pitch);
        }
      }
      if constexpr (Finish<S>::winners) {
        using Number = Bits<Lane>;
        auto* narrow = reinterpret_cast<std::uint8_t*>(finished);  // unused otherwise, and large enough
        const auto* numbers = reinterpret_cast<const Number*>(row) + width;
        if (plan_.rows)
          StoreWinners<Number>(plan_, winner_offsets_, offset_in(plan_.winner), columns, lanes_, numbers, 1, narrow);
        else
          StoreWinners<Number>(plan_, winner_offsets_, offset_in(plan_.winner), cells, lanes_, numbers, 2 * width,
                               narrow);
      }
      for (std::size_t a = last_; a-- > 0;) {
        if (++at[a] < block_.end[a]) break;
        at[a] = block_.begin[a];
      }
    }
  }

  const plan::Plan& plan_;
  int rank_;
  std::size_t last_;
  Block block_{};
  Lanes lanes_{};
  Finish<S> finish_{};
  Index in_offsets_[S::inputs][max_lanes];
  Index out_offsets_[2][max_lanes];
  Index winner_offsets_[max_lanes];
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
