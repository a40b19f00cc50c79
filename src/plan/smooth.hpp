// Carries out smooth max and Lp: the kernels where they serve, the definition for the results they are not sure of.
#pragma once

#include "plan/execute.hpp"

namespace cenote::plan {

template <class Op>
inline constexpr bool is_power_sum = std::same_as<Op, SmoothMax> || std::same_as<Op, Lp>;

// The vector mathematics covers this beta or p.
template <class T>
bool serves(const SmoothMax& op) {
  return (op.beta < 0 ? -op.beta : op.beta) >= 0x1p-1000;
}
template <class T>
bool serves(const Lp& op) {
  return op.p <= (std::same_as<T, double> ? 1e6 : 1e200);
}

inline void set_formula(Formula& formula, const SmoothMax& op) {
  formula.beta = op.beta;
  formula.zeros = op.padding == Padding::zeros;
}
inline void set_formula(Formula& formula, const Lp& op) { formula.p = op.p; }

// A run whose kernel may leave results to the definition: as NaN, which it gives for no other reason.
class DoubtfulRun : public Run {
 public:
  using Run::Run;
  template <class Op>
  void carry_out(const Op& op, const Kernel& kernel) {
    set_formula(plan().formula, op);
    plan().odd = &odd_;
    plan().wide = &wide_;
    (*this)(kernel);
  }
  [[nodiscard]] bool doubtful() const { return odd_; }
  // Evaluates the results left to the definition by one(window, offset).
  template <class T, class F>
  void ask(const Geometry& g, const View<const T>& x, const Dims& marks, const View<T>& out, F&& one) const {
    if (doubtful())
      ask_definition<T>(
          exec(), g, x, marks, out, [](const T& result) { return is_nan(result); }, one);
  }

 private:
  std::atomic<bool> odd_ = false, wide_ = false;
};

// Calls body(index) for every index of a box; the last entry moves fastest.
template <class F>
void each_in_box(const Geometry& g, const std::array<Index, max_rank>& low, const std::array<Index, max_rank>& high,
                 F&& body) {
  for (int a = 0; a < g.rank(); ++a)
    if (low[static_cast<std::size_t>(a)] >= high[static_cast<std::size_t>(a)]) return;
  std::array<Index, max_rank> at = low;
  for (;;) {
    body(std::as_const(at));
    int a = g.rank() - 1;
    for (; a >= 0; --a) {
      const auto i = static_cast<std::size_t>(a);
      if (++at[i] < high[i]) break;
      at[i] = low[i];
    }
    if (a < 0) return;
  }
}

template <class T, class Op>
void ask_for_values(const DoubtfulRun& run, const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y) {
  run.ask<T>(g, x, Dims::filled(g.rank(), 0), y,
             [&](const Window<T>& window, Index o) { y.data()[o] = op.value(window); });
}

// Sums of few squares, of which there are no odd ones, need not be stored before they are added.
template <class T, class Op>
bool adds_squares(const Op& op, const Geometry& g) {
  if constexpr (std::same_as<Op, Lp>)
    return op.p == 2 && kernels<T>().square_sum.run != nullptr && depth_of(g) <= 2 * near_depth;
  else
    return false;
}

// y = f(x).
template <class T, class Op>
bool power_sum(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y, const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.power_sum.run == nullptr || !serves<T>(op)) return false;
  // Windows of one tap return it, and so does a maximum.
  if constexpr (std::same_as<Op, SmoothMax>)
    if (volume(g.window_box()) == 1) return plan::forward<T>(Max{}, g, x, &y, nullptr, exec);
  const bool squares = adds_squares<T>(op, g);
  const Kernel& kernel = squares ? table.square_sum : table.power_sum;
  DoubtfulRun run(g, exec, sizeof(T), table.vector);
  run.request().lifts = true;
  run.request().early = !squares;
  run.request().common = kernel.common;
  run.request().state = squares ? 8 : 16;
  run.request().inputs[0] = array_of(x, x.strides(), false);
  run.request().outputs[0] = array_of(y, spec::detail::output_strides(g, y.strides()), true);
  run.build();
  run.carry_out(op, kernel);
  ask_for_values<T>(run, op, g, x, y);
  return true;
}

// y = f(x) if asked for, and dy = J(x) dx.
template <class T, class Op>
bool power_sum_jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>* y,
                   const View<T>& dy, const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.power_sum_tangent.run == nullptr || !serves<T>(op)) return false;
  DoubtfulRun run(g, exec, sizeof(T), table.vector);
  run.request().lifts = true;
  run.request().common = table.power_sum_tangent.common;
  run.request().state = 24;
  run.request().inputs = {array_of(x, x.strides(), false), array_of(dx, dx.strides(), false)};
  if (y != nullptr) run.request().outputs[0] = array_of(*y, spec::detail::output_strides(g, y->strides()), true);
  run.request().outputs[1] = array_of(dy, spec::detail::output_strides(g, dy.strides()), true);
  run.build();
  run.carry_out(op, table.power_sum_tangent);
  if (y != nullptr) ask_for_values<T>(run, op, g, x, *y);
  run.ask<T>(g, x, dx.strides(), dy, [&](const Window<T>& window, Index o) {
    Wide<T> sum(Index{0});
    op.weights(window,
               [&](const Tap<T>& tap, const auto& weight) { sum = sum + weigh(weight, Wide<T>(dx.data()[tap.mark])); });
    dy.data()[o] = static_cast<T>(sum);
  });
  return true;
}

// The cells of one lane whose gradients are NaN, from all windows that hold one of them, in the definition's order.
template <class T, class Op>
class LaneAgain {
 public:
  LaneAgain(const Plan& plan, const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy,
            const View<T>& gx)
      : op_(op), g_(g), gy_(gy), gx_(gx), gy_strides_(spec::detail::output_strides(g, gy.strides())) {
    steps_ = Dims::filled(g.rank(), 0);
    for (int a = g.rank() - 1, pooled = plan.rank; a >= 0; --a) {
      if (!reduces(g.axis(a))) continue;
      axes_[static_cast<std::size_t>(a)] = &plan.adjoint[--pooled];
      steps_[a] = cells_;
      cells_ *= g.axis(a).in;
    }
    walk_.emplace(g, x, Marks{steps_}, gy_strides_);
  }

  void operator()(Index lane) {
    std::array<Index, max_rank> low{};
    std::array<Index, max_rank> high{};
    for (int a = g_.rank() - 1; a >= 0; --a) {
      const auto i = static_cast<std::size_t>(a);
      high[i] = g_.axis(a).in;
      if (axes_[i] != nullptr) continue;
      low[i] = lane % g_.axis(a).in;
      high[i] = low[i] + 1;
      lane /= g_.axis(a).in;
    }
    std::array<Index, max_rank> first = high;  // the box of such cells
    std::array<Index, max_rank> end = low;
    bool any = false;
    each_in_box(g_, low, high, [&](const std::array<Index, max_rank>& at) {
      if (!is_nan(gx_.data()[offset(at, gx_.strides())])) return;
      for (int a = 0; a < g_.rank(); ++a) {
        const auto i = static_cast<std::size_t>(a);
        first[i] = std::min(first[i], at[i]);
        end[i] = std::max(end[i], at[i] + 1);
      }
      if (!any) {
        any = true;
        sums_.assign(static_cast<std::size_t>(cells_), Gradient<T>(Index{0}));
        asked_.assign(static_cast<std::size_t>(cells_), 0);
      }
      asked_[static_cast<std::size_t>(offset(at, steps_))] = 1;
    });
    if (!any) return;
    std::array<Index, max_rank> from = low;
    std::array<Index, max_rank> to = high;
    for (int a = 0; a < g_.rank(); ++a) {
      const auto i = static_cast<std::size_t>(a);
      if (axes_[i] == nullptr) continue;
      const Span windows = positions_of(*axes_[i], first[i], end[i]);
      from[i] = windows.begin;
      to[i] = windows.end;
    }
    each_in_box(g_, from, to, [&](const std::array<Index, max_rank>& at) { walk_->at(at, add()); });
    each_in_box(g_, first, end, [&](const std::array<Index, max_rank>& at) {
      const auto cell = static_cast<std::size_t>(offset(at, steps_));
      if (asked_[cell] != 0) gx_.data()[offset(at, gx_.strides())] = static_cast<T>(sums_[cell]);
    });
  }

 private:
  [[nodiscard]] Index offset(const std::array<Index, max_rank>& at, const Dims& strides) const {
    Index out = 0;
    for (int a = 0; a < g_.rank(); ++a) out += at[static_cast<std::size_t>(a)] * strides[a];
    return out;
  }
  auto add() {
    return [this](const Window<T>& window, Index o) {
      bool asked = false;
      window.each([&](const Tap<T>& tap) { asked = asked || asked_[static_cast<std::size_t>(tap.mark)] != 0; });
      if (!asked) return;
      const auto gradient = static_cast<Gradient<T>>(gy_.data()[o]);
      op_.weights(window, [&](const Tap<T>& tap, const auto& weight) {
        Gradient<T>& sum = sums_[static_cast<std::size_t>(tap.mark)];
        sum = sum + weigh(weight, gradient);
      });
    };
  }

  const Op& op_;
  const Geometry& g_;
  const View<const T>& gy_;
  const View<T>& gx_;
  Dims gy_strides_, steps_;
  std::array<const PooledAxis*, max_rank> axes_{};  // null for lanes
  Index cells_ = 1;                                 // of a lane
  std::optional<Walk<T>> walk_;
  std::vector<Gradient<T>> sums_;
  std::vector<std::uint8_t> asked_;
};

// Cuts a VJP into blocks of cells along the first pooled axis. A block's neighbours compute their common sums twice, so
// it is no smaller than what they share.
inline void cut_cells(Plan& plan, PooledAxis& adjoint, Index element, Index vector) {
  const PooledAxis& axis = plan.axes[0];
  const Index lanes = vector / element;
  plan.rows = plan.rank > 1 && plan.lanes.count * 2 <= lanes && !reads_vectors(plan);
  Index row = plan.rows ? 1 : lanes;
  for (int a = 1; a < plan.rank; ++a) {
    const PooledAxis& other = plan.axes[static_cast<std::size_t>(a)];
    row *= std::max({Index{1}, other.in, other.out});
  }
  row *= 48;  // bytes of a cell: terms, sums and gradients
  const auto span = [](const PooledAxis& of) { return (of.kernel - 1) * of.step; };
  const Index shared =
      std::min(axis.in, span(axis) + span(adjoint) * (axis.source.stride > 0 ? axis.source.stride : 1));
  Index cells = std::max({Index{1}, shared, tile_budget * 2 / row - shared});
  const Index groups = plan.rows ? plan.lanes.count : cenote::detail::ceil_div(plan.lanes.count, lanes);
  while (groups * cenote::detail::ceil_div(axis.in, cells) < 8 && cells > std::max(Index{1}, 2 * shared) &&
         cells * row > 64 * 1024)
    cells = (cells + 1) / 2;
  adjoint.outputs_per_block = std::max(Index{1}, std::min(cells, axis.in));
  adjoint.blocks = std::max(Index{1}, cenote::detail::ceil_div(axis.in, adjoint.outputs_per_block));
}

// gx = J(x)^T gy.
template <class T, class Op>
bool power_sum_vjp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy, const View<T>& gx,
                   const Execution& exec) {
  const Kernels& table = kernels<T>();
  if (table.power_sum_pull.run == nullptr || !serves<T>(op)) return false;
  DoubtfulRun run(g, exec, sizeof(T), table.vector);
  Request& request = run.request();
  request.lifts = true;
  request.inputs = {array_of(x, x.strides(), false), array_of(gy, spec::detail::output_strides(g, gy.strides()), true)};
  request.outputs[0] = array_of(gx, gx.strides(), false);
  run.build();
  Plan& plan = run.plan();
  std::array<PooledAxis, max_rank> adjoint{};
  for (int a = 0; a < plan.rank; ++a) {
    const PooledAxis& axis = plan.axes[static_cast<std::size_t>(a)];
    PooledAxis& to = adjoint[static_cast<std::size_t>(a)];
    if (axis.source.pooled()) {
      to.source = axis.source;
      fill_adjoint(axis.source, to, run.tables().taps(axis.in));
      find_run(to);
      choose_algorithm(to);
    } else {
      to = axis;  // nothing is pooled: the one window of the one cell
    }
  }
  plan.adjoint = adjoint.data();
  cut_cells(plan, adjoint[0], sizeof(T), table.vector);
  run.carry_out(op, table.power_sum_pull);
  if (!run.doubtful()) return true;
  Index cells = 1;
  for (int a = 0; a < g.rank(); ++a) cells *= g.axis(a).in;
  each_task(exec, plan.lanes.count, cells, [&](Index lane) { LaneAgain<T, Op>(plan, op, g, x, gy, gx)(lane); });
  return true;
}

}  // namespace cenote::plan
