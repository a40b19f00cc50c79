// The derivative of a selection from its winners. Pulling adds gradients in the row-major order of outputs, whatever
// the algorithm: cells gather from the few windows that can have chosen them, in vectors of cells or of lanes or, in
// small planes, by a pattern; where windows are large each output adds to the cell that it chose.
#if defined(CENOTE_KERNELS_PULL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_PULL_INL_HPP
#undef CENOTE_KERNELS_PULL_INL_HPP
#else
#define CENOTE_KERNELS_PULL_INL_HPP
#endif

#include "kernels/gather-inl.hpp"
#include "kernels/patterns-inl.hpp"
#include "kernels/scatter-inl.hpp"
#include "kernels/winners-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// inputs[0] is the gradient of the outputs, outputs[0] that of the input. plan.pattern: vectors of cells of
// small planes gather; plan.rows: vectors of cells of rows do; plan.few_windows: vectors of lanes do.
template <class T>
struct Pull {
  static Index Tasks(const plan::Plan& plan) {
    if constexpr (std::is_floating_point_v<T>)
      if (plan.pattern != nullptr) return Patterned<T, true>::Tasks(plan);
    return PullTask::Count(plan);
  }
  static void Run(const plan::Plan& plan, Index number) {
    if constexpr (std::is_floating_point_v<T>)
      if (plan.pattern != nullptr) return Patterned<T, true>::Run(plan, number, [](const T* gy) { return gy; });
    const PullTask task(plan, number);
    if constexpr (std::is_floating_point_v<T>) {
      if (plan.rows) return RowGather<T>::Run(plan, task);
      if (plan.few_windows) return LaneGather<T>::Run(plan, task);
    }
    switch (plan.winner_bytes) {
      case 1: return Scatter<T, std::uint8_t>(plan, task).Run();
      case 2: return Scatter<T, std::uint16_t>(plan, task).Run();
      default: return Scatter<T, std::uint32_t>(plan, task).Run();
    }
  }
};

// dy = the tangents at the winners. inputs[0] is the tangent, outputs[0] what it becomes.
template <class T>
struct Push {
  static Index Tasks(const plan::Plan& plan) { return PullTask::Count(plan); }
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
    const PullTask range(plan, task);
    const Index begin = range.begin, end = range.end;
    const Index tabled = TabledNumbers(plan, OutputsOfLane(plan) * (range.stop - range.first));
    plan::Scratch scratch;
    const auto table = scratch.Ask<Index>(tabled);
    scratch.Take();
    const Index even = EvenStep(plan, plan.inputs[0].pooled);
    const auto place_of = [&](Index number) {
      if (even != 0) return number * even;
      Index along = 0;
      return PlaceOf(plan, plan.inputs[0].pooled, number, along);
    };
    for (Index i = 0; i < tabled; ++i) scratch.At(table)[i] = place_of(i);
    const Index none = plan.winner_none ? static_cast<Index>(static_cast<U>(-1)) : -1;
    for (Index lane = range.first; lane < range.stop; ++lane) {
      const LanePlaces places = PlacesOf(plan, lane);
      const T* from = static_cast<const T*>(plan.inputs[0].data) + places.in;
      T* to = static_cast<T*>(plan.outputs[0].data) + places.out;
      const U* winners = reinterpret_cast<const U*>(plan.winners) + places.won;
      std::array<Index, max_rank> at{};
      const Axis& inner = axes[last].source;
      do {
        Index base = 0, out = 0, row = 0;
        for (std::size_t a = 0; a < last; ++a) {
          const Index o = at[a] + (a == 0 ? begin : 0);
          base += axes[a].source.position(o, 0) * plan.inputs[0].pooled[a];
          out += o * plan.outputs[0].pooled[a];
          row += o * plan.winner.pooled[a];
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
      } while (Next(at, last, [&](std::size_t a) { return a == 0 ? end - begin : axes[a].out; }));
    }
  }
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
