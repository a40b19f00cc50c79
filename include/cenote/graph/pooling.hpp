// The pooling node: any operator with any windows, its three payloads carried out by run.hpp. The names of the
// original's builders, adaptive and global pooling, and sums and means over axes are one line each over it.
//
//   pool(g, x, Max{}, Sliding{.kernel = {2, 2}})                        any operator, any windows
//   max_pool(g, x, {.kernel = {3, 3}, .stride = 2, .padding = 1})       the names of pool.hpp
//   max_pool<Sliding{.kernel = {2, 2}}>(g, x)                           -> Var<Shape<...>> from a Var
//   max_pool2d(g, x, {2, 2}, {.stride = 2})                             PyTorch's arguments
#pragma once

#include "cenote/graph/wiring.hpp"
#include "cenote/pool.hpp"

namespace cenote {

namespace detail {

// What the payloads of one pooling node share: everything that depends on operator and geometry alone.
template <class Op, class T>
struct PoolingPlan {
  Op op;
  Geometry geometry;
  Dims in, in_strides, out, out_strides;
  Plan<Op, T> plan;

  PoolingPlan(const Op& o, const Geometry& g)
      : op(o), geometry(g), in(g.in()), in_strides(row_major(in)), out(g.out()), out_strides(row_major(out)),
        plan(o, g) {}
  [[nodiscard]] View<const T> input(std::span<const T> x) const { return {x.data(), in, in_strides}; }
  [[nodiscard]] View<const T> output(std::span<const T> y) const { return {y.data(), out, out_strides}; }
  [[nodiscard]] View<T> input(std::span<T> x) const { return {x.data(), in, in_strides}; }
  [[nodiscard]] View<T> output(std::span<T> y) const { return {y.data(), out, out_strides}; }
};

// Whether the derivative needs no more than who won: then that is kept, a byte an output, and not the input.
template <class T, class Op>
bool keeps_winners(const Op& op) {
  if constexpr (Selecting<Op>)
    return op.ties == Ties::first && !set_valued<T>;
  else
    return false;
}

template <class Op>
std::string parameters_of(const Op& op, const Geometry& g) {
  const std::string words = describe(g);  // "3x8x8 -> 3x4x4, sliding 3x3 stride 2"
  std::string out = words.substr(words.find(", ") + 2);
  if constexpr (requires { op.ties; })
    if (op.ties != Ties::first) out += op.ties == Ties::all ? " ties all" : " ties split";
  if constexpr (requires { op.divisor; }) {
    if (op.divisor.kind == Divisor::Kind::real) out += " divisor real";
    if (op.divisor.kind == Divisor::Kind::fixed) out += " divisor " + std::to_string(op.divisor.number);
  }
  if constexpr (requires { op.beta; }) {
    out += " beta " + to_text(op.beta);
    if (op.padding == Padding::ignore) out += " padding ignored";
  }
  if constexpr (requires { op.p; }) out += " p " + to_text(op.p);
  return out;
}

// With winners kept: they are found while pooling, and the derivatives look at nothing else.
template <class T, class Op>
void set_winner_payloads(Node<T>& node, const std::shared_ptr<const PoolingPlan<Op, T>>& p) {
  node.state = [p] { return std::make_shared<Winners>(p->geometry); };
  node.state_bytes = static_cast<std::size_t>(Winners::bytes_for(p->geometry));
  node.reads = Reads::nothing;
  node.jvp = [p](const Jvp<T>& j) {
    Fastest{*j.memory.exec}.template push<T>(p->geometry, j.template state<Winners>(), p->input(j.dx[0]),
                                             p->output(j.dy));
  };
  node.vjp = [p](const Vjp<T>& v) {
    Fastest{*v.memory.exec}.template pull<T>(p->geometry, v.template state<Winners>(), p->output(v.gy),
                                             p->input(v.gx[0]));
  };
}

template <class T, class Op>
  requires DifferentiableOn<Op, T>
Node<T> pooling_node(std::string_view name, const Handle& x, const Op& op, const Geometry& g) {
  spec::detail::check_operator(name, op);
  const auto p = std::make_shared<const PoolingPlan<Op, T>>(op, g);
  Node<T> node{.name = std::string(name), .inputs = {x}, .shape = g.out()};
  node.parameters = parameters_of(op, g);
  node.reads = Op::linear ? Reads::nothing : Reads::inputs;
  node.jvp = [p](const Jvp<T>& j) {
    if constexpr (Op::linear)  // x does not matter (A6)
      cenote::forward<T>(p->op, p->geometry, p->input(j.dx[0]), p->output(j.dy), *j.memory.exec);
    else
      cenote::jvp<T>(p->op, p->geometry, p->input(j.x[0]), p->input(j.dx[0]), p->output(j.dy), *j.memory.exec);
  };
  node.vjp = [p](const Vjp<T>& v) {
    if constexpr (Op::linear)
      cenote::vjp<T>(p->op, p->geometry, p->output(v.gy), p->input(v.gx[0]), *v.memory.exec);
    else
      cenote::vjp<T>(p->op, p->geometry, p->input(v.x[0]), p->output(v.gy), p->input(v.gx[0]), *v.memory.exec);
  };
  if (keeps_winners<T>(op)) set_winner_payloads(node, p);
  node.forward = [p](const Forward<T>& f) {
    const Execution& exec = *f.memory.exec;
    if constexpr (Selecting<Op>)
      if (f.keep && f.memory.state != nullptr)
        return forward_with_winners<T>(p->op, p->geometry, p->input(f.x[0]), p->output(f.y),
                                       f.template state<Winners>(), exec);
    if (exec.threads == 0 && exec.executor == nullptr) return p->plan.forward(f.x[0].data(), f.y.data());
    cenote::forward<T>(p->op, p->geometry, p->input(f.x[0]), p->output(f.y), exec);
  };
  return node;
}

template <class T, class Op>
Handle add_pooling(Graph<T>& g, std::string_view name, const Handle& x, const Op& op, const Geometry& geometry) {
  return g.add(pooling_node<T>(name, x, op, geometry));
}

template <auto W, class T, class H, class Op>
auto add_typed_pooling(Graph<T>& g, std::string_view name, const H& x, const Op& op) {
  (void)g.dims(x, name, "x");
  return g.template add<OutputShape<W, typename H::shape>>(
      pooling_node<T>(name, x, op, geometry_of<W, typename H::shape>));
}

}  // namespace detail

// Any operator with any windows.
template <class T, class Op, WindowSpec W>
  requires DifferentiableOn<Op, T>
Handle pool(Graph<T>& g, const Handle& x, const Op& op, const W& windows) {
  const std::string name = std::string(Op::name) + "_pool";
  return detail::add_pooling(g, name, x, op, resolve(g.dims(x, name, "x"), windows, name));
}
template <auto W, class T, TypedHandle H, class Op>
  requires LegalGeometry<W, typename H::shape> && DifferentiableOn<Op, T>
auto pool(Graph<T>& g, const H& x, const Op& op) {
  return detail::add_typed_pooling<W>(g, std::string(Op::name) + "_pool", x, op);
}

// One operator with one kind of window; the variable argument is the operator's default, if it has one.
#define CENOTE_POOL_NODE(name, Op, Windows, ...)                                                 \
  template <class T>                                                                             \
    requires DifferentiableOn<Op, T>                                                             \
  Handle name(Graph<T>& g, const Handle& x, const Windows& windows, const Op& op __VA_ARGS__) {  \
    return detail::add_pooling(g, #name, x, op, resolve(g.dims(x, #name, "x"), windows, #name)); \
  }                                                                                              \
  template <Windows W, class T, TypedHandle H>                                                   \
    requires LegalGeometry<W, typename H::shape> && DifferentiableOn<Op, T>                      \
  auto name(Graph<T>& g, const H& x, const Op& op __VA_ARGS__) {                                 \
    return detail::add_typed_pooling<W>(g, #name, x, op);                                        \
  }

CENOTE_POOL_NODE(max_pool, Max, Sliding, = {})
CENOTE_POOL_NODE(adaptive_max_pool, Max, Adaptive, = {})
CENOTE_POOL_NODE(global_max_pool, Max, Global, = {.ties = Ties::all})

CENOTE_POOL_NODE(min_pool, Min, Sliding, = {})
CENOTE_POOL_NODE(adaptive_min_pool, Min, Adaptive, = {})
CENOTE_POOL_NODE(global_min_pool, Min, Global, = {.ties = Ties::all})

CENOTE_POOL_NODE(avg_pool, Average, Sliding, = {})
CENOTE_POOL_NODE(adaptive_avg_pool, Average, Adaptive, = {})
CENOTE_POOL_NODE(global_avg_pool, Average, Global, = {})

CENOTE_POOL_NODE(sum_pool, Sum, Sliding, = {})
CENOTE_POOL_NODE(adaptive_sum_pool, Sum, Adaptive, = {})
CENOTE_POOL_NODE(global_sum_pool, Sum, Global, = {})

CENOTE_POOL_NODE(smooth_max_pool, SmoothMax, Sliding)
CENOTE_POOL_NODE(adaptive_smooth_max_pool, SmoothMax, Adaptive)
CENOTE_POOL_NODE(global_smooth_max_pool, SmoothMax, Global)

CENOTE_POOL_NODE(lp_pool, Lp, Sliding)
CENOTE_POOL_NODE(adaptive_lp_pool, Lp, Adaptive)
CENOTE_POOL_NODE(global_lp_pool, Lp, Global)

#undef CENOTE_POOL_NODE

namespace detail {
template <class T, class Op, class Options>
Handle add_pooling2d(Graph<T>& g, std::string_view name, const Handle& x, const Op& op, const PerAxis& kernel_size,
                     const Options& options) {
  return add_pooling(g, name, x, op, torch_geometry(name, g.dims(x, name, "x"), 2, kernel_size, options));
}
}  // namespace detail

// The two-dimensional builders, with PyTorch's arguments: x is (channels, height, width), or a batch of those.
template <class T>
Handle max_pool2d(Graph<T>& g, const Handle& x, const PerAxis& kernel_size, const MaxPoolOptions& options = {}) {
  return detail::add_pooling2d(g, "max_pool2d", x, Max{}, kernel_size, options);
}
template <class T>
Handle avg_pool2d(Graph<T>& g, const Handle& x, const PerAxis& kernel_size, const AvgPoolOptions& options = {}) {
  return detail::add_pooling2d(g, "avg_pool2d", x, detail::torch_operator(options), kernel_size, options);
}
template <Transcendental T>
Handle smooth_max_pool2d(Graph<T>& g, const Handle& x, const PerAxis& kernel_size, const SmoothMax& op,
                         const MaxPoolOptions& options = {}) {
  return detail::add_pooling2d(g, "smooth_max_pool2d", x, op, kernel_size, options);
}
// The same with the padding as an argument that has no default.
template <class T>
Handle max_pool2d_pad(Graph<T>& g, const Handle& x, const PerAxis& kernel_size, const PerAxis& padding,
                      MaxPoolOptions options = {}) {
  options.padding = padding;
  return detail::add_pooling2d(g, "max_pool2d_pad", x, Max{}, kernel_size, options);
}
template <class T>
Handle avg_pool2d_pad(Graph<T>& g, const Handle& x, const PerAxis& kernel_size, const PerAxis& padding,
                      AvgPoolOptions options = {}) {
  options.padding = padding;
  return detail::add_pooling2d(g, "avg_pool2d_pad", x, detail::torch_operator(options), kernel_size, options);
}

// The sum and the mean over axes: global pooling by another name. Axes named go away unless `keep`.
template <class T>
Handle sum(Graph<T>& g, const Handle& x, const Dims& axes, bool keep = false) {
  return detail::add_pooling(g, "sum", x, Sum{},
                             resolve(g.dims(x, "sum", "x"), Global{.axes = axes, .keep = keep}, "sum"));
}
template <class T>
Handle mean(Graph<T>& g, const Handle& x, const Dims& axes, bool keep = false) {
  return detail::add_pooling(g, "mean", x, Average{},
                             resolve(g.dims(x, "mean", "x"), Global{.axes = axes, .keep = keep}, "mean"));
}
template <Global W, class T, TypedHandle H>
  requires LegalGeometry<W, typename H::shape>
auto sum(Graph<T>& g, const H& x) {
  return detail::add_typed_pooling<W>(g, "sum", x, Sum{});
}
template <Global W, class T, TypedHandle H>
  requires LegalGeometry<W, typename H::shape>
auto mean(Graph<T>& g, const H& x) {
  return detail::add_typed_pooling<W>(g, "mean", x, Average{});
}

}  // namespace cenote
