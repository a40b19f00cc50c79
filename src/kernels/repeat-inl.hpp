// The adjoint of sums over windows that do not overlap, or that begin far apart: gradients, scaled, are repeated, and
// what lies in no window becomes 0. The plan is the adjoint's: its outputs are the cells of the input. Rows, or lanes
// of a cell, that repeat the ones before are copied from there.
#if defined(CENOTE_KERNELS_REPEAT_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_REPEAT_INL_HPP
#undef CENOTE_KERNELS_REPEAT_INL_HPP
#else
#define CENOTE_KERNELS_REPEAT_INL_HPP
#endif

#include <array>
#include <cmath>
#include <type_traits>

#include "kernels/patterns-inl.hpp"
#include "kernels/rows-inl.hpp"
#include "kernels/winners-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

template <class T>
class Repeat {
 public:
  static Index Tasks(const plan::Plan& plan) {
    return plan.pattern != nullptr ? Patterned<T, false>::Tasks(plan) : PullTask::Count(plan);
  }
  static void Run(const plan::Plan& plan, Index number) {
    Repeat repeat(plan);
    if (plan.pattern != nullptr) return repeat.ByPattern(number);
    const PullTask task(plan, number);
    repeat.ListRuns();
    const auto inner = static_cast<std::size_t>(plan.lanes.rank - 1);
    EachRunOfLanes(plan, task.first, task.stop, [&](LanePlaces places, Index, Index count) {
      if (plan.outputs[0].access == plan::Access::lanes)
        return repeat.Plane(places, task, [&](const Cells& cells) { repeat.LanesOfRow(cells, count); });
      if (repeat.IsFlat(task)) return repeat.Planes(places, count, plan.inputs[0].lanes[inner]);
      for (Index lane = 0; lane < count; ++lane) {
        repeat.Plane(places, task, [&](const Cells& cells) { repeat.Row(cells); });
        places.in += plan.inputs[0].lanes[inner];
        places.out += plan.outputs[0].lanes[inner];
      }
    });
  }

 private:
  using D = hn::ScalableTag<T>;
  static constexpr Index n = vector_lanes<T>;

  // A row of cells along the last axis: where its gradients are (null: it lies in no window) and where it goes, the row
  // before if that one is the same, and which of its cells are wanted.
  struct Cells {
    const T* from;
    T* to;
    const T* same;
    Index begin, end;
    const Index* counts = nullptr;  // along each axis but the last, if it hears from several rows of gradients
  };

  // Cells up to `end` that hear from the same outputs.
  struct RunOfCells {
    Index end, start, count;
  };

  explicit Repeat(const plan::Plan& plan)
      : plan_(plan), axis_(plan.axes[static_cast<std::size_t>(plan.rank - 1)]), scale_(plan.formula.scale),
        in_(plan.inputs[0].pooled[static_cast<std::size_t>(plan.rank - 1)]),
        out_(plan.outputs[0].pooled[static_cast<std::size_t>(plan.rank - 1)]) {}

  // Rows of which there are many have the same runs.
  void ListRuns() {
    bool added = false;
    for (int a = 0; a + 1 < plan_.rank; ++a) added = added || plan_.axes[static_cast<std::size_t>(a)].kernel > 1;
    if (plan_.outputs[0].access == plan::Access::lanes || plan_.rank == 1 || axis_.out > 4096 || !(added || ByRuns()))
      return;
    plan::Scratch scratch;
    const auto runs = scratch.Ask<RunOfCells>(axis_.out);
    scratch.Take();
    runs_ = scratch.At(runs);
    for (Index i = 0, r = 0; i < axis_.out; i = runs_[r++].end) runs_[r] = RunAt(i, axis_.out);
  }

  [[nodiscard]] T Scaled(T gradient) const {
    return static_cast<T>(static_cast<double>(gradient) * scale_) + T{0};  // no -0 (A5)
  }
  [[nodiscard]] HWY_INLINE hn::VFromD<D> Scaled(hn::VFromD<D> gradients) const {
    const hn::ScalableTag<double> wide;
    const auto scale = hn::Set(wide, scale_);
    const D d;
    if constexpr (std::is_same_v<T, double>) {
      return hn::Add(hn::Mul(gradients, scale), hn::Zero(d));
    } else {
      const hn::Half<D> half;
      const auto one = [&](auto v) HWY_ATTR { return hn::DemoteTo(half, hn::Mul(hn::PromoteTo(wide, v), scale)); };
      const auto low = one(hn::LowerHalf(half, gradients));
      const auto high = one(hn::UpperHalf(half, gradients));
      return hn::Add(hn::Combine(d, high, low), hn::Zero(d));
    }
  }

  // Small planes.
  HWY_NOINLINE void ByPattern(Index task) const {
    const D d;
    const Index outputs = plan_.pattern->outputs;
    plan::Scratch scratch;
    const auto scaled = scratch.Ask<T>(outputs);
    scratch.Take();
    Patterned<T, false>::Run(plan_, task, [&](const T* gradients) HWY_ATTR {
      T* const to = scratch.At(scaled);
      for (Index i = 0; i < outputs; i += n) {  // the last vector may begin inside the one before
        const Index at = HWY_MIN(i, outputs - n);
        hn::StoreU(Scaled(hn::LoadU(d, gradients + at)), d, to + at);
      }
      return to;
    });
  }

  // Calls use(cells) for every row of the plane of a lane.
  template <class F>
  void Plane(const LanePlaces& places, const PullTask& task, F&& use) const {
    const auto last = static_cast<std::size_t>(plan_.rank - 1);
    const T* gradients = static_cast<const T*>(plan_.inputs[0].data) + places.in;
    T* to = static_cast<T*>(plan_.outputs[0].data) + places.out;
    if (last == 0) return use({gradients, to, nullptr, task.begin, task.end});
    const plan::PooledAxis& near = plan_.axes[last - 1];
    const Index near_stride = plan_.outputs[0].pooled[last - 1];
    const auto size = [&](std::size_t a) { return a == 0 ? task.end - task.begin : plan_.axes[a].out; };
    std::array<Index, max_rank> at{}, counts{}, counts_before{};
    const T* before = nullptr;
    const T* before_from = nullptr;
    do {
      Cells cells{gradients, to, nullptr, 0, axis_.out};
      Index rows = 1;  // of gradients that this one hears from
      for (std::size_t a = 0; a < last; ++a) {
        const Index i = at[a] + (a == 0 ? task.begin : 0);
        const plan::Taps& taps = plan_.axes[a].taps[i];
        counts[a] = taps.count;
        rows *= taps.count;
        cells.from += taps.start * plan_.inputs[0].pooled[a];
        cells.to += i * plan_.outputs[0].pooled[a];
      }
      if (rows == 0) cells.from = nullptr;
      const T* const from = cells.from;
      if (before != nullptr && before_from == from && counts == counts_before) {
        cells.same = before;
      } else if (rows > 1) {
        cells.counts = counts.data();
      }
      use(cells);
      // Rows that hear from the same outputs are copied from one, so that none waits for the one before.
      const Index begin = last == 1 ? task.begin : 0;
      const Index end = EndOfRun(near, begin + at[last - 1], begin + size(last - 1)) - begin;
      cells.same = cells.to;
      while (++at[last - 1] < end) {
        cells.to += near_stride;
        use(cells);
      }
      --at[last - 1];
      before = cells.to;
      before_from = from;
      counts_before = counts;
    } while (Next(at, last, size));
  }

  // Every plane repeats one gradient, and follows the one before.
  [[nodiscard]] bool IsFlat(const PullTask& task) const {
    const auto inner = static_cast<std::size_t>(plan_.lanes.rank - 1);
    return plan_.rank == 1 && axis_.whole && axis_.out >= n && out_ == 1 &&
           plan_.outputs[0].lanes[inner] == axis_.out && task.begin == 0 && task.end == axis_.out;
  }
  // Vectors lie where lines of a cache do, so that each is written at once; one may hold the end of a plane and the
  // beginning of the next.
  HWY_NOINLINE void Planes(const LanePlaces& places, Index count, Index in) const {
    const D d;
    const T* from = static_cast<const T*>(plan_.inputs[0].data) + places.in;
    T* const to = static_cast<T*>(plan_.outputs[0].data) + places.out;
    const Index size = axis_.out;
    auto v = hn::Set(d, Scaled(*from));
    hn::StoreU(v, d, to);
    Index i = UntilAligned(to);
    for (Index plane = 1; plane <= count; ++plane) {
      const Index end = plane * size;
      for (; i + n <= end; i += n) hn::StoreU(v, d, to + i);
      if (plane == count) return hn::StoreU(v, d, to + end - n);
      from += in;
      const auto next = hn::Set(d, Scaled(*from));
      if (i < end) {
        hn::StoreU(hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(end - i)), v, next), d, to + i);
        i += n;
      }
      v = next;
    }
  }

  // Cells that are neighbours.
  void Row(const Cells& cells) const {
    const Index begin = cells.begin, size = cells.end - begin;
    T* to = cells.to + begin;
    if (cells.same != nullptr) return CopyCells(cells.same + begin, size, to);
    if (cells.from == nullptr) return Fill(T{}, size, to);
    if (cells.counts != nullptr || ByRuns()) return Runs(cells);
    if (axis_.whole) return Fill(Scaled(cells.from[0]), size, to);
    if (in_ == 1 && axis_.spread > 0) {
      switch (axis_.spread) {
        case 2: return Spread<2>(cells);
        case 3: return Spread<3>(cells);
        default: return Spread<4>(cells);
      }
    }
    OneByOne(cells, begin, cells.end);
  }
  void OneByOne(const Cells& cells, Index begin, Index end) const {
    for (Index i = begin; i < end; ++i)
      cells.to[i] = axis_.taps[i].count > 0 ? Scaled(cells.from[axis_.taps[i].start * in_]) : T{};
  }
  // The end of the cells that hear from the same outputs as cell i. There is nobody else between such cells, so that
  // steps may grow and shrink again; between cells that hear from nobody there may be.
  [[nodiscard]] static Index EndOfRun(const plan::PooledAxis& axis, Index i, Index limit) {
    const plan::Taps& taps = axis.taps[i];
    if (taps.count == 0) {
      while (++i < limit && axis.taps[i].count == 0) {}
      return i;
    }
    const Axis& source = axis.source;
    if (source.kind == Axis::Kind::sliding && source.dilation == 1) {  // until a window ends or begins
      const Index next = taps.start + taps.count;
      if (next < source.out) limit = std::min(limit, source.position(next, 0));
      return std::min(limit, source.position(taps.start, source.kernel));
    }
    Index step = 1;
    while (true) {
      if (i + step < limit && axis.taps[i + step].count == taps.count && axis.taps[i + step].start == taps.start) {
        i += step;
        step *= 2;
      } else if (step == 1) {
        return i + 1;
      } else {
        step /= 2;
      }
    }
  }
  [[nodiscard]] bool ByRuns() const { return !axis_.whole && axis_.source.stride > 4; }
  // Cells that hear from the same outputs, run by run. What a vector writes beyond its run is written again by the
  // next.
  void Runs(const Cells& cells) const {
    if (runs_ == nullptr) {
      for (Index i = cells.begin; i < cells.end;) {
        const RunOfCells run = RunAt(i, cells.end);
        WriteRun(cells, i, run);
        i = run.end;
      }
      return;
    }
    const RunOfCells* run = runs_;
    for (Index i = 0; i < cells.end; i = run++->end) WriteRun(cells, i, *run);
  }
  [[nodiscard]] RunOfCells RunAt(Index i, Index limit) const {
    if (axis_.whole) return {limit, 0, 1};
    return {EndOfRun(axis_, i, limit), axis_.taps[i].start, axis_.taps[i].count};
  }
  [[nodiscard]] Index PlaceOfRow(const std::array<Index, max_rank>& tap) const {
    Index place = 0;
    for (int i = 0; i + 1 < plan_.rank; ++i) {
      const auto a = static_cast<std::size_t>(i);
      place += tap[a] * plan_.axes[a].step * plan_.inputs[0].pooled[a];
    }
    return place;
  }
  // As accurate as where gradients are not repeated: with what f64 loses.
  struct Sum {
    double high = 0, low = 0;
    HWY_INLINE void Add(double value) {
      const double sum = high + value;
      if constexpr (std::is_same_v<T, double>) {
        const double rest = sum - high;
        low += (high - (sum - rest)) + (value - rest);
      }
      high = sum;
    }
    [[nodiscard]] double Value() const { return std::is_same_v<T, double> && std::isfinite(high) ? high + low : high; }
  };
  HWY_INLINE void WriteRun(const Cells& cells, Index i, const RunOfCells& run) const {
    const D d;
    const T* const from = cells.from + run.start * in_;
    const Index step = axis_.step * in_;
    Sum sum;
    const auto add_row = [&](const T* row) {
      for (Index t = 0; t < run.count; ++t) sum.Add(static_cast<double>(row[t * step]));
    };
    if (cells.counts == nullptr) {
      add_row(from);
    } else {
      std::array<Index, max_rank> tap{};
      do {
        add_row(from + PlaceOfRow(tap));
      } while (Next(tap, static_cast<std::size_t>(plan_.rank - 1), [&](std::size_t a) { return cells.counts[a]; }));
    }
    const T value = static_cast<T>(sum.Value() * scale_) + T{0};
    const Index vectors_end = std::min(run.end, cells.end - n + 1);
    const auto v = hn::Set(d, value);
    for (; i < vectors_end; i += n) hn::StoreU(v, d, cells.to + i);
    for (; i < run.end; ++i) cells.to[i] = value;
  }
  // Windows s apart, a vector of them at a time; the last vector may begin inside the one before.
  template <Index s>
  HWY_NOINLINE void Spread(const Cells& cells) const {
    const D d;
    const Index low = axis_.low, kernel = axis_.source.kernel;
    const Index begin = (cells.begin + low + s - 1) / s;
    const Index end = HWY_MIN(axis_.in, (cells.end + low) / s);
    if (end - begin < n) return OneByOne(cells, cells.begin, cells.end);
    OneByOne(cells, cells.begin, begin * s - low);
    for (Index o = begin; o < end; o += n) {
      o = HWY_MIN(o, end - n);
      const auto v = Scaled(hn::LoadU(d, cells.from + o));
      hn::VFromD<D> phases[s];
      HWY_UNROLL(16)
      for (Index r = 0; r < s; ++r) phases[r] = r < kernel ? v : hn::Zero(d);
      T* place = cells.to + o * s - low;
      if constexpr (s == 2) hn::StoreInterleaved2(phases[0], phases[1], d, place);
      if constexpr (s == 3) hn::StoreInterleaved3(phases[0], phases[1], phases[2], d, place);
      if constexpr (s == 4) hn::StoreInterleaved4(phases[0], phases[1], phases[2], phases[3], d, place);
    }
    OneByOne(cells, end * s - low, cells.end);
  }

  // Cells of `count` lanes that are neighbours.
  void LanesOfRow(const Cells& cells, Index count) const {
    Index before = -1;  // the output of the cell before
    for (Index i = cells.begin; i < cells.end; ++i) {
      T* to = cells.to + i * out_;
      const plan::Taps taps = axis_.whole ? plan::Taps{0, 1, 0, 0} : axis_.taps[i];
      const Index from = cells.from == nullptr || taps.count == 0 ? -2 : taps.start;
      if (i > cells.begin && from == before)
        CopyCells(to - out_, count, to);
      else if (cells.same != nullptr)
        CopyCells(cells.same + i * out_, count, to);
      else if (from < 0)
        Fill(T{}, count, to);
      else
        ScaleAll(cells.from + from * in_, count, to);
      before = from;
    }
  }
  void ScaleAll(const T* from, Index count, T* to) const {
    const D d;
    Index i = 0;
    for (; i + n <= count; i += n) hn::StoreU(Scaled(hn::LoadU(d, from + i)), d, to + i);
    for (; i < count; ++i) to[i] = Scaled(from[i]);
  }

  // Whole vectors, of which the last may begin inside the one before.
  static HWY_INLINE void Fill(T value, Index count, T* to) {
    const D d;
    if (count < n) {
      for (Index i = 0; i < count; ++i) to[i] = value;
      return;
    }
    const auto v = hn::Set(d, value);
    for (Index i = 0; i + n <= count; i += n) hn::StoreU(v, d, to + i);
    hn::StoreU(v, d, to + count - n);
  }

  const plan::Plan& plan_;
  const plan::PooledAxis& axis_;  // the last
  double scale_;
  Index in_, out_;  // between neighbours along it
  RunOfCells* runs_ = nullptr;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
