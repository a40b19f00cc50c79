// Geometry and memory layout turned into loops: which axes are lanes, which are pooled, which algorithm reduces each of
// them, and into which blocks the work is cut. No validation and no arithmetic on values lives here.
//
// A plan sees every problem as "lanes x pooled axes". Lanes are independent problems (batch, channels) that stand side
// by side in vectors; a lane's order of operations depends on the geometry alone, so that neither the instruction set
// nor the threads nor the layout can change a result.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cenote/ops.hpp"

namespace cenote::plan {

inline constexpr Index max_extent = 64;  // of windows that stream
// Of windows whose cells gather: taps, so that a byte has numbers to spare; taps of what gathers along a row; windows
// that hold one cell of what gathers side by side.
inline constexpr Index max_compared_taps = 254, max_row_taps = 27, max_side_windows = 36;

// Sums that were added in f32 are divided in f32 by integers up to here, all of which it has.
inline constexpr Index largest_f32_divisor = Index{1} << 24;

// The taps of one output along one axis that lie in the input.
struct Taps {
  Index start;   // position of the first one
  Index count;   // how many
  Index first;   // the number of the first one inside its window: what winners count in
  Index padded;  // taps in the padded input: what averages count
};

// One pooled axis of a reduction.
struct PooledAxis {
  Axis source{};  // of the geometry
  Index in = 1, out = 1;
  Index step = 1;                    // distance of neighbouring taps
  Index kernel = 1;                  // taps of the largest window
  Index block = 0;                   // scan in blocks of so many taps; 0 means tap by tap
  const Taps* taps = nullptr;        // of every output
  const double* weights = nullptr;   // of every position, where a sum weighs its taps; or null
  Index run_begin = 0, run_end = 0;  // outputs whose windows are whole, and equally far apart
  Index stride = 1;                  // so far
  Index low = 0;                     // tap 0 of output 0 lies so far before the input
  bool slides = false;               // window o is `kernel` taps from o * stride - low on, as far as they exist
  Index spread = 0;                  // or it is the adjoint of windows so far apart, of source.kernel neighbours each
  bool whole = false;                // every output has the one tap there is; `taps` need not be there
  Index extent = 1;                  // positions from the first tap of a window to its last
  Index outputs_per_block = 1, blocks = 1;
};

// A range of positions or outputs.
struct Span {
  Index begin = 0, end = 0;
  [[nodiscard]] Index size() const { return end - begin; }
};

// The positions that outputs begin .. end-1 see; empty if no window of theirs has a tap. Where windows slide or have
// no holes, later ones neither begin nor end earlier, except those that lack taps at an end of the axis.
inline Span positions_of(const PooledAxis& axis, Index begin, Index end) {
  Span span{axis.in, 0};
  const auto see = [&](Index o) {
    const Taps& window = axis.taps[o];
    if (window.count > 0) {
      span.begin = std::min(span.begin, window.start);
      span.end = std::max(span.end, window.start + (window.count - 1) * axis.step + 1);
    }
    return window.count == axis.kernel && (axis.slides || axis.step == 1);
  };
  for (Index o = begin; o < end; ++o)
    if (see(o)) break;
  for (Index o = end; o-- > begin;)
    if (see(o)) break;
  return span.begin < span.end ? span : Span{};
}

// Planes of at most so many cells are a task's, whole, and have so many running sums.
inline constexpr Index most_whole_cells = 4096, running_totals = 8;

// Pooled axes that do nothing count as lanes.
inline bool reduces(const Axis& axis) {
  return axis.pooled() && !(axis.kernel == 1 && axis.stride == 1 && axis.in == axis.out && axis.padding.low == 0 &&
                            axis.padding.high == 0);
}

// Every output of the axis has the same single tap.
inline bool is_whole(const PooledAxis& axis) {
  if (axis.in != 1) return false;
  for (Index o = 0; o < axis.out; ++o)
    if (axis.taps[o].count != 1) return false;
  return true;
}

// How neighbouring cells and lanes of an operand lie in memory.
enum class Access : std::uint8_t {
  lanes,  // neighbouring lanes are neighbours in memory (channels last)
  cells,  // neighbouring cells of the last pooled axis are (channels first)
  any,
};

// One array of a call. Strides are in elements.
struct Operand {
  void* data = nullptr;
  std::array<Index, max_rank> pooled{};
  std::array<Index, max_rank> lanes{};
  Access access = Access::any;
};

// The lanes: a box of independent problems, the last axis fastest.
struct LaneBox {
  int rank = 0;
  std::array<Index, max_rank> sizes{};
  Index count = 1;
};

// What the arithmetic needs to know beside the geometry.
struct Formula {
  Divisor divisor{};
  bool mean = false;   // divide at the end
  double scale = 1;    // or multiply by this
  double beta = 0;     // of smooth max
  double p = 0;        // of Lp
  bool zeros = false;  // padding taps count as zeros
};

// What the cells of a group of dense planes hear from: vector v of them adds terms ends[v-1] .. ends[v]-1. A term reads
// a vector of outputs from a base on; each cell takes one of its lanes if the winner there has the cell's number.
struct Pattern {
  Index planes = 0, cells = 0, outputs = 0;  // of a group
  Index lanes_of_group = 0;
  std::vector<std::int32_t> ends;   // of every vector of cells; the last one may begin inside the one before
  std::vector<std::int32_t> bases;  // of every term; every vector has one at least
  std::vector<std::uint8_t> lanes, numbers;
};

// A reduction of up to two inputs to up to two outputs over windows.
struct Plan {
  int rank = 0;  // pooled axes
  std::array<PooledAxis, max_rank> axes{};
  LaneBox lanes{};
  std::array<Operand, 2> inputs{};
  std::array<Operand, 2> outputs{};
  std::uint8_t* winners = nullptr;  // of every output, row-major over `winner_strides`
  Operand winner{};                 // where its elements lie
  int winner_bytes = 1;
  bool winner_none = false;
  bool some_empty = false;   // some window has no tap
  Index vectors = 1;         // side by side in a tile
  bool few_windows = false;  // hold any one cell
  bool rows = false;         // lanes are the columns of the last pooled axis, not the lane box
  bool streams = false;      // rows are reduced where they lie
  bool whole = false;        // one window holds all of a plane, whose cells are neighbours
  bool folds = false;        // the last axis is the cells of blocks, of which windows along the other one consist
  bool doubles = false;      // windows are made of runs that overlap
  bool runs = false;         // sums of windows are made of runs that do not
  bool planes = false;       // one window holds all of a plane, the cells of whose rows are neighbours
  bool totals = false;       // sums of planes of which one window holds everything
  Index together = 1;        // lanes of a task of any of these, or groups of planes of a pattern
  const Pattern* pattern = nullptr;
  Formula formula{};
  std::atomic<bool>* odd = nullptr;     // set by a kernel that met a result it is not sure of
  std::atomic<bool>* wide = nullptr;    // set by a kernel that met a term beyond plain doubles (smooth max, Lp)
  const PooledAxis* adjoint = nullptr;  // of every axis, where a kernel goes both ways
};

// Some operand is read or written in whole vectors of lanes.
inline bool reads_vectors(const Plan& plan) {
  for (const Operand* operand : {&plan.inputs[0], &plan.inputs[1], &plan.outputs[0], &plan.outputs[1]})
    if (operand->data != nullptr && operand->access == Access::lanes) return true;
  return false;
}

}  // namespace cenote::plan
