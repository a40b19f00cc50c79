// The definition: three verbs for any operator, geometry and scalar. One flat loop over outputs each; constexpr.
//
//   forward  y  = value                       jvp  dy = sum of weight * tangent
//                                             vjp  gx = each weight * gradient, added where its tap lies
//
// jvp and vjp use the same weights, so <J dx, gy> = <dx, J^T gy> by construction. Every verb checks its shapes, then
// overwrites its output; inputs are never written.
#pragma once

#include <vector>

#include "cenote/ops.hpp"
#include "cenote/overlap.hpp"

namespace cenote::spec {

namespace detail {

using namespace cenote::detail;

// The strides of an output per input axis: a dropped axis has stride 0 (G5).
constexpr Dims output_strides(const Geometry& g, const Dims& strides) {
  Dims out;
  int next = 0;
  for (int a = 0; a < g.rank(); ++a) out.push_back(g.drops(a) ? 0 : strides[next++]);
  return out;
}

[[gnu::cold, gnu::noinline, noreturn]] inline void raise_mismatch(std::string_view caller, const char* argument,
                                                                  const Dims& got, const Dims& expected) {
  const std::string shapes = "got " + to_string(got) + ", expected " + to_string(expected);
  if (got.rank != expected.rank) raise({Rule::rank_mismatch, argument, -1, got.rank, expected.rank}, caller, shapes);
  int a = 0;
  while (got[a] == expected[a]) ++a;  // they differ somewhere
  raise({Rule::shape_mismatch, argument, a, got[a], expected[a]}, caller, shapes);
}
constexpr void check_shape(std::string_view caller, const char* argument, const Dims& got, const Dims& expected) {
  if (!(got == expected)) raise_mismatch(caller, argument, got, expected);
}

// Strides, one per axis.
constexpr void check_rank(std::string_view caller, const char* argument, const Dims& got, const Dims& expected) {
  if (got.rank != expected.rank) raise_mismatch(caller, argument, got, expected);
}

template <class Op>
constexpr void check_operator(std::string_view caller, const Op& op) {
  if (const auto problem = op.problem()) raise(*problem, caller);
}

// An output has distinct elements in memory that no input uses.
template <class T, class... In>
constexpr void check_output(std::string_view caller, const char* argument, const View<T>& out, const In&... in) {
  if (!has_distinct_elements(out.dims(), out.strides())) raise({Rule::output_overlaps, argument}, caller);
  if (std::is_constant_evaluated()) return;  // addresses are unknown there, and aliasing impossible by value
  const Memory own = memory_of(out);
  if ((overlaps(own, memory_of(in)) || ...)) raise({Rule::output_aliases, argument}, caller);
}

// Sets gx to what `add(sums, strides)` adds up. Halves add in f32, in a buffer of their own (A7); every other scalar
// adds in place.
template <class T, class F>
constexpr void accumulate(const View<T>& gx, F&& add) {
  const Dims& in = gx.dims();
  if constexpr (std::is_same_v<Gradient<T>, T>) {
    for_each_index(in, [&](const Dims& index) { gx[index] = T(Index{0}); });
    add(gx.data(), gx.strides());
  } else {
    std::vector<Gradient<T>> sums(static_cast<std::size_t>(volume(in)), Gradient<T>(Index{0}));
    add(sums.data(), row_major(in));
    std::size_t next = 0;
    for_each_index(in, [&](const Dims& index) { gx[index] = static_cast<T>(sums[next++]); });
  }
}

template <class T, class Op>
constexpr void scatter(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy,
                       const View<T>& gx) {
  accumulate(gx, [&](Gradient<T>* sums, const Dims& strides) {
    Walk<T>(g, x, {strides}, output_strides(g, gy.strides())).each([&](const Window<T>& window, Index o) {
      const auto gradient = static_cast<Gradient<T>>(gy.data()[o]);
      op.weights(window, [&](const Tap<T>& tap, const auto& weight) {
        Gradient<T>& sum = sums[tap.mark];
        sum = sum + weigh(weight, gradient);
      });
    });
  });
}

}  // namespace detail

// y = f(x). Cost: outputs x taps. No allocation.
template <class T, class Op>
  requires OperatorOn<Op, T>
constexpr void forward(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x, const View<T>& y,
                       std::string_view caller = "forward") {
  detail::check_operator(caller, op);
  detail::check_shape(caller, "x", x.dims(), g.in());
  detail::check_shape(caller, "y", y.dims(), g.out());
  detail::check_output(caller, "y", y, x);
  Walk<T>(g, x, {Dims::filled(g.rank(), 0)}, detail::output_strides(g, y.strides()))
      .each([&](const Window<T>& window, Index o) { y.data()[o] = op.value(window); });
}

// dy = J(x) dx. Cost: outputs x taps. No allocation.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
constexpr void jvp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
                   const std::type_identity_t<View<const T>>& dx, const View<T>& dy, std::string_view caller = "jvp") {
  detail::check_operator(caller, op);
  detail::check_shape(caller, "x", x.dims(), g.in());
  detail::check_shape(caller, "dx", dx.dims(), g.in());
  detail::check_shape(caller, "dy", dy.dims(), g.out());
  detail::check_output(caller, "dy", dy, x, dx);
  if constexpr (Op::linear) return spec::forward<T>(op, g, dx, dy, caller);
  Walk<T>(g, x, {dx.strides()}, detail::output_strides(g, dy.strides())).each([&](const Window<T>& window, Index o) {
    Wide<T> sum(Index{0});
    bool any = false;  // a single tangent is passed on as it is, the sign of its zero included (M2)
    op.weights(window, [&](const Tap<T>& tap, const auto& weight) {
      const Wide<T> part = weigh(weight, Wide<T>(dx.data()[tap.mark]));
      sum = any ? sum + part : part;
      any = true;
    });
    dy.data()[o] = static_cast<T>(sum);
  });
}

// gx = J(x)^T gy. Cost: outputs x taps. Allocates for halves only.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
constexpr void vjp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
                   const std::type_identity_t<View<const T>>& gy, const View<T>& gx, std::string_view caller = "vjp") {
  detail::check_operator(caller, op);
  detail::check_shape(caller, "x", x.dims(), g.in());
  detail::check_shape(caller, "gy", gy.dims(), g.out());
  detail::check_shape(caller, "gx", gx.dims(), g.in());
  detail::check_output(caller, "gx", gx, x, gy);
  detail::scatter<T>(op, g, x, gy, gx);
}

// The VJP of a linear operator: the input's values do not matter, its shape is the geometry's (A6).
template <class T, class Op>
  requires DifferentiableOn<Op, T> && (Op::linear)
constexpr void vjp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& gy, const View<T>& gx,
                   std::string_view caller = "vjp") {
  detail::check_operator(caller, op);
  detail::check_shape(caller, "gy", gy.dims(), g.out());
  detail::check_shape(caller, "gx", gx.dims(), g.in());
  detail::check_output(caller, "gx", gx, gy);
  const T anything(Index{0});
  detail::scatter<T>(op, g, View<const T>(&anything, g.in(), Dims::filled(g.rank(), 0)), gy, gx);
}

}  // namespace cenote::spec
