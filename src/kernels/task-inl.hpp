// What a task of a kernel works on: a block of outputs for a group of lanes.
#if defined(CENOTE_KERNELS_TASK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_TASK_INL_HPP
#undef CENOTE_KERNELS_TASK_INL_HPP
#else
#define CENOTE_KERNELS_TASK_INL_HPP
#endif

#include "kernels/passes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

inline constexpr Index max_lanes = 256;  // side by side in one task

// The outputs of a task along each axis, and the positions they need.
struct Block {
  std::array<Index, max_rank> begin, end, origin, limit;
};

inline Index BlocksOf(const plan::Plan& plan) {
  Index blocks = 1;
  for (int a = 0; a < plan.rank; ++a) blocks *= plan.axes[static_cast<std::size_t>(a)].blocks;
  return blocks;
}

inline Block BlockOf(const plan::Plan& plan, Index number) {
  Block block{};
  for (int a = plan.rank - 1; a >= 0; --a) {
    const auto i = static_cast<std::size_t>(a);
    const PooledAxis& axis = plan.axes[i];
    block.begin[i] = number % axis.blocks * axis.outputs_per_block;
    block.end[i] = HWY_MIN(axis.out, block.begin[i] + axis.outputs_per_block);
    number /= axis.blocks;
    const plan::Span needed = plan::positions_of(axis, block.begin[i], block.end[i]);
    block.origin[i] = needed.begin;
    block.limit[i] = needed.end;
  }
  return block;
}

// What a step along each axis adds to the number of a tap.
inline std::array<Index, max_rank> MultipliersOf(const plan::Plan& plan) {
  std::array<Index, max_rank> multipliers{};
  Index multiplier = 1;
  for (auto a = static_cast<std::size_t>(plan.rank); a-- > 0;) {
    multipliers[a] = multiplier;
    multiplier *= plan.axes[a].kernel;
  }
  return multipliers;
}

// The lanes of a task: which they are, and where each operand has them.
struct Lanes {
  Index count = 1;  // real ones
  Index own = 0;    // those from here on are this group's to write; the ones before belong to the group before
  Index width = 1;  // of the tile: whole vectors; the surplus repeats the last lane
  std::array<Index, max_rank> first{};

  // Groups of `width` lanes; each holds lanes of one index of the outer lane axes if an operand reads whole vectors of
  // them. In rows mode a group is one lane.
  static Index Groups(const plan::Plan& plan, Index width) {
    if (plan.rows) return plan.lanes.count;
    if (!plan::reads_vectors(plan)) return (plan.lanes.count + width - 1) / width;
    const Index last = plan.lanes.sizes[static_cast<std::size_t>(plan.lanes.rank - 1)];
    return plan.lanes.count / last * ((last + width - 1) / width);
  }
  static Lanes OfGroup(const plan::Plan& plan, Index tile_width, Index group) {
    const plan::LaneBox& box = plan.lanes;
    Lanes lanes;
    Index flat = group;
    if (!plan.rows) {
      lanes.width = tile_width;
      if (plan::reads_vectors(plan)) {
        const Index last = box.sizes[static_cast<std::size_t>(box.rank - 1)];
        const Index chunks = (last + tile_width - 1) / tile_width;
        const Index own = group % chunks * tile_width;
        const Index start = HWY_MAX(Index{0}, HWY_MIN(own, last - tile_width));  // the last chunk reads part of another
        lanes.count = HWY_MIN(tile_width, last);
        lanes.own = own - start;
        flat = group / chunks * last + start;
      } else {
        flat = group * tile_width;
        lanes.count = HWY_MIN(tile_width, box.count - flat);
      }
    }
    for (int a = box.rank - 1; a >= 0; --a) {
      lanes.first[static_cast<std::size_t>(a)] = flat % box.sizes[static_cast<std::size_t>(a)];
      flat /= box.sizes[static_cast<std::size_t>(a)];
    }
    return lanes;
  }

  // The offset of the first lane in an operand.
  [[nodiscard]] Index First(const plan::LaneBox& box, const plan::Operand& operand) const {
    Index offset = 0;
    for (int a = 0; a < box.rank; ++a)
      offset += first[static_cast<std::size_t>(a)] * operand.lanes[static_cast<std::size_t>(a)];
    return offset;
  }
  // The offset of each lane.
  void Offsets(const plan::LaneBox& box, const plan::Operand& operand, Index* offsets) const {
    std::array<Index, max_rank> at = first;
    Index offset = First(box, operand);
    for (Index lane = 0; lane < width; ++lane) {
      offsets[lane] = offset;
      if (lane + 1 >= count) continue;
      for (int a = box.rank - 1; a >= 0; --a) {
        const auto i = static_cast<std::size_t>(a);
        offset += operand.lanes[i];
        if (++at[i] < box.sizes[i]) break;
        offset -= box.sizes[i] * operand.lanes[i];
        at[i] = 0;
      }
    }
  }
};

// Tasks of `plan.together` lanes for one block each, where every lane is a row or plane of its own (`plan.rows`).
inline Index TasksOfLanes(const plan::Plan& plan) {
  return (plan.lanes.count + plan.together - 1) / plan.together * BlocksOf(plan);
}
template <class F>
void EachLane(const plan::Plan& plan, Index task, F&& use) {
  const Index first = task / BlocksOf(plan) * plan.together;
  const Index stop = HWY_MIN(plan.lanes.count, first + plan.together);
  for (Index lane = first; lane < stop; ++lane) use(Lanes::OfGroup(plan, 1, lane));
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
