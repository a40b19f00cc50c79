// The derivative of a selection from its winners. Pulling adds gradients in the row-major order of outputs, whatever
// the algorithm: cells gather from the few windows that can have chosen them, row by row in vectors; where windows are
// large each output adds to the cell that it chose.
#if defined(CENOTE_KERNELS_PULL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_PULL_INL_HPP
#undef CENOTE_KERNELS_PULL_INL_HPP
#else
#define CENOTE_KERNELS_PULL_INL_HPP
#endif

#include <algorithm>

#include "cenote/scalar.hpp"
#include "kernels/lanes-inl.hpp"
#include "plan/plan.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// Where a lane begins in the input, the output and the winners.
struct LanePlaces {
  Index in = 0, out = 0, won = 0;
};
inline LanePlaces PlacesOf(const plan::Plan& plan, Index lane) {
  LanePlaces places;
  for (int a = plan.lanes.rank - 1; a >= 0; --a) {
    const auto i = static_cast<std::size_t>(a);
    const Index at = lane % plan.lanes.sizes[i];
    lane /= plan.lanes.sizes[i];
    places.in += at * plan.inputs[0].lanes[i];
    places.out += at * plan.outputs[0].lanes[i];
    places.won += at * plan.winner.lanes[i];
  }
  return places;
}

// What a winner's number adds to the place of its window's first tap, along all axes and along the first.
inline Index PlaceOf(const plan::Plan& plan, const std::array<Index, max_rank>& strides, Index number, Index& first) {
  Index place = 0;
  for (auto a = static_cast<std::size_t>(plan.rank); a-- > 0;) {
    const Axis& axis = plan.axes[a].source;
    first = number % axis.kernel * axis.dilation;
    number /= axis.kernel;
    place += first * strides[a];
  }
  return place;
}

// Numbers of a window's taps, if a table of their places is worth it; 0 if it is not.
inline Index TabledNumbers(const plan::Plan& plan) {
  Index box = 1;
  for (int a = 0; a < plan.rank; ++a) box *= plan.axes[static_cast<std::size_t>(a)].source.kernel;
  return box <= 4096 ? box : 0;
}

// One plane of one lane, or a block of its rows. inputs[0] is the gradient of the outputs, outputs[0] that of the
// input.
template <class T>
class Pull {
 public:
  // A task has `plan.vectors` lanes.
  static Index Tasks(const plan::Plan& plan) {
    return (plan.lanes.count + plan.vectors - 1) / plan.vectors * plan.axes[0].blocks;
  }
  static void Run(const plan::Plan& plan, Index task) {
    Pull pull(plan, task % plan.axes[0].blocks);
    const Index first = task / plan.axes[0].blocks * plan.vectors;
    const Index stop = std::min(plan.lanes.count, first + plan.vectors);
    pull.WithWidth([&]<class U>(U) {
      if (plan.outputs[0].access == plan::Access::lanes) return pull.template SideBySide<U>(first, stop);
      const bool gathers = std::is_floating_point_v<T> && plan.rows;
      if (!gathers) pull.Prepare();
      for (Index lane = first; lane < stop; ++lane) {
        pull.Enter(lane);
        if constexpr (std::is_floating_point_v<T>) {
          if (plan.rows) {
            pull.template Gather<U>();
            continue;
          }
        }
        pull.template Scatter<U>();
      }
    });
  }

 private:
  Pull(const plan::Plan& plan, Index block)
      : plan_(plan), last_(static_cast<std::size_t>(plan.rank - 1)), begin_(block * plan.axes[0].outputs_per_block),
        end_(std::min(plan.axes[0].out, begin_ + plan.axes[0].outputs_per_block)) {}

  void Enter(Index lane) {
    const LanePlaces places = PlacesOf(plan_, lane);
    gy_ = static_cast<const T*>(plan_.inputs[0].data) + places.in;
    gx_ = static_cast<T*>(plan_.outputs[0].data) + places.out;
    won_ = places.won;
  }

  template <class F>
  void WithWidth(F&& use) const {
    switch (plan_.winner_bytes) {
      case 1: return use(std::uint8_t{});
      case 2: return use(std::uint16_t{});
      default: return use(std::uint32_t{});
    }
  }

  static Index next(std::array<Index, max_rank>& at, std::size_t axes, const auto& limit) {
    for (std::size_t a = axes; a-- > 0;) {
      if (++at[a] < limit(a)) return 1;
      at[a] = 0;
    }
    return 0;
  }

  using G = Gradient<T>;
  static constexpr bool direct = std::is_same_v<G, T>;

  // What all lanes of a task share.
  void Prepare() {
    cells_ = end_ - begin_;
    for (std::size_t a = 1; a <= last_; ++a) cells_ *= plan_.axes[a].out;
    if constexpr (direct) {
      strides_ = plan_.outputs[0].pooled;
    } else {
      Index stride = 1;
      for (std::size_t a = last_ + 1; a-- > 0;) {
        strides_[a] = stride;
        stride *= plan_.axes[a].out;
      }
    }
    tabled_ = TabledNumbers(plan_);
    asked_ = scratch_.Ask<G>(direct ? 0 : cells_);
    table_ = scratch_.Ask<Index>(2 * tabled_);
    starts_ = scratch_.Ask<Index>(plan_.axes[last_].source.out);
    scratch_.Take();
    for (Index number = 0; number < tabled_; ++number)
      scratch_.At(table_)[number] = PlaceOf(plan_, strides_, number, scratch_.At(table_)[tabled_ + number]);
    for (Index o = 0; o < plan_.axes[last_].source.out; ++o)
      scratch_.At(starts_)[o] = plan_.axes[last_].source.position(o, 0);
  }

  // Lanes that are neighbours in memory go together, cell by cell.
  template <class U>
  void SideBySide(Index first, Index stop) {
    const Index inner = plan_.lanes.sizes[static_cast<std::size_t>(plan_.lanes.rank - 1)];
    for (Index lane = first; lane < stop;) {
      const Index count = std::min(stop - lane, inner - lane % inner);
      Enter(lane);
      const std::size_t l = static_cast<std::size_t>(plan_.lanes.rank - 1);
      const Index gy_lane = plan_.inputs[0].lanes[l];
      const Index won_lane = plan_.winner.lanes[l];
      bool gathered = false;
      if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T> && sizeof(U) == 1) {
        if (plan_.few_windows && gy_lane == 1 && won_lane == 1 && count >= vector_lanes<T> && !plan_.winner_none) {
          GatherLanes(count);
          gathered = true;
        }
      }
      if (!gathered) ScatterLanes<U>(count, gy_lane, won_lane);
      lane += count;
    }
  }

  // Every cell looks at the few windows that hold it, all lanes at once.
  void GatherLanes(Index lanes) {
    const hn::ScalableTag<T> d;
    const hn::ScalableTag<Bits<T>> dn;
    const hn::Rebind<std::uint8_t, decltype(dn)> d8;
    constexpr Index n = vector_lanes<T>;
    const auto& axes = plan_.axes;
    const std::uint8_t* winners = plan_.winners + won_;
    std::array<Index, max_rank> cell{};
    const auto limit = [&](std::size_t a) { return a == 0 ? end_ - begin_ : axes[a].out; };
    do {
      struct {
        const T* gradient;
        const std::uint8_t* winner;
        Bits<T> number;
      } seen[max_seen];
      Index count = 0;
      bool any = true;
      for (std::size_t a = 0; a <= last_; ++a) any = any && axes[a].taps[cell[a] + (a == 0 ? begin_ : 0)].count > 0;
      std::array<Index, max_rank> tap{};
      Index place = 0;
      for (std::size_t a = 0; a <= last_; ++a) place += (cell[a] + (a == 0 ? begin_ : 0)) * plan_.outputs[0].pooled[a];
      while (any) {
        Index gy = 0, won = 0, number = 0;
        for (std::size_t a = 0; a <= last_; ++a) {
          const Axis& axis = axes[a].source;
          const Index i = cell[a] + (a == 0 ? begin_ : 0);
          const Index o = axes[a].taps[i].start + tap[a] * axes[a].step;
          gy += o * plan_.inputs[0].pooled[a];
          won += o * plan_.winner.pooled[a];
          const Index reach = i + axis.padding.low - o * axis.stride;
          number = number * axis.kernel + (axis.kind == Axis::Kind::adaptive ? i - axis.position(o, 0)
                                           : axis.dilation == 1              ? reach
                                                                             : reach / axis.dilation);
        }
        seen[count++] = {gy_ + gy, winners + won, static_cast<Bits<T>>(number)};
        any = next(tap, last_ + 1,
                   [&](std::size_t a) { return axes[a].taps[cell[a] + (a == 0 ? begin_ : 0)].count; }) != 0;
      }
      for (Index lane = 0; lane < lanes; lane += n) {
        if (lane + n > lanes) lane = lanes - n;
        auto acc = hn::Zero(d);
        for (Index w = 0; w < count; ++w) {
          const auto number = hn::PromoteTo(dn, hn::LoadU(d8, seen[w].winner + lane));
          const auto chosen = hn::RebindMask(d, hn::Eq(number, hn::Set(dn, seen[w].number)));
          acc = hn::Add(acc, hn::IfThenElseZero(chosen, hn::LoadU(d, seen[w].gradient + lane)));
        }
        hn::StoreU(acc, d, gx_ + place + lane);
      }
    } while (next(cell, last_ + 1, limit) != 0);
  }

  template <class U>
  void ScatterLanes(Index lanes, Index gy_lane, Index won_lane) {
    const auto& axes = plan_.axes;
    plan::Scratch scratch;
    Index cells = end_ - begin_;
    for (std::size_t a = 1; a <= last_; ++a) cells *= axes[a].out;
    std::array<Index, max_rank> strides{};
    if constexpr (direct) {
      strides = plan_.outputs[0].pooled;
    } else {
      Index stride = lanes;
      for (std::size_t a = last_ + 1; a-- > 0;) {
        strides[a] = stride;
        stride *= axes[a].out;
      }
    }
    const auto asked = scratch.Ask<G>(direct ? 0 : cells * lanes);
    scratch.Take();
    G* sums = nullptr;
    const auto limit = [&](std::size_t a) { return a == 0 ? end_ - begin_ : axes[a].out; };
    std::array<Index, max_rank> cell{};
    if constexpr (direct) {
      sums = gx_;
      do {
        Index place = begin_ * strides[0];
        for (std::size_t a = 0; a <= last_; ++a) place += cell[a] * strides[a];
        std::fill_n(gx_ + place, lanes, T(Index{0}));
      } while (next(cell, last_ + 1, limit) != 0);
    } else {
      sums = scratch.At(asked) - begin_ * strides[0];
      std::fill_n(scratch.At(asked), cells * lanes, G(0));
    }
    const U* winners = reinterpret_cast<const U*>(plan_.winners) + won_;
    const Index none = plan_.winner_none ? static_cast<Index>(static_cast<U>(-1)) : -1;
    std::array<Index, max_rank> at{};
    do {
      Index base = 0, gy = 0, won = 0;
      for (std::size_t a = 0; a <= last_; ++a) {
        base += axes[a].source.position(at[a], 0) * strides[a];
        gy += at[a] * plan_.inputs[0].pooled[a];
        won += at[a] * plan_.winner.pooled[a];
      }
      const Index row = axes[0].source.position(at[0], 0);
      if (row >= end_ || row + (axes[0].source.kernel - 1) * axes[0].source.dilation < begin_) continue;
      for (Index lane = 0; lane < lanes; ++lane) {
        const auto number = static_cast<Index>(winners[won + lane * won_lane]);
        if (number == none) continue;
        Index along = 0;
        const Index place = base + lane + PlaceOf(plan_, strides, number, along);
        if (row + along < begin_ || row + along >= end_) continue;
        G& sum = sums[place];
        sum = sum + static_cast<G>(gy_[gy + lane * gy_lane]);
      }
    } while (next(at, last_ + 1, [&](std::size_t a) { return axes[a].source.out; }) != 0);
    if constexpr (!direct) {
      cell = {};
      const G* from = scratch.At(asked);
      do {
        Index place = begin_ * plan_.outputs[0].pooled[0];
        for (std::size_t a = 0; a <= last_; ++a) place += cell[a] * plan_.outputs[0].pooled[a];
        for (Index lane = 0; lane < lanes; ++lane) gx_[place + lane] = static_cast<T>(*from++);
      } while (next(cell, last_ + 1, limit) != 0);
    }
  }

  // Every output adds to its winner.
  template <class U>
  void Scatter() {
    const auto& axes = plan_.axes;
    const auto& strides = strides_;
    G* sums = nullptr;
    if constexpr (direct) {
      sums = gx_;
      std::array<Index, max_rank> at{};
      do {  // rows of zeros
        T* row = gx_ + begin_ * strides[0];
        for (std::size_t a = 0; a < last_; ++a) row += at[a] * strides[a];
        const Index count = last_ == 0 ? end_ - begin_ : axes[last_].out;
        if (strides[last_] == 1)
          std::fill_n(row, count, T(Index{0}));
        else
          for (Index i = 0; i < count; ++i) row[i * strides[last_]] = T(Index{0});
      } while (next(at, last_, [&](std::size_t a) { return a == 0 ? end_ - begin_ : axes[a].out; }) != 0);
    } else {
      sums = scratch_.At(asked_) - begin_ * strides[0];
      std::fill_n(scratch_.At(asked_), cells_, G(0));
    }
    const Index* table = scratch_.At(table_);
    const Index* starts = scratch_.At(starts_);
    const Index tabled = tabled_;
    const bool whole = begin_ == 0 && end_ == axes[0].out;
    const U* winners = reinterpret_cast<const U*>(plan_.winners) + won_;
    const Index none = plan_.winner_none ? static_cast<Index>(static_cast<U>(-1)) : -1;
    const Axis& inner = axes[last_].source;
    const Index gy_stride = plan_.inputs[0].pooled[last_];
    const Index won_stride = plan_.winner.pooled[last_];
    std::array<Index, max_rank> at{};
    do {
      Index base = 0, gy = 0, won = 0;
      for (std::size_t a = 0; a < last_; ++a) {
        base += axes[a].source.position(at[a], 0) * strides[a];
        gy += at[a] * plan_.inputs[0].pooled[a];
        won += at[a] * plan_.winner.pooled[a];
      }
      const Index row = last_ == 0 ? 0 : axes[0].source.position(at[0], 0);
      if (!whole && last_ > 0) {
        const Index reach = row + (axes[0].source.kernel - 1) * axes[0].source.dilation;
        if (reach < begin_ || row >= end_) continue;
      }
      for (Index o = 0; o < inner.out; ++o) {
        const auto number = static_cast<Index>(winners[won + o * won_stride]);
        if (number == none) continue;
        Index first = 0;
        Index place = 0;
        if (tabled > 0) {
          place = table[number];
          first = table[tabled + number];
        } else {
          place = PlaceOf(plan_, strides, number, first);
        }
        const Index start = starts[o];
        if (!whole) {
          const Index along = first + (last_ == 0 ? start : row);
          if (along < begin_ || along >= end_) continue;
        }
        G& sum = sums[base + start * strides[last_] + place];
        sum = sum + static_cast<G>(gy_[gy + o * gy_stride]);
      }
    } while (next(at, last_, [&](std::size_t a) { return axes[a].source.out; }) != 0);
    if constexpr (!direct) {
      const auto& to = plan_.outputs[0].pooled;
      std::array<Index, max_rank> cell{};
      const G* from = scratch_.At(asked_);
      do {
        T* row = gx_ + begin_ * to[0];
        for (std::size_t a = 0; a < last_; ++a) row += cell[a] * to[a];
        const Index count = last_ == 0 ? end_ - begin_ : axes[last_].out;
        for (Index i = 0; i < count; ++i) row[i * to[last_]] = static_cast<T>(*from++);
      } while (next(cell, last_, [&](std::size_t a) { return a == 0 ? end_ - begin_ : axes[a].out; }) != 0);
    }
  }

  // Every cell looks at the windows that hold it. Rows of gradients and of numbers stand padded in a scratch, numbers
  // in lanes as wide as the gradients and impossible ones where there is no output.
  template <class U>
  void Gather() {
    using N = Bits<T>;
    const hn::ScalableTag<T> d;
    const hn::ScalableTag<N> dn;
    constexpr Index n = vector_lanes<T>;
    const auto& axes = plan_.axes;
    const Axis& inner = axes[last_].source;
    const Index s = inner.stride;
    const Index shift = (inner.kernel - 1) * inner.dilation / s;  // places between a window's first and last tap
    const Index places = ((inner.in + inner.padding.low + s - 1) / s + n - 1) / n * n;
    const Index pitch = (std::max(places, inner.out) + shift + n - 1) / n * n + n;
    // Rows of outputs that this block can see: a box over the axes before the last.
    std::array<Index, max_rank> low{}, count{};
    Index rows = 1;
    for (std::size_t a = 0; a < last_; ++a) {
      const plan::Span seen = plan::positions_of(axes[a], a == 0 ? begin_ : 0, a == 0 ? end_ : axes[a].out);
      low[a] = seen.begin;
      count[a] = seen.size();
      rows *= count[a];
    }
    plan::Scratch scratch;
    const auto gradients = scratch.Ask<T>(rows * pitch);
    const auto numbers = scratch.Ask<N>(rows * pitch);
    const auto sums = scratch.Ask<T>(s * places);
    scratch.Take();
    const U* winners = reinterpret_cast<const U*>(plan_.winners) + won_;
    std::array<Index, max_rank> at{};
    for (Index r = 0; r < rows; ++r) {
      Index gy = 0, won = 0;
      for (std::size_t a = 0; a < last_; ++a) {
        gy += (low[a] + at[a]) * plan_.inputs[0].pooled[a];
        won += (low[a] + at[a]) * plan_.winner.pooled[a];
      }
      T* to = scratch.At(gradients) + r * pitch;
      N* number = scratch.At(numbers) + r * pitch;
      std::memset(number, 0xff, static_cast<std::size_t>(shift) * sizeof(N));
      std::memset(number + shift + inner.out, 0xff, static_cast<std::size_t>(pitch - shift - inner.out) * sizeof(N));
      std::memset(to, 0, static_cast<std::size_t>(shift) * sizeof(T));
      std::memset(to + shift + inner.out, 0, static_cast<std::size_t>(pitch - shift - inner.out) * sizeof(T));
      std::memcpy(to + shift, gy_ + gy, static_cast<std::size_t>(inner.out) * sizeof(T));
      Index o = 0;
      if constexpr (sizeof(N) == 4 && sizeof(U) == 1)
        for (; o + n <= inner.out; o += n)
          hn::StoreU(hn::PromoteTo(dn, hn::LoadU(hn::Rebind<U, decltype(dn)>(), winners + won + o)), dn,
                     number + shift + o);
      for (; o < inner.out; ++o) number[shift + o] = winners[won + o];
      if (plan_.winner_none)
        for (o = 0; o < inner.out; ++o)
          if (winners[won + o] == static_cast<U>(-1)) number[shift + o] = static_cast<N>(-1);
      next(at, last_, [&](std::size_t a) { return count[a]; });
    }
    // The taps of each phase, the last one first: then outputs come in ascending order.
    struct {
      Index back;
      N number;
    } taps[max_taps];
    Index phase_end[4];
    Index listed = 0;
    for (Index phase = 0; phase < s; ++phase) {
      for (Index t = inner.kernel; t-- > 0;)
        if (t * inner.dilation % s == phase) taps[listed++] = {t * inner.dilation / s, static_cast<N>(t)};
      phase_end[phase] = listed;
    }
    // One row of the input after the other.
    std::array<Index, max_rank> cell{};
    for (bool more = true; more;) {
      T* sum = scratch.At(sums);
      // The windows along the other axes, as (row of outputs, number of the tap in it); row-major by construction.
      Index seen = 0;
      Index seen_row[max_seen];
      Index seen_number[max_seen];
      std::array<Index, max_rank> tap{};
      bool any = true;
      for (std::size_t a = 0; a < last_; ++a) any = any && axes[a].taps[cell[a] + (a == 0 ? begin_ : 0)].count > 0;
      while (any) {
        Index row = 0, number = 0;
        for (std::size_t a = 0; a < last_; ++a) {
          const Axis& axis = axes[a].source;
          const Index i = cell[a] + (a == 0 ? begin_ : 0);
          const Index o = axes[a].taps[i].start + tap[a] * axes[a].step;
          row = row * count[a] + o - low[a];
          number = number * axis.kernel + (i + axis.padding.low - o * axis.stride) / axis.dilation;
        }
        seen_row[seen] = row * pitch;
        seen_number[seen++] = number * inner.kernel;
        any = next(tap, last_, [&](std::size_t a) { return axes[a].taps[cell[a] + (a == 0 ? begin_ : 0)].count; }) != 0;
      }
      for (Index phase = 0; phase < s; ++phase) {
        const Index first = phase == 0 ? 0 : phase_end[phase - 1];
        const Index stop = phase_end[phase];
        for (Index q = 0; q < places; q += n) {
          auto acc = hn::Zero(d);
          for (Index w = 0; w < seen; ++w) {
            const T* gradient = scratch.At(gradients) + seen_row[w] + q + shift;
            const N* number = scratch.At(numbers) + seen_row[w] + q + shift;
            const N base = static_cast<N>(seen_number[w]);
            for (Index t = first; t < stop; ++t) {
              const auto chosen =
                  hn::Eq(hn::LoadU(dn, number - taps[t].back), hn::Set(dn, static_cast<N>(base + taps[t].number)));
              acc = hn::Add(acc, hn::IfThenElseZero(hn::RebindMask(d, chosen), hn::LoadU(d, gradient - taps[t].back)));
            }
          }
          hn::StoreU(acc, d, sum + phase * places + q);
        }
      }
      // Place u = position + low padding lies in phase u % s.
      Index offset = begin_ * plan_.outputs[0].pooled[0];
      for (std::size_t a = 0; a < last_; ++a) offset += cell[a] * plan_.outputs[0].pooled[a];
      WriteRow(gx_ + offset, sum, places, s, inner.padding.low, inner.in);
      more = next(cell, last_, [&](std::size_t a) { return a == 0 ? end_ - begin_ : axes[a].out; }) != 0;
    }
  }

  static void WriteRow(T* to, const T* sums, Index places, Index s, Index low, Index count) {
    if (s == 1) {
      std::memcpy(to, sums + low, static_cast<std::size_t>(count) * sizeof(T));
      return;
    }
    Index p = 0;
    if (s == 2) {
      const hn::ScalableTag<T> d;
      constexpr Index n = vector_lanes<T>;
      for (; p < count && (p + low) % 2 != 0; ++p) to[p] = sums[places + (p + low) / 2];
      for (; p + 2 * n <= count; p += 2 * n)
        hn::StoreInterleaved2(hn::LoadU(d, sums + (p + low) / 2), hn::LoadU(d, sums + places + (p + low) / 2), d,
                              to + p);
    }
    for (; p < count; ++p) to[p] = sums[(p + low) % s * places + (p + low) / s];
  }

 public:
  static constexpr Index max_taps = 64;
  static constexpr Index max_seen = 64;  // windows along the axes before the last that hold one cell

 private:
  const plan::Plan& plan_;
  std::size_t last_;
  Index begin_, end_;
  std::array<Index, max_rank> strides_{};  // of the array that sums are added in
  Index cells_ = 0, tabled_ = 0;
  plan::Scratch scratch_;
  plan::Scratch::Array<G> asked_{};
  plan::Scratch::Array<Index> table_{}, starts_{};
  const T* gy_ = nullptr;
  T* gx_ = nullptr;
  Index won_ = 0;
};

// dy = the tangents at the winners. inputs[0] is the tangent, outputs[0] what it becomes.
template <class T>
struct Push {
  static Index Tasks(const plan::Plan& plan) { return Pull<T>::Tasks(plan); }
  static void Run(const plan::Plan& plan, Index task) {
    switch (plan.winner_bytes) {
      case 1: return Rows<std::uint8_t>(plan, task);
      case 2: return Rows<std::uint16_t>(plan, task);
      default: return Rows<std::uint32_t>(plan, task);
    }
  }

 private:
  template <class U>
  static void Rows(const plan::Plan& plan, Index task) {
    const auto last = static_cast<std::size_t>(plan.rank - 1);
    const auto& axes = plan.axes;
    const Index begin = task % axes[0].blocks * axes[0].outputs_per_block;
    const Index end = std::min(axes[0].out, begin + axes[0].outputs_per_block);
    const Index first = task / axes[0].blocks * plan.vectors;
    const Index stop = std::min(plan.lanes.count, first + plan.vectors);
    const Index tabled = TabledNumbers(plan);
    plan::Scratch scratch;
    const auto table = scratch.Ask<Index>(tabled);
    scratch.Take();
    const auto place_of = [&](Index number) {
      Index along = 0;
      return PlaceOf(plan, plan.inputs[0].pooled, number, along);
    };
    for (Index i = 0; i < tabled; ++i) scratch.At(table)[i] = place_of(i);
    const Index none = plan.winner_none ? static_cast<Index>(static_cast<U>(-1)) : -1;
    for (Index lane = first; lane < stop; ++lane) {
      const LanePlaces places = PlacesOf(plan, lane);
      const T* from = static_cast<const T*>(plan.inputs[0].data) + places.in;
      T* to = static_cast<T*>(plan.outputs[0].data) + places.out;
      const U* winners = reinterpret_cast<const U*>(plan.winners) + places.won;
      std::array<Index, max_rank> at{};
      at[0] = begin;
      const Axis& inner = axes[last].source;
      for (bool more = true; more;) {
        Index base = 0, out = 0, row = 0;
        for (std::size_t a = 0; a < last; ++a) {
          base += axes[a].source.position(at[a], 0) * plan.inputs[0].pooled[a];
          out += at[a] * plan.outputs[0].pooled[a];
          row += at[a] * plan.winner.pooled[a];
        }
        for (Index o = last == 0 ? begin : 0; o < (last == 0 ? end : inner.out); ++o) {
          const auto number = static_cast<Index>(winners[row + o * plan.winner.pooled[last]]);
          T& result = to[out + o * plan.outputs[0].pooled[last]];
          if (number == none) {
            result = T(Index{0});
            continue;
          }
          const Index place = tabled > 0 ? scratch.At(table)[number] : place_of(number);
          result = from[base + inner.position(o, 0) * plan.inputs[0].pooled[last] + place];
        }
        more = false;
        for (std::size_t a = last; a-- > 0;) {
          if (++at[a] < (a == 0 ? end : axes[a].out)) {
            more = true;
            break;
          }
          at[a] = a == 0 ? begin : 0;
        }
      }
    }
  }
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
