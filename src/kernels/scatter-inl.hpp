// Gradients added by every output to the cell that it chose, in the order of outputs: for windows of any size.
#if defined(CENOTE_KERNELS_SCATTER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_SCATTER_INL_HPP
#undef CENOTE_KERNELS_SCATTER_INL_HPP
#else
#define CENOTE_KERNELS_SCATTER_INL_HPP
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "cenote/scalar.hpp"
#include "kernels/gather-inl.hpp"
#include "kernels/states-inl.hpp"
#include "kernels/winners-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// Every output adds to the cell that it chose.
template <class T, class U>
class Scatter {
  using G = Gradient<T>;
  static constexpr bool direct = std::is_same_v<G, T>;

 public:
  Scatter(const plan::Plan& plan, const PullTask& task)
      : plan_(plan), task_(task), last_(static_cast<std::size_t>(plan.rank - 1)), inner_(plan.axes[last_].source) {
    whole_ = task.begin == 0 && task.end == plan.axes[0].out;
    side_by_side_ = plan.outputs[0].access == plan::Access::lanes;
    const Index width = side_by_side_ ? task.stop - task.first : 1;
    cells_ = task.end - task.begin;
    for (std::size_t a = 1; a <= last_; ++a) cells_ *= plan.axes[a].out;
    if constexpr (direct) {
      strides_ = plan.outputs[0].pooled;
    } else {
      Index stride = width;
      for (std::size_t a = last_ + 1; a-- > 0;) {
        strides_[a] = stride;
        stride *= a == 0 ? task.end - task.begin : plan.axes[a].out;
      }
    }
    const Index outputs = OutputsOfLane(plan);
    single_ = outputs == 1;
    none_ = plan.winner_none ? static_cast<Index>(static_cast<U>(-1)) : -1;
    for (std::size_t a = 0; a <= last_; ++a) base_ += plan.axes[a].source.position(0, 0) * strides_[a];
    first_ = plan.axes[0].source.position(0, 0);
    reach_ = (plan.axes[0].source.kernel - 1) * plan.axes[0].source.dilation;
    tabled_ = TabledNumbers(plan, outputs * (task.stop - task.first));
    seen_ = whole_ ? plan::Span{0, plan.axes[0].source.out} : plan::positions_of(plan.axes[0], task.begin, task.end);
    runs_ = inner_.kind == Axis::Kind::sliding && inner_.stride == 1 && inner_.dilation == 1 &&
            inner_.kernel >= least_run && plan.inputs[0].pooled[last_] == 1 && plan.winner.pooled[last_] == 1;
    flat_ = IsFlat(outputs);
    in_turn_ = cells_ * Index{sizeof(T)} <= most_staged / 4 ? 8 : 4;
    plain_ = direct && whole_ && !side_by_side_ && !runs_ && tabled_ > 0 && none_ < 0 && last_ > 0 &&
             plan.inputs[0].pooled[last_] == 1 && plan.winner.pooled[last_] == 1;
    const auto sums = scratch_.Ask<G>(direct ? 0 : cells_ * width);
    const auto table = scratch_.Ask<Index>(2 * tabled_);
    row_ = last_ == 0 ? seen_ : plan::Span{0, flat_ ? outputs : inner_.out};
    const auto starts = scratch_.Ask<Index>(row_.size());
    const auto wide = scratch_.Ask<G>(direct ? 0 : row_.size());
    const bool staged = IsStaged(outputs);
    const auto stage = scratch_.Ask<T>(staged ? cells_ : 0);
    scratch_.Take();
    sums_ = scratch_.At(sums);
    places_ = scratch_.At(table);
    if (staged) stage_ = scratch_.At(stage);
    starts_ = scratch_.At(starts) - row_.begin;
    wide_ = scratch_.At(wide) - row_.begin;
    if (flat_) {
      std::array<Index, max_rank> at{};
      for (Index o = 0; o < outputs;) {
        Index start = 0;
        for (std::size_t a = 0; a < last_; ++a) start += plan.axes[a].source.position(at[a], 0) * strides_[a];
        for (Index c = 0; c < inner_.out; ++c) starts_[o++] = start + inner_.position(c, 0) * strides_[last_];
        Next(at, last_, [&](std::size_t a) { return plan.axes[a].source.out; });
      }
    } else {
      for (Index o = row_.begin; o < row_.end; ++o) starts_[o] = inner_.position(o, 0) * strides_[last_];
    }
    std::array<Index, max_rank> tap{};
    for (Index number = 0; number < tabled_; ++number) {
      Index place = 0;
      for (std::size_t a = 0; a <= last_; ++a) place += tap[a] * plan.axes[a].source.dilation * strides_[a];
      places_[number] = place;
      places_[tabled_ + number] = tap[0] * plan.axes[0].source.dilation;
      Next(tap, last_ + 1, [&](std::size_t a) { return plan.axes[a].source.kernel; });
    }
  }

  void Run() {
    const auto l = static_cast<std::size_t>(plan_.lanes.rank - 1);
    EachRunOfLanes(plan_, task_.first, task_.stop, [&](const LanePlaces& places, Index, Index count) {
      const Index gy_step = plan_.inputs[0].lanes[l];
      const Index won_step = plan_.winner.lanes[l];
      const Index gx_step = plan_.outputs[0].lanes[l];
      gy_ = static_cast<const T*>(plan_.inputs[0].data) + places.in;
      won_ = reinterpret_cast<const U*>(plan_.winners) + places.won;
      gx_ = static_cast<T*>(plan_.outputs[0].data) + places.out;
      if (side_by_side_) {
        Clear(1, 0);
        AddLanes(count, gy_step, won_step);
        if constexpr (!direct) Finish(count);
        return;
      }
      if (stage_ != nullptr && gx_step % vector_lanes<T> == 0) {
        AddStaged(count, gy_step, won_step, gx_step);
        return;
      }
      // Lanes that follow each other are cleared together, as many as stay in the nearest cache until they are used.
      Index together = direct ? std::clamp(Index{8192} / (cells_ * Index{sizeof(T)} + 1), Index{1}, count) : 1;
      if (plain_) together = (together + in_turn_ - 1) / in_turn_ * in_turn_;
      for (Index left = count; left > 0;) {
        const Index group = std::min(left, together);
        Clear(group, gx_step);
        if (single_)
          AddSingle(group, gy_step, won_step, gx_step);
        else
          for (Index lane = 0; lane < group;) lane += AddSome(group - lane, gy_step, won_step, gx_step);
        left -= group;
      }
    });
  }

 private:
  // Windows of so many taps along the last axis, one cell apart, choose the same cell several times in a row, and
  // adding in a register pays for looking for the end of a run.
  static constexpr Index least_run = 20;

  [[nodiscard]] Index CellsAlong(std::size_t a) const { return a == 0 ? task_.end - task_.begin : plan_.axes[a].out; }

  // Planes of few outputs, of results that no cache will hold: made in one, and streamed from there.
  [[nodiscard]] bool IsStaged(Index outputs) const {
    if (!direct || !whole_ || side_by_side_ || 4 * outputs > cells_ || cells_ * Index{sizeof(T)} > most_staged)
      return false;
    Index behind = 1;
    for (std::size_t a = last_ + 1; a-- > 0; behind *= plan_.axes[a].out)
      if (strides_[a] != behind) return false;
    return Streams(plan_, static_cast<const T*>(plan_.outputs[0].data), cells_);
  }
  static constexpr Index most_staged = Index{1} << 18;
  void AddStaged(Index lanes, Index gy_step, Index won_step, Index gx_step) {
    if constexpr (direct) {
      const hn::ScalableTag<T> d;
      constexpr Index n = vector_lanes<T>;
      T* to = gx_;
      Zero(stage_, cells_);
      for (; lanes > 0; --lanes, to += gx_step) {
        gx_ = stage_;
        if (single_)
          AddSingle(1, gy_step, won_step, 0);
        else
          AddSome(1, gy_step, won_step, 0);
        for (Index i = 0; i < cells_; i += n) {
          hn::Stream(hn::LoadU(d, stage_ + i), d, to + i);
          hn::StoreU(hn::Zero(d), d, stage_ + i);
        }
      }
      hwy::FlushStream();
    }
  }

  void Clear(Index lanes, Index step) {
    if constexpr (!direct) {
      std::fill_n(sums_, cells_ * (side_by_side_ ? task_.stop - task_.first : 1), G(0));
      return;
    } else {
      const Index width = side_by_side_ ? task_.stop - task_.first : 1;
      // The longest run of neighbours that the axes from some `outer` on make up.
      Index run = width;
      std::size_t outer = last_ + 1;
      while (outer > 0 && strides_[outer - 1] == run) run *= CellsAlong(--outer);
      T* const begin = gx_ + task_.begin * strides_[0];
      if (outer == 0 && step == run && !side_by_side_) return Zero(begin, run * lanes);
      for (Index lane = 0; lane < lanes; ++lane) {
        std::array<Index, max_rank> at{};
        do {
          T* to = begin + lane * step;
          for (std::size_t a = 0; a < outer; ++a) to += at[a] * strides_[a];
          Zero(to, run);
        } while (Next(at, outer, [&](std::size_t a) { return CellsAlong(a); }));
      }
    }
  }

  // std::memset is half as fast beyond the caches: it hands over to a string instruction.
  static void Zero(T* to, Index count) {
    const hn::ScalableTag<T> d;
    constexpr Index n = vector_lanes<T>;
    Index i = 0;
    if (count >= n) {
      const auto zero = hn::Zero(d);
      hn::StoreU(zero, d, to);
      i = UntilAligned(to);
      for (; i + n <= count; i += n) {
        hn::Store(zero, d, to + i);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // or the compiler writes std::memset here
      }
      hn::StoreU(zero, d, to + count - n);
      return;
    }
    for (; i < count; ++i) to[i] = T(Index{0});
  }

  [[nodiscard]] G* Sums() const {
    if constexpr (direct)
      return gx_;
    else
      return sums_ - task_.begin * strides_[0];
  }

  HWY_INLINE Index Place(Index number, Index& first) const {
    if (tabled_ == 0) return PlaceOf(plan_, strides_, number, first);
    first = places_[tabled_ + number];
    return places_[number];
  }

  // Calls use(place of the first tap, position along the first axis, gradient, winner) for every row of outputs that
  // can reach this block, or with the last axis as well for every output.
  template <class F>
  void EachRow(std::size_t axes, F&& use) const {
    const auto limit = [&](std::size_t a) { return a == 0 ? seen_.size() : plan_.axes[a].source.out; };
    if (axes > 0 && seen_.size() == 0) return;
    std::array<Index, max_rank> at{};
    do {
      Index base = 0, gy = 0, won = 0, row = 0;
      for (std::size_t a = 0; a < axes; ++a) {
        const Index o = at[a] + (a == 0 ? seen_.begin : 0);
        const Index start = plan_.axes[a].source.position(o, 0);
        if (a == 0) row = start;
        base += start * strides_[a];
        gy += o * plan_.inputs[0].pooled[a];
        won += o * plan_.winner.pooled[a];
      }
      use(base, row, gy_ + gy, won_ + won);
    } while (Next(at, axes, limit));
  }

  // The only output of every lane, most often of its whole plane.
  void AddSingle(Index lanes, Index gy_step, Index won_step, Index gx_step) {
    const Index even = whole_ ? EvenStep(plan_, strides_) : 0;
    const Index* const places = whole_ && tabled_ > 0 && even == 0 ? places_ : nullptr;
    const Index none = none_, base = base_;
    const T* gy = gy_;
    const U* won = won_;
    G* sums = Sums();
    for (Index lane = 0; lane < lanes; ++lane, gy += gy_step, won += won_step, sums += direct ? gx_step : 0) {
      const auto number = static_cast<Index>(*won);
      if (number == none) continue;
      Index place = number * even;
      if (places != nullptr) {
        place = places[number];
      } else if (even == 0) {
        Index first = 0;
        place = Place(number, first);
        if (first_ + first < task_.begin || first_ + first >= task_.end) continue;
      }
      sums[base + place] = static_cast<G>(*gy) + G(Index{0});  // no -0, as where gradients are added to 0
    }
    if constexpr (!direct) Finish(1);  // of one lane at a time
    gy_ = gy;
    won_ = won;
    gx_ += lanes * gx_step;
  }

  // Small planes are one long row: everything of theirs lies side by side, and there are several to a table of starts.
  [[nodiscard]] bool IsFlat(Index outputs) const {
    if (!whole_ || side_by_side_ || runs_ || tabled_ == 0 || none_ >= 0) return false;
    if (last_ == 0 || outputs > 4096 || task_.stop - task_.first < 4) return false;
    Index cells = 1;
    for (std::size_t a = last_ + 1; a-- > 0;) {
      if (plan_.inputs[0].pooled[a] != cells || plan_.winner.pooled[a] != cells) return false;
      cells *= plan_.axes[a].source.out;
    }
    return true;
  }

  // One lane, or several if there are: then additions to one cell that wait for each other are of several lanes in
  // turn.
  Index AddSome(Index left, Index gy_step, Index won_step, Index gx_step) {
    Index lanes = 1;
    if constexpr (direct) {
      if (plain_ && left >= in_turn_) {
        lanes = in_turn_;
        const auto add = [&](Index base, Index, const T* gy, const U* won) HWY_ATTR {
          (in_turn_ == 8 ? &AddRows<8> : &AddRows<4>)(gx_ + base, gx_step, starts_, places_, gy, gy_step, won, won_step,
                                                      row_);
        };
        if (flat_)
          add(0, 0, gy_, won_);
        else
          EachRow(last_, add);
      }
    }
    if (lanes == 1) Add();
    gy_ += lanes * gy_step;
    won_ += lanes * won_step;
    gx_ += lanes * gx_step;
    return lanes;
  }

  void Add() {
    G* const sums = Sums();
    if (flat_) {
      AddPlainRow(sums, starts_, places_, Widened(gy_), won_, row_.begin, row_.end);
      if constexpr (!direct) Finish(1);
      return;
    }
    EachRow(last_, [&](Index base, Index row, const T* gy, const U* won) {
      if (runs_)
        AddRuns(sums + base, row, gy, won);
      else
        AddRow(sums + base, row, gy, won);
    });
    if constexpr (!direct) Finish(1);
  }

  // A row without anything out of the ordinary.
  static HWY_NOINLINE void AddPlainRow(G* sums, const Index* starts, const Index* places, const G* gy, const U* won,
                                       Index begin, Index end) {
    for (Index o = begin; o < end; ++o) {
      G& sum = sums[starts[o] + places[won[o]]];
      sum = sum + gy[o];
    }
  }
  // The same row of several lanes.
  template <int lanes>
  static HWY_NOINLINE void AddRows(G* sums, Index step, const Index* starts, const Index* places, const G* gy,
                                   Index gy_step, const U* won, Index won_step, plan::Span row) {
    // Two lanes to a pointer: as many pointers as there are registers.
    const G *const gy_2 = gy + 2 * gy_step, *const gy_4 = gy + 4 * gy_step, *const gy_6 = gy + 6 * gy_step;
    const U *const won_2 = won + 2 * won_step, *const won_4 = won + 4 * won_step, *const won_6 = won + 6 * won_step;
    for (Index o = row.begin; o < row.end; ++o) {
      G* at = sums + starts[o];
      const auto two = [&](const G* gradients, const U* winners) HWY_ATTR {
        G& a = at[places[winners[o]]];
        G& b = at[step + places[winners[o + won_step]]];
        a = a + gradients[o];
        b = b + gradients[o + gy_step];
        at += 2 * step;
      };
      two(gy, won);
      two(gy_2, won_2);
      if constexpr (lanes == 8) {
        two(gy_4, won_4);
        two(gy_6, won_6);
      }
    }
  }
  // Gradients of neighbouring outputs, as sums are added.
  const G* Widened(const T* gy) const {
    if constexpr (direct) {
      return gy;
    } else {
      const hn::ScalableTag<float> df;
      constexpr Index n = vector_lanes<float>;
      Index o = row_.begin;
      for (; o + n <= row_.end; o += n)
        hn::StoreU(LoadHalves<T>(df, reinterpret_cast<const std::uint16_t*>(gy) + o), df, wide_ + o);
      for (; o < row_.end; ++o) wide_[o] = static_cast<G>(gy[o]);
      return wide_;
    }
  }

  void AddRow(G* sums, Index row, const T* gy, const U* won) const {
    const Index gy_stride = plan_.inputs[0].pooled[last_];
    const Index won_stride = plan_.winner.pooled[last_];
    // Rows whose windows do not leave the block need not ask where their winners are.
    const bool inside = whole_ || (last_ > 0 && row >= task_.begin && row + reach_ < task_.end);
    if (inside && tabled_ > 0 && none_ < 0 && gy_stride == 1 && won_stride == 1)
      return AddPlainRow(sums, starts_, places_, Widened(gy), won, row_.begin, row_.end);
    for (Index o = row_.begin; o < row_.end; ++o) {
      const auto number = static_cast<Index>(won[o * won_stride]);
      if (number == none_) continue;
      Index first = 0;
      const Index place = Place(number, first);
      first += last_ == 0 ? inner_.position(o, 0) : row;
      if (first < task_.begin || first >= task_.end) continue;
      G& sum = sums[starts_[o] + place];
      sum = sum + static_cast<G>(gy[o * gy_stride]);
    }
  }

  // The next window's winner is the same cell if its number is one less, as long as the window still holds the cell.
  void AddRuns(G* sums, Index row, const T* gy, const U* won) const {
    for (Index o = row_.begin; o < row_.end;) {
      const auto number = static_cast<Index>(won[o]);
      if (number == none_) {
        ++o;
        continue;
      }
      Index first = 0;
      G* const cell = sums + starts_[o] + Place(number, first);
      first += last_ == 0 ? inner_.position(o, 0) : row;
      const Index stop = std::min(row_.end, o + number % inner_.kernel + 1);
      const bool here = first >= task_.begin && first < task_.end;
      G sum = here ? *cell : G(0);
      U expected = won[o];
      do {
        sum = sum + static_cast<G>(gy[o]);
        ++o;
        --expected;
      } while (o < stop && won[o] == expected);
      if (here) *cell = sum;
    }
  }

  // Lanes that are neighbours in memory, output by output.
  void AddLanes(Index lanes, Index gy_lane, Index won_lane) const {
    const Index none = none_;
    G* const sums = Sums();
    EachRow(last_ + 1, [&](Index base, Index row, const T* gy, const U* won) {
      for (Index lane = 0; lane < lanes; ++lane) {
        const auto number = static_cast<Index>(won[lane * won_lane]);
        if (number == none) continue;
        Index first = 0;
        G& sum = sums[base + Place(number, first) + lane];
        if (row + first < task_.begin || row + first >= task_.end) continue;
        sum = sum + static_cast<G>(gy[lane * gy_lane]);
      }
    });
  }

  // Halves: the sums of neighbours together, be they lanes or cells.
  void Finish(Index lanes) {
    std::array<Index, max_rank> at{};
    const G* from = sums_;
    const auto& strides = plan_.outputs[0].pooled;
    const bool cells = !side_by_side_ && strides[last_] == 1;
    const Index run = cells ? CellsAlong(last_) : lanes;
    do {
      T* to = gx_ + task_.begin * strides[0];
      for (std::size_t a = 0; a <= last_; ++a) to += at[a] * strides[a];
      const hn::ScalableTag<float> df;
      const hn::Rebind<std::uint16_t, decltype(df)> narrow;
      constexpr Index n = vector_lanes<float>;
      Index i = 0;
      for (; i + n <= run; i += n)
        hn::StoreU(ToHalves<T>(df, hn::LoadU(df, from + i)), narrow, reinterpret_cast<std::uint16_t*>(to) + i);
      for (; i < run; ++i) to[i] = static_cast<T>(from[i]);
      from += run;
    } while (Next(at, cells ? last_ : last_ + 1, [&](std::size_t a) { return CellsAlong(a); }));
  }

  const plan::Plan& plan_;
  const PullTask& task_;
  std::size_t last_;
  const Axis& inner_;
  bool side_by_side_ = false, whole_ = false, single_ = false, runs_ = false, flat_ = false, plain_ = false;
  Index cells_ = 0, tabled_ = 0;
  Index none_ = -1;             // the number that stands for no winner
  Index reach_ = 0;             // of a window along the first axis
  Index base_ = 0, first_ = 0;  // where the window of the first output begins, in cells and along the first axis
  std::array<Index, max_rank> strides_{};  // of the array that sums are added in
  plan::Span seen_{};                      // outputs along the first axis that can reach this block
  plan::Span row_{};                       // and along the last
  plan::Scratch scratch_;
  G* sums_ = nullptr;
  Index* places_ = nullptr;  // of every number; then the positions along the first axis
  Index* starts_ = nullptr;
  Index in_turn_ = 8;   // lanes: as many as stay in the cache
  G* wide_ = nullptr;   // a row of gradients
  T* stage_ = nullptr;  // a plane
  const T* gy_ = nullptr;
  T* gx_ = nullptr;
  const U* won_ = nullptr;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
