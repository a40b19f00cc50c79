// Builds plans: from a checked geometry and the strides of the arrays to lanes, pooled axes, algorithms and blocks.
#pragma once

#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "plan/plan.hpp"
#include "plan/tables.hpp"

namespace cenote::plan {

// The windows of an axis, one per output: of a reduction, or of its adjoint, where outputs and inputs change places.
enum class Direction : std::uint8_t { forward, adjoint };

// Above so many merges per position or output, blocks are scanned instead: a scan costs three or four.
inline constexpr Index direct_limit = 5;

inline void fill_forward(const Axis& axis, PooledAxis& to, Taps* taps) {
  to.in = axis.in;
  to.out = axis.out;
  to.step = axis.dilation;
  to.kernel = axis.kernel;
  to.stride = axis.stride;
  to.low = axis.padding.low;
  to.slides = axis.kind == Axis::Kind::sliding;
  const auto fill = [&](Index begin, Index end) {
    for (Index o = begin; o < end; ++o) {
      const AxisWindow window = axis.window(o);
      taps[o] = {window.start, window.real, window.first, window.padded};
    }
  };
  if (to.slides) {  // most windows are whole, one stride apart
    const Index last = axis.in - 1 - (axis.kernel - 1) * axis.dilation + axis.padding.low;  // where they may begin
    to.run_begin = std::min(axis.out, detail::ceil_div(axis.padding.low, axis.stride));
    to.run_end = last < 0 ? to.run_begin : std::clamp(last / axis.stride + 1, to.run_begin, axis.out);
  }
  fill(0, to.run_begin);
  for (Index o = to.run_begin; o < to.run_end; ++o)
    taps[o] = {o * axis.stride - axis.padding.low, axis.kernel, 0, axis.kernel};
  fill(to.run_end, axis.out);
  to.taps = taps;
}

// What an adjoint of sliding windows is: windows that slide as well, or rows that are spread.
inline void set_adjoint_kind(const Axis& axis, PooledAxis& to) {
  if (axis.stride == 1 && to.kernel == axis.kernel) {
    to.low = (axis.kernel - 1) * axis.dilation - axis.padding.low;
    to.slides = true;
  } else if (axis.dilation == 1 && axis.stride > 1 && axis.stride <= 4) {
    to.low = axis.padding.low;
    to.spread = axis.stride;
  }
}

// Which outputs see position i: those o with i = o * stride + w * dilation - low for a tap w.
inline void fill_adjoint(const Axis& axis, PooledAxis& to, Taps* taps) {
  to.in = axis.out;
  to.out = axis.in;
  to.stride = 1;
  to.step = 1;
  to.kernel = 1;
  if (axis.kind == Axis::Kind::adaptive) {  // the adjoint of n parts of m is m parts of n
    for (Index i = 0; i < axis.in; ++i) {
      const Index start = adaptive_start(i, axis.out, axis.in);
      const Index count = adaptive_end(i, axis.out, axis.in) - start;
      taps[i] = {start, count, 0, count};
      to.kernel = std::max(to.kernel, count);
    }
  } else if (axis.dilation == 1) {
    Index first = 0, end = 0;  // outputs that see the position
    for (Index i = 0; i < axis.in; ++i) {
      const Index reach = i + axis.padding.low;
      while (end < axis.out && end * axis.stride <= reach) ++end;
      while (first < end && first * axis.stride + axis.kernel <= reach) ++first;
      taps[i] = {end > first ? first : 0, end - first, 0, 0};
      to.kernel = std::max(to.kernel, taps[i].count);
    }
    set_adjoint_kind(axis, to);
  } else {
    const Index common = std::gcd(axis.stride, axis.dilation);
    const Index step = axis.dilation / common;  // between outputs that see one position
    to.step = step;
    // o * stride = i + low (mod dilation) has a solution o if `common` divides i + low, and then one modulo `step`.
    for (Index i = 0; i < axis.in; ++i) {
      const Index reach = i + axis.padding.low;
      taps[i] = {0, 0, 0, 0};
      if (reach % common != 0) continue;
      const Index high = std::min(axis.out - 1, reach / axis.stride);
      const Index span = (axis.kernel - 1) * axis.dilation;
      const Index low = reach <= span ? 0 : detail::ceil_div(reach - span, axis.stride);
      Index start = low;
      while (start <= high && (reach - start * axis.stride) % axis.dilation != 0) ++start;  // fewer than `step` tries
      if (start > high) continue;
      taps[i] = {start, (high - start) / step + 1, 0, 0};
      to.kernel = std::max(to.kernel, taps[i].count);
    }
    set_adjoint_kind(axis, to);
  }
  to.taps = taps;
}

// The longest run of outputs with whole windows at equal distances, unless it is known.
inline void find_run(PooledAxis& axis) {
  if (axis.run_end > axis.run_begin) return;
  axis.run_begin = axis.run_end = 0;
  Index begin = 0;
  for (Index o = 0; o < axis.out; ++o) {
    const bool whole = axis.taps[o].count == axis.kernel;
    const bool follows = o > begin && axis.taps[o].start - axis.taps[o - 1].start == axis.stride;
    if (!whole) {
      begin = o + 1;
    } else if (o > begin && !follows) {
      begin = o;
    }
    if (whole && o + 1 - begin > axis.run_end - axis.run_begin) {
      axis.run_begin = begin;
      axis.run_end = o + 1;
    }
  }
}

// Calls use(number of taps, how many outputs have so many) for the outputs of an axis, those of its run at once.
template <class F>
void each_count(const PooledAxis& axis, F&& use) {
  for (Index o = 0; o < axis.run_begin; ++o) use(axis.taps[o].count, Index{1});
  if (axis.run_begin < axis.run_end) use(axis.kernel, axis.run_end - axis.run_begin);
  for (Index o = axis.run_end; o < axis.out; ++o) use(axis.taps[o].count, Index{1});
}

// Scans need windows of one length, or of two neighbouring ones (the adjoint of a stride), except where the axis ends.
inline void choose_algorithm(PooledAxis& axis) {
  if (axis.in == 0 || axis.out == 0) return;
  Index merges = 0;
  each_count(axis, [&](Index taps, Index outputs) { merges += std::max(Index{0}, taps - 1) * outputs; });
  if (merges <= direct_limit * std::max(axis.in, axis.out)) return;
  const Index length_limit = axis.in;
  Index shortest = axis.kernel;
  for (Index o = 0; o < axis.out; ++o) {
    const Taps& window = axis.taps[o];
    if (window.count == 0) continue;
    const bool at_start = window.start < axis.step;
    const bool at_end = window.start + window.count * axis.step >= length_limit;
    if (!at_start && !at_end) shortest = std::min(shortest, window.count);
  }
  if (axis.kernel - shortest > 1) return;
  axis.block = shortest;
}

// Windows that are whole and begin where blocks of `size` cells do, and so consist of such blocks: an axis of blocks
// and one of their cells take the place of theirs. Returns 1 where that is not so, or not worth it.
inline Index block_size(const Axis& axis) {
  if (axis.kind != Axis::Kind::sliding || axis.dilation != 1 || axis.kernel <= 16 || axis.out <= 1) return 1;
  if (axis.padding.low != 0 || (axis.out - 1) * axis.stride + axis.kernel > axis.in) return 1;
  const Index size = std::gcd(axis.kernel, axis.stride);
  return size >= 16 && 4 * (axis.kernel / size) <= axis.stride ? size : 1;
}
inline void fold(const Axis& axis, Index size, PooledAxis& rows, PooledAxis& blocks, Tables& tables) {
  Axis outer = axis;
  outer.kernel /= size;
  outer.stride /= size;
  outer.in = (outer.out - 1) * outer.stride + outer.kernel;
  Axis inner = axis;
  inner.in = inner.kernel = inner.stride = size;
  inner.out = 1;
  for (const auto& [from, to] : {std::pair{&outer, &rows}, std::pair{&inner, &blocks}}) {
    to->source = *from;
    fill_forward(*from, *to, tables.taps(from->out));
  }
}

// An array of a call, as the plan wants to know it: strides per axis of the geometry's input, 0 on dropped axes.
struct Array {
  const void* data = nullptr;
  Dims strides{};
  bool output_shaped = false;  // it has the sizes of the plan's outputs, not of its inputs
};

struct Request {
  const Geometry* geometry = nullptr;
  Direction direction = Direction::forward;
  std::array<Array, 2> inputs{}, outputs{};
  Array winner{};
  int winner_bytes = 1;
  Index element = 4;      // bytes of one
  Index state = 4;        // bytes that a lane carries between passes
  Index vector = 16;      // bytes of a vector
  bool lifts = false;     // values are transformed before they are reduced
  bool early = true;      // and stored in between
  bool common = false;    // kernels have loops of their own for the most usual windows
  bool overlaps = false;  // taps may be merged twice
  bool runs = false;      // sums have a way of their own for large windows
  bool planes = false;    // there is a way for windows that hold whole planes
  bool totals = false;    // there is one for their sums
};

inline constexpr Index tile_budget = 768 * 1024;  // bytes: well inside the second-level cache

// Positions that `outputs` neighbouring outputs need.
inline Index reach(const PooledAxis& axis, Index outputs) {
  return std::min(axis.in, (outputs - 1) * axis.stride + (axis.kernel - 1) * axis.step + 1);
}

class Builder {
 public:
  Builder(const Request& request, Tables& tables, Plan& plan) : request_(request), tables_(tables), plan_(plan) {}

  void build() {
    axes();
    lanes();
    plan_.planes = planes();
    if (plan_.planes) return;
    plan_.totals = totals();
    if (plan_.totals) return;
    plan_.whole = whole();
    if (plan_.whole) return;
    plan_.folds = folds();
    if (plan_.folds) return;
    plan_.doubles = doubles();
    if (plan_.doubles) return;
    plan_.runs = runs();
    if (plan_.runs) return;
    mode();
    blocks();
  }

 private:
  static std::size_t at(int a) { return static_cast<std::size_t>(a); }

  void add_strides(Operand& to, const Array& array, int axis, std::size_t pooled) {
    if (array.strides.rank > 0) to.pooled[pooled] = array.strides[axis];
  }

  void axes() {
    const Geometry& g = *request_.geometry;
    int reduced = 0;
    for (int a = 0; a < g.rank(); ++a) reduced += reduces(g.axis(a)) ? 1 : 0;
    for (int a = 0; a < g.rank(); ++a) {
      if (!reduces(g.axis(a))) continue;
      const std::size_t i = at(plan_.rank++);
      PooledAxis& axis = plan_.axes[i];
      axis.source = g.axis(a);
      const bool forward = request_.direction == Direction::forward;
      const Index size = forward && reduced == 1 && !request_.lifts ? block_size(g.axis(a)) : 1;
      each_operand([&](Operand& operand, const Array& array) { add_strides(operand, array, a, i); });
      folded_ = size > 1;
      if (folded_) {
        fold(g.axis(a), size, axis, plan_.axes[at(plan_.rank++)], tables_);
        each_operand([&](Operand& operand, const Array& array) {
          operand.pooled[i + 1] = operand.pooled[i];
          if (!array.output_shaped) operand.pooled[i] *= size;
        });
      } else if (forward) {
        fill_forward(g.axis(a), axis, tables_.taps(g.axis(a).out));
      } else {
        fill_adjoint(g.axis(a), axis, tables_.taps(g.axis(a).in));
      }
    }
    for (PooledAxis& axis : std::span(plan_.axes).first(at(plan_.rank))) {
      find_run(axis);
      each_count(axis, [&](Index taps, Index) {
        axis.extent = std::max(axis.extent, (taps - 1) * axis.step + 1);
        plan_.some_empty = plan_.some_empty || taps == 0;
      });
      choose_algorithm(axis);
    }
    if (plan_.rank == 0) {  // nothing is pooled: one window of one tap
      plan_.rank = 1;
      Taps* taps = tables_.taps(1);
      taps[0] = {0, 1, 0, 1};
      plan_.axes[0].taps = taps;
      plan_.axes[0].run_end = 1;
      plan_.axes[0].source = {Axis::Kind::sliding, 1, 1, 1, 1, 1, {}};
    }
    // A single cell has no neighbour: any stride is right, and 1 is the most welcome.
    const PooledAxis& last = plan_.axes[at(plan_.rank - 1)];
    each_operand([&](Operand& operand, const Array& array) {
      if ((array.output_shaped ? last.out : last.in) == 1) operand.pooled[at(plan_.rank - 1)] = 1;
    });
  }

  template <class F>
  void each_operand(F&& use) {
    for (std::size_t i = 0; i < 2; ++i) {
      use(plan_.inputs[i], request_.inputs[i]);
      use(plan_.outputs[i], request_.outputs[i]);
    }
    use(plan_.winner, request_.winner);
  }

  void lanes() {
    const Geometry& g = *request_.geometry;
    std::array<int, max_rank> order{};
    int count = 0;
    for (int a = 0; a < g.rank(); ++a) {
      if (reduces(g.axis(a))) continue;
      plan_.lanes.count *= g.axis(a).in;
      if (g.axis(a).in != 1) order[at(count++)] = a;
    }
    // Large strides first, so that neighbouring lanes are as near in memory as they can be.
    const auto far = [&](int a) {
      const Index stride = request_.inputs[0].strides[a];
      return stride < 0 ? -stride : stride;
    };
    for (int i = 1; i < count; ++i)
      for (int j = i; j > 0 && far(order[at(j)]) > far(order[at(j - 1)]); --j)
        std::swap(order[at(j)], order[at(j - 1)]);
    LaneBox& box = plan_.lanes;
    for (int i = 0; i < count; ++i) {
      const int a = order[at(i)];
      const Index size = g.axis(a).in;
      bool merges = box.rank > 0;
      each_operand([&](Operand& operand, const Array& array) {
        if (array.strides.rank > 0 && merges) merges = operand.lanes[at(box.rank - 1)] == array.strides[a] * size;
      });
      const std::size_t to = at(merges ? box.rank - 1 : box.rank++);
      box.sizes[to] = merges ? box.sizes[to] * size : size;
      each_operand([&](Operand& operand, const Array& array) {
        if (array.strides.rank > 0) operand.lanes[to] = array.strides[a];
      });
    }
    if (box.rank == 0) {
      box.rank = 1;
      box.sizes[0] = 1;
    }
    const Index vector = request_.vector / request_.element;
    each_operand([&](Operand& operand, const Array& array) {
      operand.data = const_cast<void*>(array.data);
      const std::size_t last = at(box.rank - 1);
      if (operand.lanes[last] == 1 && box.sizes[last] >= vector)
        operand.access = Access::lanes;
      else if (operand.pooled[at(plan_.rank - 1)] == 1)
        operand.access = Access::cells;
      else
        operand.access = Access::any;
    });
  }

  // The cells of a plane of which one window holds everything; 0 if windows do not, or if those are more than `most`:
  // large planes are cut into blocks instead.
  [[nodiscard]] Index whole_cells(Index most = most_whole_cells) const {
    Index cells = 1;
    for (int a = 0; a < plan_.rank; ++a) {
      const PooledAxis& axis = plan_.axes[at(a)];
      if (axis.out != 1 || axis.step != 1 || axis.taps[0].count != axis.in) return 0;
      cells *= axis.in;
    }
    return cells <= most ? cells : 0;
  }

  // One window holds all of a plane, and the cells of its rows are neighbours.
  [[nodiscard]] bool planes() {
    if (!request_.planes || request_.direction != Direction::forward || request_.winner.data != nullptr) return false;
    const bool many = plan_.lanes.count >= 16;  // planes to share out
    const Index cells = whole_cells(many ? std::numeric_limits<Index>::max() : most_whole_cells);
    if (cells <= 1 || plan_.inputs[0].pooled[at(plan_.rank - 1)] != 1) return false;
    plan_.together = std::max(Index{1}, 32768 / cells);
    return true;
  }

  // One window holds all of a plane: sums then have an order of their own, whatever the layout.
  [[nodiscard]] bool totals() {
    if (!request_.totals || request_.direction != Direction::forward) return false;
    const Index cells = whole_cells();
    if (cells <= 1 || plan_.lanes.count == 0) return false;
    plan_.together = detail::ceil_div(std::max(Index{1}, 32768 / cells), 64) * 64;
    const Index inner = plan_.lanes.sizes[at(plan_.lanes.rank - 1)];
    if (inner < plan_.together) plan_.together = detail::ceil_div(plan_.together, inner) * inner;
    return true;
  }

  // One window holds all of a plane, planes are whole pieces of memory, and their results are neighbours.
  [[nodiscard]] bool whole() {
    const Index vector = request_.vector / request_.element;
    if (request_.lifts || request_.inputs[1].data != nullptr || request_.outputs[1].data != nullptr) return false;
    if (plan_.lanes.rank != 1 || plan_.lanes.count < vector || request_.direction != Direction::forward) return false;
    const Index cells = whole_cells();
    if (cells * request_.element < 16) return false;
    Index behind = 1;
    for (int a = plan_.rank - 1; a >= 0; --a) {
      const PooledAxis& axis = plan_.axes[at(a)];
      if (plan_.inputs[0].pooled[at(a)] != behind && axis.in != 1) return false;
      behind *= axis.in;
    }
    if (request_.outputs[0].data != nullptr && plan_.outputs[0].lanes[0] != 1) return false;
    if (request_.winner.data != nullptr && (plan_.winner.lanes[0] != 1 || request_.winner_bytes != 1)) return false;
    plan_.together = detail::ceil_div(std::max(Index{1}, 32768 / cells), vector) * vector;
    return true;
  }

  // The axis is split into blocks whose cells are neighbours, and so are the results.
  [[nodiscard]] bool folds() {
    const Index vector = request_.vector / request_.element;
    PooledAxis& axis = plan_.axes[0];
    if (!folded_ || axis.in < vector) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      if (request_.inputs[i].data != nullptr && plan_.inputs[i].pooled[1] != 1) return false;
      if (request_.outputs[i].data != nullptr && plan_.outputs[i].pooled[0] != 1) return false;
    }
    if (request_.winner.data != nullptr &&
        (plan_.winner.pooled[0] != 1 || request_.winner_bytes > std::min(Index{2}, request_.element)))
      return false;
    lane_by_lane([&] {
      while (reach(axis, axis.outputs_per_block) > 8192 && split(4)) {}
    });
    return true;
  }

  // Rows in place, of windows one cell apart and not too small.
  [[nodiscard]] bool doubles() {
    const Index vector = request_.vector / request_.element;
    const PooledAxis& last = plan_.axes[at(plan_.rank - 1)];
    if (!request_.overlaps || plan_.rank > 2 || plan_.some_empty || request_.direction != Direction::forward)
      return false;
    if (!last.slides || last.step != 1 || last.stride != 1 || last.kernel < 4 || last.out < vector) return false;
    if (plan_.rank == 2 && (!plan_.axes[0].slides || plan_.axes[0].step != 1)) return false;
    if (plan_.inputs[0].pooled[at(plan_.rank - 1)] != 1 || plan_.outputs[0].pooled[at(plan_.rank - 1)] != 1)
      return false;
    // Rows of a few vectors are mostly margin where windows are as long, unless columns may come first.
    const bool quick = request_.planes && plan_.rank == 2 && plan_.axes[0].stride == 1 && last.in >= vector;
    if (last.kernel > 6 && last.in < 4 * vector && plan_.lanes.count >= vector && !quick) return false;
    const auto tile = [&] {
      Index size = request_.element;
      for (int a = 0; a < plan_.rank; ++a) size *= reach(plan_.axes[at(a)], plan_.axes[at(a)].outputs_per_block);
      return size;
    };
    lane_by_lane([&] {
      while (tile() > tile_budget && split(3)) {}
      while (tile() > 16 * tile_budget && split(0)) {}
    });
    return true;
  }

  // Sums of windows one cell apart along the last of at most two axes, some of which are large. Whether they go this
  // way is a matter of the geometry alone: it decides about the order of additions.
  [[nodiscard]] bool runs() {
    PooledAxis& last = plan_.axes[at(plan_.rank - 1)];
    if (!request_.runs || plan_.rank > 2 || plan_.some_empty || !has_no_weights()) return false;
    if (!last.slides || last.step != 1 || last.stride != 1 || last.kernel < 2 || last.out < 64) return false;
    const PooledAxis& first = plan_.axes[0];
    if (plan_.rank == 2 && (!first.slides || first.step != 1)) return false;
    if (last.kernel < 7 && (plan_.rank == 1 || first.kernel < 7)) return false;
    const Index rows = plan_.rank == 2 ? first.kernel : 1;
    if (rows * (last.kernel + 64) > 1 << 18) return false;  // sums of blocks of rows are kept
    const bool by_lanes = plan_.inputs[0].access == Access::lanes && plan_.outputs[0].access == Access::lanes;
    const Index vector = request_.vector / request_.element;
    const auto fit = [&](Index width) {
      const auto bytes = [&] { return (rows + 6) * reach(last, last.outputs_per_block) * width * 8; };
      while (bytes() > 2 * tile_budget && last.outputs_per_block > 4 * last.kernel && last.outputs_per_block > 64) {
        last.outputs_per_block = (last.outputs_per_block + 1) / 2;
        last.blocks = detail::ceil_div(last.out, last.outputs_per_block);
      }
    };
    if (!by_lanes) {
      lane_by_lane([&] { fit(1); });
      return true;
    }
    const Index cells = one_block();
    const Index inner = plan_.lanes.sizes[at(plan_.lanes.rank - 1)];
    plan_.together = std::min(inner / vector, std::max(Index{1}, 16 / vector)) * vector;
    fit(plan_.together);
    divide(plan_.lanes.count / inner, plan_.lanes.count * cells);
    return true;
  }
  [[nodiscard]] bool has_no_weights() const {
    for (int a = 0; a < plan_.rank; ++a)
      if (plan_.axes[at(a)].weights != nullptr) return false;
    return true;
  }

  // Lanes one after the other, several to a task, in blocks that `fit` makes small enough.
  template <class F>
  void lane_by_lane(F&& fit) {
    plan_.rows = true;
    const Index cells = one_block();
    plan_.together = lanes_of_task(cells);
    fit();
    divide(detail::ceil_div(plan_.lanes.count, plan_.together), plan_.lanes.count * cells);
  }
  // All outputs are one block. Returns the cells of a lane.
  Index one_block() {
    Index cells = 1;
    for (int a = 0; a < plan_.rank; ++a) {
      PooledAxis& axis = plan_.axes[at(a)];
      axis.outputs_per_block = std::max(Index{1}, axis.out);
      axis.blocks = 1;
      cells *= axis.in;
    }
    return cells;
  }
  // So many that a task is worth its while.
  [[nodiscard]] Index lanes_of_task(Index cells) const {
    return std::clamp(65536 / std::max(Index{1}, cells), Index{1}, std::max(Index{1}, plan_.lanes.count));
  }

  void mode() {
    PooledAxis& last = plan_.axes[at(plan_.rank - 1)];
    const Index vector = request_.vector / request_.element;
    Index cells = 1;
    Index rows = 1;
    for (int a = 0; a < plan_.rank; ++a) {
      cells *= plan_.axes[at(a)].in;
      if (a + 1 < plan_.rank) rows *= plan_.axes[at(a)].in;
    }
    const bool contiguous = plan_.inputs[0].pooled[at(plan_.rank - 1)] == 1 &&
                            plan_.inputs[0].access == Access::cells &&
                            (plan_.inputs[1].data == nullptr || plan_.inputs[1].pooled[at(plan_.rank - 1)] == 1);
    const bool lifts = request_.lifts && request_.early;
    bool direct = !plan_.some_empty && (!lifts || request_.common);
    for (int a = 0; a < plan_.rank; ++a) {
      const PooledAxis& axis = plan_.axes[at(a)];
      direct = direct && axis.block == 0 && (a == plan_.rank - 1 || axis.extent <= max_extent);
    }
    // What stands for a tap beyond the row is the nearest one in steps of the dilation: it must be within a vector.
    const bool slides = last.slides && last.stride <= (request_.common ? 4 : 2) && last.kernel <= 16 &&
                        last.in >= vector && last.step <= vector;
    const bool spreads = last.spread > 0 && request_.common && last.source.kernel <= 16;
    const bool along_row = direct && last.out >= vector / 2 && (slides || spreads);
    // Small planes stand side by side in vectors, unless their rows are long enough to be reduced where they lie.
    const bool small = plan_.lanes.count * 2 >= vector &&
                       ((lifts && !along_row) || cells * request_.vector <= 32 * 1024) &&
                       !(along_row && last.in >= 2 * vector && last.kernel <= 3);
    plan_.rows = contiguous && !small && (along_row || (last.in >= vector && rows >= vector / 2));
    plan_.streams = plan_.rows ? along_row : direct && !lifts && in_place();
    // Several vectors side by side make up for what a task costs, as long as the tile stays small.
    const Index inner = plan_.lanes.sizes[at(plan_.lanes.rank - 1)];
    const Index lanes = reads_vectors(plan_) ? inner : plan_.lanes.count;
    if (plan_.inputs[0].access == Access::lanes)
      plan_.vectors = std::clamp(inner / vector, Index{1}, std::min(Index{16}, 256 / vector));
    else
      while (plan_.vectors < 4 && lanes >= 2 * plan_.vectors * vector &&
             cells * 2 * plan_.vectors * request_.vector <= 48 * 1024 && 2 * plan_.vectors * vector <= 256)
        plan_.vectors *= 2;
  }

  // Every operand has its lanes side by side, and two inputs have theirs in the same places. Winners are bytes.
  [[nodiscard]] bool in_place() {
    bool all = plan_.inputs[0].access == Access::lanes;
    each_operand([&](const Operand& operand, const Array& array) {
      all = all && (array.strides.rank == 0 || operand.access == Access::lanes);
    });
    if (request_.winner.data != nullptr && request_.winner_bytes != 1) return false;
    for (int a = 0; a < plan_.rank && plan_.inputs[1].data != nullptr; ++a)
      all = all && plan_.inputs[0].pooled[at(a)] == plan_.inputs[1].pooled[at(a)];
    return all;
  }

  // Bytes of the tile that a task of the present block sizes works on.
  [[nodiscard]] Index tile() const {
    const int last = plan_.rank - 1;
    Index rows = 1;
    for (int a = 0; a < last; ++a) rows *= reach(plan_.axes[at(a)], plan_.axes[at(a)].outputs_per_block);
    const Index columns = plan_.axes[at(last)].outputs_per_block;
    const Index cells = reach(plan_.axes[at(last)], columns);
    const Index width = plan_.rows ? 1 : plan_.vectors * request_.vector / request_.element;
    const Index loaded = plan_.rows ? 64 * cells * request_.element : cells * width * request_.element;
    return loaded + rows * columns * width * request_.state;
  }

  // Rows are transposed, several vectors at a time: blocks of fewer would leave lanes idle. Short rows are not worth
  // it.
  [[nodiscard]] bool needs_rows(int a, Index outputs) const {
    const int last = plan_.rank - 1;
    if (!transposes_ || a == last) return false;
    Index rows = reach(plan_.axes[at(a)], outputs);
    for (int b = 0; b < last; ++b)
      if (b != a) rows *= reach(plan_.axes[at(b)], plan_.axes[at(b)].outputs_per_block);
    return rows < 64 && reach(plan_.axes[at(last)], plan_.axes[at(last)].outputs_per_block) > 128;
  }

  // Halves the outputs per block along one axis, if a block is still `least` times what neighbours share.
  bool split(Index least) {
    for (int a = 0; a < plan_.rank; ++a) {
      PooledAxis& axis = plan_.axes[at(a)];
      const Index half = (axis.outputs_per_block + 1) / 2;
      if (half == axis.outputs_per_block || needs_rows(a, half)) continue;
      const Index shared = std::max(Index{0}, (axis.kernel - 1) * axis.step + 1 - axis.stride);
      if (shared * least > half * axis.stride) continue;
      axis.outputs_per_block = half;
      axis.blocks = detail::ceil_div(axis.out, half);
      return true;
    }
    return false;
  }

  // A row of pieces stays in the first-level cache; a task has some thousand cells.
  void stream_blocks(Index cells) {
    PooledAxis& last = plan_.axes[at(plan_.rank - 1)];
    const Index vector = request_.vector / request_.element;
    const Index inner = std::max(Index{1}, plan_.lanes.sizes[at(plan_.lanes.rank - 1)]);
    const Index most = plan_.rows ? 4096 : 4096 / std::min(inner, Index{64});
    if (last.out > 2 * most) {
      last.outputs_per_block = most;
      last.blocks = detail::ceil_div(last.out, most);
    }
    const Index lanes = std::min(inner, std::max(Index{64}, 16384 / std::max(Index{1}, last.out))) / vector * vector;
    plan_.together = plan_.rows ? lanes_of_task(cells) : lanes;
  }

  void blocks() {
    const Index cells = one_block();
    if (plan_.streams) {
      stream_blocks(cells);
    } else {
      transposes_ = plan_.rows;
      while (tile() > tile_budget && split(3)) {}
      while (tile() > 16 * tile_budget && split(0)) {}
    }
    const Index groups = plan_.streams ? detail::ceil_div(plan_.lanes.count, plan_.together)
                         : plan_.rows
                             ? plan_.lanes.count
                             : detail::ceil_div(plan_.lanes.count, plan_.vectors * request_.vector / request_.element);
    divide(groups, plan_.lanes.count * cells);
  }

  // Splits blocks until there is something for every thread, unless there is little to do.
  void divide(Index groups, Index work) {
    const auto tasks = [&] {
      Index number = std::max(Index{1}, groups);
      for (int a = 0; a < plan_.rank; ++a) number *= plan_.axes[at(a)].blocks;
      return number;
    };
    while (tasks() < 8 && work / tasks() > 65536 && split(4)) {}
  }

  const Request& request_;
  Tables& tables_;
  Plan& plan_;
  bool folded_ = false;      // the pooled axis is split into blocks and their cells
  bool transposes_ = false;  // rows, to have vectors of them
};

// An array of elements of `bytes` each that kernels could not read in vectors, and large enough to be copied first.
inline bool scattered(const Geometry& g, const Dims& dims, const Dims& strides, Index bytes, Index vector) {
  if (vector == 0 || dims.rank != g.rank()) return false;
  Index size = 1;
  Index apart = 1;  // elements from a cell of the last pooled axis to the next
  for (int a = 0; a < dims.rank; ++a) {
    size *= dims[a];
    if (reduces(g.axis(a)))
      apart = dims[a] > 1 ? strides[a] : 1;
    else if (strides[a] == 1 && dims[a] * bytes >= vector)
      return false;
  }
  return apart != 1 && size >= 2048;
}

}  // namespace cenote::plan
