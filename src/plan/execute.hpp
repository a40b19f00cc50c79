// Carries verbs out: chooses a kernel or the definition, plans, and runs the tasks on threads.
#pragma once

#include <atomic>
#include <cmath>
#include <cstring>

#include "cenote/linearize.hpp"
#include "kernels/table.hpp"
#include "plan/build.hpp"
#include "threads/pool.hpp"

namespace cenote::plan {

// Below so many elements a second thread costs more than it saves.
inline constexpr Index parallel_limit = 1 << 15;

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

  void build() { Builder(request_, tables_, plan_).build(); }

  void operator()(const Kernel& kernel) {
    const Index tasks = kernel.tasks(plan_);
    Index work = plan_.lanes.count;
    for (int a = 0; a < plan_.rank; ++a) {
      const PooledAxis& axis = plan_.axes[static_cast<std::size_t>(a)];
      work *= std::max(axis.in, axis.out);
    }
    each_task(tasks, work, [&](Index task) { kernel.run(plan_, task); });
  }

  // Runs body(i) for every i; what a body throws (out of memory) is thrown here.
  template <class F>
  void each_task(Index tasks, Index work, F&& body) {
    std::atomic<bool> failed = false;
    const Execution exec = work < parallel_limit ? Execution{.threads = 1} : exec_;
    threads::parallel(tasks, exec, [&](Index task) noexcept {
      try {
        body(task);
      } catch (...) {
        failed = true;
      }
    });
    if (failed) throw std::bad_alloc();
  }

 private:
  Execution exec_;
  Request request_{};
  Tables tables_;
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

// Integer sums fit their lanes.
template <class T>
bool sums_fit(const Geometry& g) {
  if constexpr (!std::integral<T>) return true;
  if constexpr (sizeof(T) == 8) return false;
  return volume(g.window_box()) <= (sizeof(T) < 4 ? Index{1} << 15 : Index{1} << 30);
}

// A mean whose sum left the range of f64 is taken again by the definition, which scales (A7). Infinite and NaN means
// are few or deserved.
template <class Op>
void rescue_overflow(const Op& op, const Geometry& g, const View<const double>& x, const View<double>& y) {
  Walk<double>(g, x, {Dims::filled(g.rank(), 0)}, spec::detail::output_strides(g, y.strides()))
      .each([&](const Window<double>& window, Index o) {
        if (!std::isfinite(y.data()[o])) y.data()[o] = op.value(window);
      });
}

// Where winners are: kernels write them while pooling, and only read them in pushes and pulls.
inline void set_winners(Plan& plan, const Winners& winners) {
  plan.winners = const_cast<std::uint8_t*>(winners.bytes().data());
  plan.winner_bytes = winners.bytes_each();
  plan.winner_none = winners.has_none();
}

// y = f(x) and the winners, whichever are asked for. False: no kernel serves the case.
template <class T, class Op>
bool forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>* y, Winners* winners,
             const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.vector == 0) return false;
  Kernel kernel;
  Index state = sizeof(T);
  if constexpr (is_extreme<Op>) {
    constexpr int which = std::same_as<Op, Max> ? 1 : 0;
    if (winners != nullptr) {
      if (winners->bytes_each() > static_cast<int>(sizeof(T))) return false;  // numbers stand in lanes of T
      kernel = table.winner[which];
      state *= 2;
    } else {
      kernel = table.extreme[which];
    }
  } else if constexpr (is_sum<Op>) {
    if (!sums_fit<T>(g)) return false;
    const bool lengthy = std::same_as<T, double> && depth_of(g) > 7;
    kernel = lengthy ? table.long_sum : table.sum;
    state = lengthy ? 16 : 8;
  }
  if (kernel.run == nullptr) return false;
  Run run(g, exec, sizeof(T), table.vector);
  run.request().state = state;
  run.request().inputs[0] = array_of(x, x.strides(), false);
  if (y != nullptr) run.request().outputs[0] = array_of(*y, spec::detail::output_strides(g, y->strides()), true);
  if (winners != nullptr) run.request().winner = {winners->bytes().data(), row_major(g.out_kept()), true};
  run.build();
  Plan& plan = run.plan();
  if (winners != nullptr) set_winners(plan, *winners);
  if constexpr (std::same_as<Op, Average>) {
    plan.formula.mean = true;
    plan.formula.divisor = op.divisor;
  }
  std::atomic<bool> odd = false;
  plan.odd = &odd;
  run(kernel);
  if constexpr (is_sum<Op> && std::same_as<T, double>)
    if (odd) rescue_overflow(op, g, x, *y);
  return true;
}

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
    const Kernel kernel = table.tangent[std::same_as<Op, Max> ? 1 : 0];
    if (kernel.run == nullptr) return false;
    Run run(g, exec, sizeof(T), table.vector);
    run.request().state = 2 * sizeof(T);
    run.request().inputs = {array_of(x, x.strides(), false), array_of(dx, dx.strides(), false)};
    if (y != nullptr) run.request().outputs[0] = array_of(*y, spec::detail::output_strides(g, y->strides()), true);
    run.request().outputs[1] = array_of(dy, spec::detail::output_strides(g, dy.strides()), true);
    run.build();
    run(kernel);
    return true;
  }
  return false;
}

// The adjoint of a sum or an average: gradients, divided by what their windows divide by, summed per input.
template <class T, class Op>
bool pull_sum(const Op& op, const Geometry& g, const View<const T>& gy, const View<T>& gx, const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.vector == 0 || table.weighted.run == nullptr) return false;
  Run run(g, exec, sizeof(T), table.vector);
  Request& request = run.request();
  const bool lengthy = std::same_as<T, double> && depth_of(g) > 7;
  request.state = lengthy ? 16 : 8;
  request.direction = Direction::adjoint;
  request.inputs[0] = array_of(gy, spec::detail::output_strides(g, gy.strides()), false);
  request.outputs[0] = array_of(gx, gx.strides(), true);
  bool weighted = false;
  double scale = 1;
  if constexpr (std::same_as<Op, Average>) {
    if (op.divisor.kind == Divisor::Kind::fixed) {
      scale /= static_cast<double>(op.divisor.number);
    } else {
      const auto count = [&](const Axis& axis, Index o) {
        const AxisWindow window = axis.window(o);
        return op.divisor.kind == Divisor::Kind::real ? window.real : window.padded;
      };
      double product = 1;
      int pooled = 0;
      for (int a = 0; a < g.rank(); ++a) {
        const Axis& axis = g.axis(a);
        if (!Builder::reduces(axis)) continue;
        bool uniform = true;
        for (Index o = 1; o < axis.out && uniform; ++o) uniform = count(axis, o) == count(axis, 0);
        if (uniform) {
          if (axis.out > 0) product *= static_cast<double>(count(axis, 0));
        } else {
          double* weights = run.tables().numbers(axis.out);
          // A window without a tap reaches nobody, whatever its weight.
          for (Index o = 0; o < axis.out; ++o)
            weights[o] = 1.0 / static_cast<double>(std::max(Index{1}, count(axis, o)));
          run.plan().axes[static_cast<std::size_t>(pooled)].weights = weights;
          weighted = true;
        }
        ++pooled;
      }
      scale /= product;
    }
  }
  // In f64 a gradient is divided before it is added, so that no sum overflows that need not.
  if (std::same_as<T, double> && scale != 1) {
    int pooled = -1;
    Index last = 1;
    for (int a = 0; a < g.rank(); ++a) {
      if (!Builder::reduces(g.axis(a))) continue;
      ++pooled;
      last = g.axis(a).out;
    }
    if (pooled >= 0) {
      PooledAxis& axis = run.plan().axes[static_cast<std::size_t>(pooled)];
      double* weights = run.tables().numbers(last);
      for (Index o = 0; o < last; ++o) weights[o] = (axis.weights == nullptr ? 1.0 : axis.weights[o]) * scale;
      axis.weights = weights;
      weighted = true;
      scale = 1;
    }
  }
  run.build();
  run.plan().formula.scale = scale;
  // Every axis of a weighted sum weighs.
  if (weighted)
    for (int a = 0; a < run.plan().rank; ++a) {
      PooledAxis& axis = run.plan().axes[static_cast<std::size_t>(a)];
      if (axis.weights != nullptr) continue;
      double* ones = run.tables().numbers(axis.in);
      std::fill_n(ones, axis.in, 1.0);
      axis.weights = ones;
    }
  if (weighted)
    run(lengthy ? table.long_weighted : table.weighted);
  else
    run(lengthy ? table.long_sum : table.sum);
  return true;
}

// The rows that a task of a pull or push works on, or the lanes if planes are small: enough to be worth a task, few
// enough to stay in a cache.
inline void cut_rows(Plan& plan) {
  PooledAxis& first = plan.axes[0];
  Index row = 1;
  for (int a = 1; a < plan.rank; ++a) row *= std::max(Index{1}, plan.axes[static_cast<std::size_t>(a)].out);
  const Index rows = std::max(Index{1}, (Index{1} << 16) / row);
  first.outputs_per_block = std::max(Index{1}, std::min(first.out, rows));
  first.blocks = std::max(Index{1}, cenote::detail::ceil_div(first.out, first.outputs_per_block));
  plan.vectors = std::clamp(rows / std::max(Index{1}, first.out), Index{1}, std::max(Index{1}, plan.lanes.count / 16));
  // Lanes that are neighbours in memory stay together.
  if (plan.outputs[0].access == Access::lanes) {
    const Index inner = plan.lanes.sizes[static_cast<std::size_t>(plan.lanes.rank - 1)];
    plan.vectors = std::min(inner, Index{256});
    first.outputs_per_block = std::max(Index{1}, std::min(first.out, rows / plan.vectors));
    first.blocks = std::max(Index{1}, cenote::detail::ceil_div(first.out, first.outputs_per_block));
  }
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
  // Cells gather where few windows hold each of them and rows are neighbours in memory.
  const PooledAxis& last = plan.axes[static_cast<std::size_t>(plan.rank - 1)];
  const std::size_t inner = static_cast<std::size_t>(plan.rank - 1);
  Index windows = 1;
  for (int a = 0; a + 1 < plan.rank; ++a) windows *= plan.axes[static_cast<std::size_t>(a)].kernel;
  plan.few_windows = windows * last.kernel <= 36;
  plan.rows = plan.rank > 1 && last.source.kind == Axis::Kind::sliding && last.source.stride <= 4 && windows <= 64 &&
              plan.few_windows && last.source.kernel <= 64 && plan.inputs[0].pooled[inner] == 1 &&
              plan.outputs[0].pooled[inner] == 1 && plan.winner.pooled[inner] == 1 &&
              last.source.in >= table.vector / Index{sizeof(T)} &&
              (sizeof(T) == 8 || volume(g.window_box()) < (Index{1} << 31));
  cut_rows(plan);
  run(table.pull);
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
  cut_rows(run.plan());
  run(table.push);
  return true;
}

}  // namespace cenote::plan
