// What the derivatives of selections know about lanes and winners: where each lane begins, and what the number of a
// winner says about its place.
#if defined(CENOTE_KERNELS_WINNERS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_WINNERS_INL_HPP
#undef CENOTE_KERNELS_WINNERS_INL_HPP
#else
#define CENOTE_KERNELS_WINNERS_INL_HPP
#endif

#include <algorithm>
#include <array>

#include "kernels/highway.hpp"
#include "plan/plan.hpp"

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
  for (auto a = static_cast<std::size_t>(plan.rank - 1); a > 0; --a) {
    const Axis& axis = plan.axes[a].source;
    place += number % axis.kernel * axis.dilation * strides[a];
    number /= axis.kernel;
  }
  first = number * plan.axes[0].source.dilation;
  return place + first * strides[0];
}

// How far the cells of a window are apart whose numbers follow each other, if that is the same for all; or 0.
inline Index EvenStep(const plan::Plan& plan, const std::array<Index, max_rank>& strides) {
  auto a = static_cast<std::size_t>(plan.rank - 1);
  const Index step = plan.axes[a].source.dilation * strides[a];
  for (Index row = step * plan.axes[a].source.kernel; a > 0; row *= plan.axes[a].source.kernel) {
    --a;
    if (plan.axes[a].source.dilation * strides[a] != row) return 0;
  }
  return step;
}

// The next index of a box in row-major order; false, and the first one, after the last.
template <class F>
HWY_INLINE bool Next(std::array<Index, max_rank>& at, std::size_t axes, F&& limit) {
  for (std::size_t a = axes; a-- > 0;) {
    if (++at[a] < limit(a)) return true;
    at[a] = 0;
  }
  return false;
}

// Numbers of a window's taps, if a table of their places is worth it; 0 if it is not.
inline Index TabledNumbers(const plan::Plan& plan, Index outputs) {
  Index box = 1;
  for (int a = 0; a < plan.rank; ++a) box *= plan.axes[static_cast<std::size_t>(a)].source.kernel;
  return box <= 4096 && 8 * box <= outputs ? box : 0;
}
inline Index OutputsOfLane(const plan::Plan& plan) {
  Index outputs = 1;
  for (int a = 0; a < plan.rank; ++a) outputs *= plan.axes[static_cast<std::size_t>(a)].source.out;
  return outputs;
}

// What a task works on: some lanes, and of their planes the positions begin .. end-1 of the first axis. Lanes that are
// neighbours in memory are not mixed with others.
struct PullTask {
  Index first, stop;
  Index begin, end;

  static Index Groups(const plan::Plan& plan) { return (Width(plan) + plan.vectors - 1) / plan.vectors; }
  static Index Count(const plan::Plan& plan) {
    return plan.lanes.count / std::max(Index{1}, Width(plan)) * Groups(plan) * plan.axes[0].blocks;
  }
  PullTask(const plan::Plan& plan, Index task) {
    const plan::PooledAxis& axis = plan.axes[0];
    begin = task % axis.blocks * axis.outputs_per_block;
    end = std::min(axis.out, begin + axis.outputs_per_block);
    task /= axis.blocks;
    const Index groups = Groups(plan);
    const Index width = Width(plan);
    const Index from = task % groups * plan.vectors;
    first = task / groups * width + from;
    stop = first + std::min(plan.vectors, width - from);
  }

 private:
  static Index Width(const plan::Plan& plan) {
    if (plan.outputs[0].access != plan::Access::lanes) return plan.lanes.count;
    return plan.lanes.sizes[static_cast<std::size_t>(plan.lanes.rank - 1)];
  }
};

// Calls use(places, at, count) for lanes first .. stop-1 in runs along the innermost axis of lanes: `count` of them,
// from `at` on.
template <class F>
void EachRunOfLanes(const plan::Plan& plan, Index first, Index stop, F&& use) {
  const Index inner = plan.lanes.sizes[static_cast<std::size_t>(plan.lanes.rank - 1)];
  for (Index lane = first; lane < stop;) {
    const Index count = std::min(stop - lane, inner - lane % inner);
    use(PlacesOf(plan, lane), lane % inner, count);
    lane += count;
  }
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
