// Carries verbs out: chooses a kernel or the definition, plans, and runs the tasks on threads.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>
#include <tuple>

#include "cenote/run.hpp"
#include "kernels/table.hpp"
#include "plan/build.hpp"
#include "plan/pattern.hpp"
#include "plan/tiny.hpp"
#include "threads/pool.hpp"

namespace cenote::plan {

// Below so many elements a second thread costs more than it saves.
inline constexpr Index parallel_limit = 1 << 15;

// Runs body(i) for every i, `work` elements in all; what a body throws (out of memory) is thrown here.
template <class F>
void each_task(const Execution& exec, Index tasks, Index work, F&& body) {
  std::atomic<bool> failed = false;
  threads::parallel(tasks, work < parallel_limit ? Execution{.threads = 1} : exec, [&](Index task) noexcept {
    try {
      body(task);
    } catch (...) {
      failed = true;
    }
  });
  if (failed) throw std::bad_alloc();
}

template <class T>
Array array_of(const View<T>& view, const Dims& strides, bool output_shaped) {
  return {view.data(), strides, output_shaped};
}

class Run {
 public:
  Run(const Geometry& g, const Execution& exec, Index element, Index vector) : exec_(exec) {
    request_.geometry = &g;
    request_.element = element;
    request_.vector = vector;
  }
  Request& request() { return request_; }
  Plan& plan() { return plan_; }
  Tables& tables() { return tables_; }
  [[nodiscard]] const Execution& exec() const { return exec_; }

  void build() { Builder(request_, tables_, plan_).build(); }
  void keep(PatternMaker::Found pattern) {
    pattern_ = std::move(pattern);
    plan_.pattern = pattern_.get();
  }

  // `cost` of a cell, where it is beyond the usual.
  void operator()(const Kernel& kernel, Index cost = 1) { (*this)(kernel, plan_, cost); }
  void operator()(const Kernel& kernel, const Plan& plan, Index cost = 1) {
    const Index tasks = kernel.tasks(plan);
    Index work = plan.lanes.count * cost;
    for (int a = 0; a < plan.rank; ++a) {
      const PooledAxis& axis = plan.axes[static_cast<std::size_t>(a)];
      work *= std::max(axis.in, axis.out);
    }
    each_task(exec_, tasks, work, [&](Index task) { kernel.run(plan, task); });
  }

 private:
  Execution exec_;
  Request request_{};
  Tables tables_;
  PatternMaker::Found pattern_;
  Plan plan_{};
};

template <class Op>
inline constexpr bool is_extreme = std::same_as<Op, Max> || std::same_as<Op, Min>;
template <class Op>
inline constexpr bool is_sum = std::same_as<Op, Average> || std::same_as<Op, Sum>;

// Largest number of additions that a tap's value goes through when windows are summed axis by axis.
inline Index depth_of(const Geometry& g) {
  Index depth = 0;
  for (int a = 0; a < g.rank(); ++a) depth += g.axis(a).kernel - 1;
  return depth;
}

// Few enough for f32 to be added in f32: with half an ulp each and the last rounding that stays within A7. Should such
// a sum overflow, it is added again in f64.
inline constexpr Index near_depth = 4;

// Integer sums fit their lanes.
template <class T>
bool sums_fit(const Geometry& g) {
  if constexpr (!std::integral<T>) return true;
  if constexpr (sizeof(T) == 8) return false;
  return volume(g.window_box()) <= (sizeof(T) < 4 ? Index{1} << 15 : Index{1} << 30);
}

// Evaluates again, by one(window, offset), the outputs that are `doubtful`. Blocks of them are tasks.
template <class T, class Doubt, class F>
void ask_definition(const Execution& exec, const Geometry& g, const View<const T>& x, const Dims& marks,
                    const View<T>& out, Doubt&& doubtful, F&& one) {
  const Dims strides = spec::detail::output_strides(g, out.strides());
  Index outputs = 1;
  for (int a = 0; a < g.rank(); ++a) outputs *= g.axis(a).out;
  constexpr Index block = 4096;
  each_task(exec, cenote::detail::ceil_div(outputs, block), outputs, [&](Index task) {
    Walk<T> walk(g, x, {marks}, strides);
    std::array<Index, max_rank> at{};
    Index rest = task * block;
    Index offset = 0;
    for (int a = g.rank() - 1; a >= 0; --a) {
      at[static_cast<std::size_t>(a)] = rest % g.axis(a).out;
      rest /= g.axis(a).out;
      offset += at[static_cast<std::size_t>(a)] * strides[a];
    }
    const Index end = std::min(outputs, (task + 1) * block);
    for (Index o = task * block; o < end; ++o) {
      if (doubtful(out.data()[offset])) walk.at(at, one);
      for (int a = g.rank() - 1; a >= 0; --a) {
        Index& n = at[static_cast<std::size_t>(a)];
        offset += strides[a];
        if (++n < g.axis(a).out) break;
        offset -= n * strides[a];
        n = 0;
      }
    }
  });
}

// A mean whose sum left the range of f64 is taken again by the definition, which scales (A7). Infinite and NaN means
// are few or deserved.
template <class Op>
void rescue_overflow(const Execution& exec, const Op& op, const Geometry& g, const View<const double>& x,
                     const View<double>& y) {
  ask_definition<double>(
      exec, g, x, Dims::filled(g.rank(), 0), y, [](double mean) { return !std::isfinite(mean); },
      [&](const Window<double>& window, Index o) { y.data()[o] = op.value(window); });
}

// Where winners are: kernels write them while pooling, and only read them in pushes and pulls.
inline void set_winners(Plan& plan, const Winners& winners) {
  plan.winners = const_cast<std::uint8_t*>(winners.bytes().data());
  plan.winner_bytes = winners.bytes_each();
  plan.winner_none = winners.has_none();
}

// Sums of this geometry are f32 and of few taps.
template <class T, class Op>
bool adds_nearby(const Geometry& g) {
  if constexpr (std::same_as<T, float> && is_sum<Op>)
    return kernels<T>().near_sum.run != nullptr && depth_of(g) <= near_depth;
  else
    return false;
}

// The kernel of y = f(x) or of its winners, and the bytes of its states. None: the definition serves the case.
template <class T, class Op>
std::pair<Kernel, Index> forward_kernel(const Geometry& g, const Winners* winners, bool near) {
  const Kernels& table = kernels<T>();
  Index state = sizeof(T);
  if constexpr (is_extreme<Op>) {
    constexpr int which = std::same_as<Op, Max> ? 1 : 0;
    if (winners == nullptr) return {table.extreme[which], state};
    if (winners->bytes_each() <= static_cast<int>(sizeof(T)))  // numbers stand in lanes of T
      return {table.winner[which], 2 * state};
  } else if constexpr (is_sum<Op>) {
    if (near) return {table.near_sum, state};
    const bool lengthy = std::same_as<T, double> && depth_of(g) > 7;
    if (sums_fit<T>(g)) return {lengthy ? table.long_sum : table.sum, lengthy ? 16 : 8};
  }
  return {};
}

// Plans y = f(x) and the winners, whichever are asked for.
template <class Op>
void plan_forward(Run& run, const Op& op, const Kernel& kernel, Index state, const Array& x, const Array& y,
                  Winners* winners) {
  Request& request = run.request();
  request.state = state;
  request.common = kernel.common;
  request.overlaps = kernel.overlaps;
  request.runs = kernel.runs;
  request.planes = kernel.planes;
  request.totals = kernel.totals;
  request.inputs[0] = x;
  request.outputs[0] = y;
  if (winners != nullptr) {
    request.winner = {winners->bytes().data(), row_major(request.geometry->out_kept()), true};
    request.winner_bytes = winners->bytes_each();
  }
  run.build();
  Plan& plan = run.plan();
  if (winners != nullptr) set_winners(plan, *winners);
  if constexpr (std::same_as<Op, Average>) {
    plan.formula.mean = true;
    plan.formula.divisor = op.divisor;
  }
}

template <class T, class Op>
bool forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>* y, Winners* winners,
             const Execution& exec, bool near);

// Results that are not finite become those of another run, which gives them to a view. No other is touched: what one
// window holds is not to change the last bit of another's result.
template <class T, class F>
void replace_infinite(const View<T>& y, F&& again) {
  Tensor<T> other(y.dims());
  again(other.view());
  const View<const T> others = std::as_const(other).view();
  for_each_index(y.dims(), [&](const Dims& index) {
    if (!std::isfinite(y[index])) y[index] = others[index];
  });
}
// What is left to do where some result of a sum is not finite: f32 that was added in f32 is added again in f64, and f64
// is left to the definition.
template <class T, class Op>
void mend(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y, const Execution& exec) {
  if constexpr (std::same_as<T, float>)
    replace_infinite(y, [&](const View<T>& other) { forward<T>(op, g, x, &other, nullptr, exec, false); });
  if constexpr (std::same_as<T, double>) rescue_overflow(exec, op, g, x, y);
}
// A small call. True if there is something to mend.
template <class T, class Op>
bool run_tiny(const Tiny& tiny, const Op& op, const T* x, T* y, bool near) {
  if constexpr (std::same_as<T, float>)
    if (near) return tiny.run<float>(op, x, y);
  return tiny.run(op, x, y);
}

// The axes, whose neighbours are the farthest apart in memory first. By hand, because std::stable_sort allocates.
inline std::array<int, max_rank> outermost_first(const Dims& strides) {
  std::array<int, max_rank> axes{};
  for (int a = 0; a < strides.rank; ++a) {
    auto at = static_cast<std::size_t>(a);
    for (; at > 0 && std::abs(strides[axes[at - 1]]) < std::abs(strides[a]); --at) axes[at] = axes[at - 1];
    axes[at] = a;
  }
  return axes;
}

// Row-major strides if axes were in the order in which they lie in memory here.
inline Dims dense_like(const Dims& dims, const Dims& strides) {
  const std::array<int, max_rank> axes = outermost_first(strides);
  Dims out = Dims::filled(dims.rank, 0);
  Index step = 1;
  for (int i = dims.rank; i-- > 0;) {
    const int a = axes[static_cast<std::size_t>(i)];
    out[a] = step;
    step *= dims[a];
  }
  return out;
}

// Every window is the one cell that it begins at, and both arrays lie alike without a gap: results are the cells.
template <class T, class Op>
bool copies(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y) {
  if (!is_extreme<Op> && !(is_sum<Op> && std::is_arithmetic_v<T>)) return false;
  if constexpr (std::same_as<Op, Average>)
    if (op.divisor.kind == Divisor::Kind::fixed && op.divisor.number != 1) return false;
  for (int a = 0; a < g.rank(); ++a)
    if (reduces(g.axis(a))) return false;
  return x.dims() == y.dims() && x.strides() == y.strides() && dense_like(x.dims(), x.strides()) == x.strides();
}
// The results of an extreme are those cells; those of a sum have no -0 (A5).
template <class Op, class T>
void copy(const View<const T>& from, const View<T>& to, const Execution& exec) {
  constexpr Index part = 1 << 14;
  const Index count = from.size();
  each_task(exec, cenote::detail::ceil_div(count, part), count, [&](Index task) {
    const Index begin = task * part, end = std::min(count, begin + part);
    Index i = begin;
    if constexpr (is_sum<Op> && std::is_floating_point_v<T>) {
      constexpr Index some = 64 / Index{sizeof(T)};
      const auto add = [&](Index cells) {
        std::array<T, static_cast<std::size_t>(some)> sums;
        for (Index c = 0; c < cells; ++c) sums[static_cast<std::size_t>(c)] = from.data()[i + c] + T{0};
        std::memcpy(to.data() + i, sums.data(), static_cast<std::size_t>(cells) * sizeof(T));
      };
      for (; i + some <= end; i += some) add(some);
      add(end - i);
    } else {
      std::memcpy(to.data() + i, from.data() + i, static_cast<std::size_t>(end - i) * sizeof(T));
    }
  });
}

// y = f(x) and the winners, whichever are asked for. False: no kernel serves the case.
template <class T, class Op>
bool forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>* y, Winners* winners,
             const Execution& exec, bool near) {
  const auto [kernel, state] = forward_kernel<T, Op>(g, winners, near);
  if (kernel.run == nullptr) return false;
  if (winners == nullptr && y != nullptr && copies(op, g, x, *y)) {
    copy<Op>(x, *y, exec);
    return true;
  }
  const Dims y_strides = y != nullptr ? spec::detail::output_strides(g, y->strides()) : Dims{};
  std::atomic<bool> odd = false;
  Tiny tiny;
  if (Tiny::serves<Op> && winners == nullptr && state <= 8 && tiny.set(g, x.strides(), y_strides)) {
    if constexpr (Tiny::serves<Op>) odd = run_tiny(tiny, op, x.data(), y->data(), near);
  } else {
    Run run(g, exec, sizeof(T), kernels<T>().vector);
    plan_forward(run, op, kernel, state, array_of(x, x.strides(), false),
                 {y != nullptr ? y->data() : nullptr, y_strides, y != nullptr}, winners);
    run.plan().odd = &odd;
    run(kernel);
  }
  if constexpr (is_sum<Op>)
    if (odd) mend(op, g, x, *y, exec);
  return true;
}
template <class T, class Op>
bool forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>* y, Winners* winners,
             const Execution& exec) {
  return forward<T>(op, g, x, y, winners, exec, adds_nearby<T, Op>(g));
}

// A forward call that is made many times.
template <class T, class Op>
class Prepared final : public compiled::Prepared<T> {
 public:
  Prepared(const Op& op, const Geometry& g, const Dims& x, const Dims& y, const Execution& exec)
      : op_(op), g_(g), x_strides_(x), y_strides_(y), exec_(exec), run_(g_, exec, sizeof(T), kernels<T>().vector) {
    Index state = 0;
    const Index vector = kernels<T>().vector;
    if (scattered(g_, g_.in(), x, sizeof(T), vector) || scattered(g_, g_.out(), y, sizeof(T), vector)) return;
    std::tie(kernel_, state) = forward_kernel<T, Op>(g_, nullptr, near_);
    if (kernel_.run == nullptr) return;
    const Dims strides = spec::detail::output_strides(g_, y);
    tiny_ = Tiny::serves<Op> && state <= 8 && small_.set(g_, x, strides);
    if (tiny_) return;
    plan_forward(run_, op_, kernel_, state, {this, x, false}, {this, strides, true}, nullptr);  // pointers follow
    own_ = run_.plan();
  }

  void forward(const T* x, T* y) const override {
    if constexpr (Tiny::serves<Op>) {
      if (tiny_) {
        const bool odd = run_tiny(small_, op_, x, y, near_);
        if constexpr (is_sum<Op>)
          if (odd) mend(op_, g_, in(x), out(y), exec_);
        return;
      }
    }
    if (kernel_.run == nullptr) return compiled::forward<T>(op_, g_, in(x), out(y), nullptr, exec_, "Plan::forward");
    // One caller at a time has the copy that is there; the others make copies. The plan itself is never written.
    if (busy_.exchange(true, std::memory_order_acquire)) {
      Plan copy = run_.plan();
      return carry_out(copy, x, y);
    }
    carry_out(own_, x, y);
    busy_.store(false, std::memory_order_release);
  }

 private:
  View<const T> in(const T* x) const { return {x, g_.in(), x_strides_}; }
  View<T> out(T* y) const { return {y, g_.out(), y_strides_}; }
  void carry_out(Plan& plan, const T* x, T* y) const {
    std::atomic<bool> odd = false;
    plan.inputs[0].data = const_cast<T*>(x);
    plan.outputs[0].data = y;
    plan.odd = &odd;
    run_(kernel_, plan);
    if constexpr (is_sum<Op>)
      if (odd) mend(op_, g_, in(x), out(y), exec_);
  }

  Op op_;
  Geometry g_;
  Dims x_strides_, y_strides_;
  Execution exec_;
  bool near_ = adds_nearby<T, Op>(g_);
  Kernel kernel_{};
  bool tiny_ = false;
  Tiny small_;
  mutable Run run_;
  mutable Plan own_{};
  mutable std::atomic<bool> busy_ = false;
};

// Along this axis no two windows share a cell.
inline bool lie_apart(const Axis& axis) {
  if (axis.out <= 1 || !reduces(axis)) return true;
  return axis.kind == Axis::Kind::adaptive ? axis.in % axis.out == 0 : (axis.kernel - 1) * axis.dilation < axis.stride;
}
inline bool lie_apart(const Geometry& g) {
  for (int a = 0; a < g.rank(); ++a)
    if (!lie_apart(g.axis(a))) return false;
  return true;
}

// Windows that lie apart and have so many taps read their winner's tangent alone, and the others' not at all.
inline constexpr Index least_pushing_taps = 256;

template <class T>
bool push(const Geometry& g, const Winners& winners, const View<const T>& dx, const View<T>& dy, const Execution& exec);

// y = f(x) if asked for, and dy = J(x) dx.
template <class T, class Op>
bool jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>* y,
         const View<T>& dy, const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.vector == 0) return false;
  if constexpr (is_sum<Op>) {
    return (y == nullptr || plan::forward<T>(op, g, x, y, nullptr, exec)) &&
           plan::forward<T>(op, g, dx, &dy, nullptr, exec);
  } else if constexpr (is_extreme<Op>) {
    if (op.ties != Ties::first) return false;
    if (copies(op, g, dx, dy) && (y == nullptr || copies(op, g, x, *y))) {
      if (y != nullptr) copy<Op>(x, *y, exec);
      copy<Op>(dx, dy, exec);
      return true;
    }
    if (volume(g.window_box()) >= least_pushing_taps && lie_apart(g)) {
      Tables memory;
      const auto bytes = static_cast<std::size_t>(Winners::bytes_for(g));
      double* const words = memory.numbers(static_cast<Index>(bytes / sizeof(double) + 1));
      Winners winners(g, {reinterpret_cast<std::uint8_t*>(words), bytes});
      if (plan::forward<T>(op, g, x, y, &winners, exec)) return push(g, winners, dx, dy, exec);
    }
    const Kernel kernel = table.tangent[std::same_as<Op, Max> ? 1 : 0];
    if (kernel.run == nullptr) return false;
    Run run(g, exec, sizeof(T), table.vector);
    run.request().state = 2 * sizeof(T);
    run.request().common = kernel.common;
    run.request().inputs = {array_of(x, x.strides(), false), array_of(dx, dx.strides(), false)};
    if (y != nullptr) run.request().outputs[0] = array_of(*y, spec::detail::output_strides(g, y->strides()), true);
    run.request().outputs[1] = array_of(dy, spec::detail::output_strides(g, dy.strides()), true);
    run.build();
    run(kernel);
    return true;
  }
  return false;
}

// The rows that a task of a pull, push or repetition works on, or the lanes if planes are small: enough to be worth a
// task, few enough to stay in a cache. Rows come in multiples of `unit`.
inline void cut_rows(Plan& plan, Index unit) {
  PooledAxis& first = plan.axes[0];
  Index row = 1;
  for (int a = 1; a < plan.rank; ++a) row *= std::max(Index{1}, plan.axes[static_cast<std::size_t>(a)].out);
  Index rows = std::max(Index{1}, (Index{1} << 16) / row);
  // A sixteenth of the lanes at most, but eight, which scatter in turn, and what is worth a task if planes are small.
  const Index plane = std::max(Index{1}, row * first.out);
  const Index most = std::max({plan.lanes.count / 16, std::min(Index{8}, plan.lanes.count / 2),
                               std::min(plan.lanes.count, (Index{1} << 13) / plane)});
  const Index some = rows >= first.out ? 8 : 1;  // of planes that are not cut
  plan.vectors = std::clamp(rows / std::max(Index{1}, first.out), std::min(some, std::max(Index{1}, most)),
                            std::max(Index{1}, most));
  // Lanes that are neighbours in memory stay together.
  if (plan.outputs[0].access == Access::lanes) {
    const Index inner = plan.lanes.sizes[static_cast<std::size_t>(plan.lanes.rank - 1)];
    plan.vectors = cenote::detail::ceil_div(inner, std::max(Index{1}, cenote::detail::ceil_div(inner, 2048)));
    rows = std::max(Index{1}, rows / std::max(Index{1}, plan.vectors));
  }
  rows = cenote::detail::ceil_div(rows, unit) * unit;
  first.outputs_per_block = std::max(Index{1}, std::min(first.out, rows));
  first.blocks = std::max(Index{1}, cenote::detail::ceil_div(first.out, first.outputs_per_block));
}

// Whether gradients of these planes go by a pattern, which is kept as long as they do. Tasks are groups of planes,
// enough of them to be worth a task. `rival`: there is a kernel for long rows.
inline bool go_by_pattern(Run& run, Index element, Index vector, bool winners, bool rival) {
  Plan& plan = run.plan();
  run.keep(PatternMaker::find(plan, vector / element, winners, rival));
  if (plan.pattern == nullptr) return false;
  const Index groups = plan.lanes.count / plan.pattern->lanes_of_group;
  plan.together = std::clamp((Index{1} << 15) / plan.pattern->cells, Index{1}, cenote::detail::ceil_div(groups, 8));
  return true;
}

// Windows lie apart, or share cells but begin so far from each other that many cells hear from the same ones.
inline bool begin_far(const Axis& axis) {
  return lie_apart(axis) || (axis.kind == Axis::Kind::sliding && axis.stride >= 8);
}
inline bool begin_far(const Geometry& g) {
  for (int a = 0; a < g.rank(); ++a)
    if (!begin_far(g.axis(a))) return false;
  return true;
}

// Gradients are only repeated: lanes are neighbours on both sides, or cells are on this one.
inline bool repeats(const Plan& plan, const Kernels& table) {
  if (table.repeat.run == nullptr) return false;
  const bool by_lanes = plan.outputs[0].access == Access::lanes;
  for (int a = 0; a < plan.rank; ++a) {
    const PooledAxis& axis = plan.axes[static_cast<std::size_t>(a)];
    if (!lie_apart(axis.source) && (by_lanes || axis.block > 0 || !begin_far(axis.source))) return false;
  }
  return by_lanes ? plan.inputs[0].access == Access::lanes
                  : plan.outputs[0].pooled[static_cast<std::size_t>(plan.rank - 1)] == 1;
}

// The same where last axes of which one window holds everything are long, and a cell hears from two outputs at most: in
// whatever order, their sum is the same.
template <class T>
bool repeats_pairs(const Plan& plan, const Kernels& table) {
  if (sizeof(T) == sizeof(double) || table.repeat.run == nullptr || plan.outputs[0].access == Access::lanes ||
      plan.outputs[0].pooled[static_cast<std::size_t>(plan.rank - 1)] != 1)
    return false;
  Index cells = 1, outputs = 1;
  const auto axis = [&](int a) -> const PooledAxis& { return plan.axes[static_cast<std::size_t>(a)]; };
  int a = plan.rank;
  while (a > 0 && is_whole(axis(a - 1))) cells *= axis(--a).out;
  while (a > 0) {
    if (axis(--a).block > 0) return false;
    outputs *= axis(a).kernel;
  }
  return cells >= 16 && outputs <= 2;
}

// Last axes of which one window holds everything become one axis.
inline void merge_whole_axes(Plan& plan) {
  const auto at = [&](int a) -> PooledAxis& { return plan.axes[static_cast<std::size_t>(a)]; };
  at(plan.rank - 1).whole = is_whole(at(plan.rank - 1));
  while (plan.rank > 1 && at(plan.rank - 1).whole && is_whole(at(plan.rank - 2))) {
    const auto last = static_cast<std::size_t>(plan.rank - 1);
    auto& strides = plan.outputs[0].pooled;
    if (strides[last - 1] != plan.axes[last].out * strides[last]) return;
    plan.axes[last - 1].out *= plan.axes[last].out;
    plan.axes[last - 1].whole = true;
    strides[last - 1] = strides[last];
    --plan.rank;
  }
}

// What an average multiplies the gradients of its windows by: a number, and one for every output of an axis along which
// divisors differ.
struct Shares {
  double scale = 1;
  std::array<double*, max_rank> of{};  // by axis of the geometry
  bool differ = false;
};
inline Shares shares_of(const Average& op, const Geometry& g, Tables& tables) {
  Shares shares;
  if (op.divisor.kind == Divisor::Kind::fixed) {
    shares.scale /= static_cast<double>(op.divisor.number);
    return shares;
  }
  const auto count = [&](const Axis& axis, Index o) {
    const AxisWindow window = axis.window(o);
    return op.divisor.kind == Divisor::Kind::real ? window.real : window.padded;
  };
  double product = 1;
  for (int a = 0; a < g.rank(); ++a) {
    const Axis& axis = g.axis(a);
    if (!reduces(axis)) continue;
    bool uniform = true;
    for (Index o = 1; o < axis.out && uniform; ++o) uniform = count(axis, o) == count(axis, 0);
    if (uniform) {
      if (axis.out > 0) product *= static_cast<double>(count(axis, 0));
      continue;
    }
    double* const own = tables.numbers(axis.out);
    // A window without a tap reaches nobody, whatever its share.
    for (Index o = 0; o < axis.out; ++o) own[o] = 1.0 / static_cast<double>(std::max(Index{1}, count(axis, o)));
    shares.of[static_cast<std::size_t>(a)] = own;
    shares.differ = true;
  }
  shares.scale /= product;
  return shares;
}

// The gradients times their shares, where they lie in `to`.
template <class T>
void share_out(const Geometry& g, const Shares& shares, const View<const T>& gy, const View<T>& to,
               const Execution& exec) {
  const std::array<int, max_rank> axes = outermost_first(to.strides());
  const int inner = axes[static_cast<std::size_t>(g.rank() - 1)];
  const Index row = gy.dims()[inner];
  if (gy.size() == 0) return;
  const Index rows = gy.size() / row;
  constexpr Index part = 1 << 14;
  const Index rows_of_task = std::max(Index{1}, part / row);
  const auto outer = static_cast<std::size_t>(g.rank() - 1);
  each_task(exec, cenote::detail::ceil_div(rows, rows_of_task), gy.size(), [&](Index task) {
    const Index first = task * rows_of_task, last = std::min(rows, first + rows_of_task);
    std::array<Index, max_rank> index{};  // of a row, the innermost axis last
    Index rest = first;
    for (std::size_t i = outer; i-- > 0;) {
      index[i] = rest % gy.dims()[axes[i]];
      rest /= gy.dims()[axes[i]];
    }
    const double* const own = shares.of[static_cast<std::size_t>(inner)];
    const Index step = gy.strides()[inner];
    for (Index r = first; r < last; ++r) {
      Index from = 0, at = 0;
      std::array<double, max_rank> factors{};  // of the other axes, in the geometry's order, which no layout changes
      factors.fill(1);
      for (std::size_t i = 0; i < outer; ++i) {
        const auto a = static_cast<std::size_t>(axes[i]);
        from += index[i] * gy.strides()[axes[i]];
        at += index[i] * to.strides()[axes[i]];
        if (shares.of[a] != nullptr) factors[a] = shares.of[a][index[i]];
      }
      const auto times = [&](double scale, int a, int until) {
        for (; a < until; ++a) scale *= factors[static_cast<std::size_t>(a)];
        return scale;
      };
      const double before = times(shares.scale, 0, inner);
      const T* const gradients = gy.data() + from;
      T* const shared = to.data() + at;
      for (Index o = 0; o < row; ++o) {
        const double scale = times(own == nullptr ? before : before * own[o], inner + 1, g.rank());
        shared[o] = static_cast<T>(static_cast<double>(gradients[o * step]) * scale);
      }
      for (std::size_t i = outer; i-- > 0; index[i] = 0)
        if (++index[i] < gy.dims()[axes[i]]) break;
    }
  });
}

// The adjoint of a sum or an average: gradients, divided by what their windows divide by, summed per input.
template <class T, class Op>
bool pull_sum(const Op& op, const Geometry& g, const View<const T>& gy, const View<T>& gx, const Execution& exec,
              bool near) {
  const Kernels& table = kernels<T>();
  if (table.vector == 0 || table.weighted.run == nullptr) return false;
  if (copies(op, g, gy, gx)) {
    copy<Op>(gy, gx, exec);
    return true;
  }
  Run run(g, exec, sizeof(T), table.vector);
  Request& request = run.request();
  const bool lengthy = std::same_as<T, double> && depth_of(g) > 7;
  request.state = lengthy ? 16 : near ? Index{sizeof(T)} : 8;
  request.direction = Direction::adjoint;
  const Kernel& plain = lengthy ? table.long_sum : near ? table.near_sum : table.sum;
  request.common = plain.common;
  request.runs = plain.runs;
  request.inputs[0] = array_of(gy, spec::detail::output_strides(g, gy.strides()), false);
  request.outputs[0] = array_of(gx, gx.strides(), true);
  Shares shares;
  if constexpr (std::same_as<Op, Average>) shares = shares_of(op, g, run.tables());
  // In f64 a gradient is divided before it is added, so that no sum overflows that need not.
  if (std::same_as<T, double> && shares.scale != 1 && !lie_apart(g)) {
    int last = -1;
    for (int a = 0; a < g.rank(); ++a)
      if (reduces(g.axis(a))) last = a;
    if (last >= 0) {
      double*& own = shares.of[static_cast<std::size_t>(last)];
      const Index count = g.axis(last).out;
      if (own == nullptr) {
        own = run.tables().numbers(count);
        std::fill_n(own, count, 1.0);
      }
      for (Index o = 0; o < count; ++o) own[o] *= shares.scale;
      shares.scale = 1;
      shares.differ = true;
    }
  }
  int pooled = 0;
  for (int a = 0; a < g.rank(); ++a)
    if (reduces(g.axis(a)))
      run.plan().axes[static_cast<std::size_t>(pooled++)].weights = shares.of[static_cast<std::size_t>(a)];
  run.build();
  run.plan().formula.scale = shares.scale;
  const bool repeated = repeats(run.plan(), table) || (!near && repeats_pairs<T>(run.plan(), table));
  // Gradients that are hardly added cost less to divide before they are than when they are: in every layout, as halves
  // of an ulp are lost then.
  if (shares.differ && gy.dims().rank == g.rank() && (lie_apart(g) || (begin_far(g) && sizeof(T) >= 4))) {
    const Dims strides = dense_like(gy.dims(), gy.strides());
    double* const memory = run.tables().numbers(gy.size() * Index{sizeof(T)} / Index{sizeof(double)} + 1);
    const View<T> shared(reinterpret_cast<T*>(memory), gy.dims(), strides);
    share_out(g, shares, gy, shared, exec);
    return pull_sum<T>(Sum{}, g, View<const T>(shared.data(), shared.dims(), shared.strides()), gx, exec, near);
  }
  if (!shares.differ && lie_apart(g) && table.repeat.run != nullptr &&
      go_by_pattern(run, sizeof(T), table.vector, false, true)) {
    run(table.repeat);
    return true;
  }
  if (!shares.differ && repeated) {
    merge_whole_axes(run.plan());
    cut_rows(run.plan(), 1);
    run(table.repeat);
    return true;
  }
  // Every axis of a weighted sum weighs.
  if (shares.differ)
    for (int a = 0; a < run.plan().rank; ++a) {
      PooledAxis& axis = run.plan().axes[static_cast<std::size_t>(a)];
      if (axis.weights != nullptr) continue;
      double* ones = run.tables().numbers(axis.in);
      std::fill_n(ones, axis.in, 1.0);
      axis.weights = ones;
    }
  std::atomic<bool> odd = false;
  if (!shares.differ && near) run.plan().odd = &odd;
  run(!shares.differ ? plain : lengthy ? table.long_weighted : table.weighted);
  if constexpr (std::same_as<T, float>)
    if (odd) replace_infinite(gx, [&](const View<T>& other) { pull_sum<T>(op, g, gy, other, exec, false); });
  return true;
}
template <class T, class Op>
bool pull_sum(const Op& op, const Geometry& g, const View<const T>& gy, const View<T>& gx, const Execution& exec) {
  return pull_sum<T>(op, g, gy, gx, exec, adds_nearby<T, Op>(g));
}

// Outputs of a row from which on gathering in vectors costs less than going to one cell per output, if they are no
// whole vectors. Square windows sweep down small planes with everything in registers.
inline Index least_gathering_row(const Plan& plan) {
  const Axis& rows = plan.axes[0].source;
  const Axis& row = plan.axes[static_cast<std::size_t>(plan.rank - 1)].source;
  const bool alike = plan.rank == 2 && rows.kernel == row.kernel && rows.stride == row.stride;
  const bool sweeps = alike && row.kernel == 3 && row.stride <= 2 && rows.dilation == 1 && row.dilation == 1;
  return !sweeps ? 20 : row.stride == 1 ? 8 : 7;
}

// gx = gradients added at the winners.
template <class T>
bool pull(const Geometry& g, const Winners& winners, const View<const T>& gy, const View<T>& gx,
          const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.pull.run == nullptr || winners.bytes_each() > 4) return false;
  Run run(g, exec, sizeof(T), table.vector);
  Request& request = run.request();
  request.direction = Direction::adjoint;
  request.inputs[0] = array_of(gy, spec::detail::output_strides(g, gy.strides()), false);
  request.outputs[0] = array_of(gx, gx.strides(), true);
  request.winner = {winners.bytes().data(), row_major(g.out_kept()), false};
  run.build();
  Plan& plan = run.plan();
  set_winners(plan, winners);
  // Cells gather, in vectors of lanes or of cells of the last axis, where comparing every tap costs less than going to
  // one cell per output; windows of few taps, that is, or windows that hardly overlap.
  const PooledAxis& last = plan.axes[static_cast<std::size_t>(plan.rank - 1)];
  const Index taps = volume(g.window_box());
  Index windows = 1;  // that hold one cell
  for (int a = 0; a < plan.rank; ++a) windows *= plan.axes[static_cast<std::size_t>(a)].kernel;
  const bool compares = std::is_floating_point_v<T> && winners.bytes_each() == 1 && taps <= max_compared_taps;
  const bool by_lanes = plan.outputs[0].access == Access::lanes;
  plan.few_windows = compares && by_lanes && windows <= max_side_windows && plan.inputs[0].access == Access::lanes &&
                     plan.winner.access == Access::lanes;
  plan.rows =
      compares && !by_lanes && (plan.rank <= 2 || (windows == 1 && last.source.out >= 32)) &&
      taps <= (last.source.kernel <= 3 ? max_row_taps : 16) && last.source.kind == Axis::Kind::sliding &&
      last.source.stride <= 4 && plan.outputs[0].pooled[static_cast<std::size_t>(plan.rank - 1)] == 1 &&
      (last.source.out >= least_gathering_row(plan) || last.source.out * Index{sizeof(T)} % table.vector == 0) &&
      gx.size() >= 1024;
  if (compares && go_by_pattern(run, sizeof(T), table.vector, true, plan.rows || by_lanes)) {
    run(table.pull);
    return true;
  }
  // Vectors of cells begin at multiples of their stride. Outputs that scatter look again at those of the block before.
  Index unit = 1;
  if (plan.rows && plan.rank == 1) unit = 64 * last.source.stride;
  if (!plan.rows && !plan.few_windows) unit = 4 * (plan.axes[0].source.kernel - 1) * plan.axes[0].source.dilation + 1;
  cut_rows(plan, unit);
  run(table.pull, windows > 1 ? 2 : 1);
  return true;
}

// dy = tangents at the winners.
template <class T>
bool push(const Geometry& g, const Winners& winners, const View<const T>& dx, const View<T>& dy,
          const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.push.run == nullptr || winners.bytes_each() > 4) return false;
  Run run(g, exec, sizeof(T), table.vector);
  Request& request = run.request();
  request.inputs[0] = array_of(dx, dx.strides(), false);
  request.outputs[0] = array_of(dy, spec::detail::output_strides(g, dy.strides()), true);
  request.winner = {winners.bytes().data(), row_major(g.out_kept()), true};
  run.build();
  set_winners(run.plan(), winners);
  cut_rows(run.plan(), 1);
  run(table.push);
  return true;
}

}  // namespace cenote::plan
