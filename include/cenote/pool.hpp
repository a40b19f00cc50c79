// The friendly names: max_pool, avg_pool, smooth_max_pool, min_pool, sum_pool, lp_pool, each also as adaptive_... and
// global_..., each with _jvp and _vjp, for run-time shapes and for shapes in types. No logic: one line each over
// run.hpp and static.hpp. PyTorch's names are in torch_names.hpp, which this header includes.
//
//   max_pool(x, {.kernel = {3, 3}, .stride = 2, .padding = 1})                 -> Tensor<T>
//   max_pool_jvp(x, dx, {.kernel = {3, 3}})                                    -> Tensor<T> of the output's shape
//   max_pool_vjp(x, gy, {.kernel = {3, 3}})                                    -> Tensor<T> of the input's shape
//   max_pool<Sliding{.kernel = {3, 3}, .stride = 2}>(x)                        -> Tensor<T, Shape<...>>
//   max_pool_with_indices(x, {.kernel = {3, 3}})                               -> .values, .indices
//   global_avg_pool(x, {.last = 2, .keep = false})                             -> Tensor<T> without the last two axes
//
// The last argument of each is the operator with its options: max_pool(x, windows, {.ties = Ties::split}).
#pragma once

#include "cenote/indices.hpp"
#include "cenote/pad.hpp"
#include "cenote/run.hpp"
#include "cenote/static.hpp"

namespace cenote {

// Values and, per output, the flat index of the winner in the pooled axes (-1: none).
template <class T>
struct ValuesAndIndices {
  Tensor<T> values;
  Tensor<std::int64_t> indices;
};

namespace detail {

template <class T, class Op>
Tensor<T> pooled(std::string_view name, const Op& op, const Geometry& g, const View<const T>& x) {
  Tensor<T> y(g.out(), T(Index{0}), name);
  forward<T>(op, g, x, y.view(), {}, name);
  return y;
}
template <class T, class Op>
Tensor<T> pushed(std::string_view name, const Op& op, const Geometry& g, const View<const T>& x,
                 const View<const T>& dx) {
  Tensor<T> dy(g.out(), T(Index{0}), name);
  jvp<T>(op, g, x, dx, dy.view(), {}, name);
  return dy;
}
template <class T, class Op>
Tensor<T> pulled(std::string_view name, const Op& op, const Geometry& g, const View<const T>& x,
                 const View<const T>& gy) {
  Tensor<T> gx(g.in(), T(Index{0}), name);
  vjp<T>(op, g, x, gy, gx.view(), {}, name);
  return gx;
}
template <class T, class Op>
Tensor<T> pulled(std::string_view name, const Op& op, const Geometry& g, const View<const T>& gy) {
  Tensor<T> gx(g.in(), T(Index{0}), name);
  vjp<T>(op, g, gy, gx.view(), {}, name);
  return gx;
}
template <class T, class Op>
ValuesAndIndices<T> pooled_with_indices(std::string_view name, const Op& op, const Geometry& g,
                                        const View<const T>& x) {
  Tensor<T> y(g.out(), T(Index{0}), name);
  const Winners won = forward_with_winners<T>(op, g, x, y.view(), {}, name);
  return {std::move(y), flat_indices(g, won)};
}

}  // namespace detail

// One operator with one kind of window. The variable argument is the operator's default, if it has one.
#define CENOTE_POOL(name, Op, Windows, ...)                                                                           \
  template <Readable X>                                                                                               \
    requires OperatorOn<Op, Element<X>>                                                                               \
  Tensor<Element<X>> name(const X& x, const Windows& windows, const Op& op __VA_ARGS__) {                             \
    return detail::pooled<Element<X>>(#name, op, resolve(x.dims(), windows, #name), read(x));                         \
  }                                                                                                                   \
  template <Readable X, Readable DX>                                                                                  \
    requires DifferentiableOn<Op, Element<X>> && ScalarsAgree<DX, X>                                                  \
  Tensor<Element<X>> name##_jvp(const X& x, const DX& dx, const Windows& windows, const Op& op __VA_ARGS__) {         \
    return detail::pushed<Element<X>>(#name "_jvp", op, resolve(x.dims(), windows, #name "_jvp"), read(x), read(dx)); \
  }                                                                                                                   \
  template <Readable X, Readable GY>                                                                                  \
    requires DifferentiableOn<Op, Element<X>> && ScalarsAgree<GY, X>                                                  \
  Tensor<Element<X>> name##_vjp(const X& x, const GY& gy, const Windows& windows, const Op& op __VA_ARGS__) {         \
    return detail::pulled<Element<X>>(#name "_vjp", op, resolve(x.dims(), windows, #name "_vjp"), read(x), read(gy)); \
  }                                                                                                                   \
  template <Windows W, StaticReadable X>                                                                              \
    requires LegalGeometry<W, typename X::shape> && OperatorOn<Op, Element<X>>                                        \
  constexpr auto name(const X& x, const Op& op __VA_ARGS__) {                                                         \
    return spec::forward<W>(op, x);                                                                                   \
  }                                                                                                                   \
  template <Windows W, StaticReadable X, StaticReadable DX>                                                           \
    requires LegalGeometry<W, typename X::shape> && DifferentiableOn<Op, Element<X>> && ScalarsAgree<DX, X> &&        \
             TangentHasInputShape<DX, X>                                                                              \
  constexpr auto name##_jvp(const X& x, const DX& dx, const Op& op __VA_ARGS__) {                                     \
    return spec::jvp<W>(op, x, dx);                                                                                   \
  }                                                                                                                   \
  template <Windows W, StaticReadable X, StaticReadable GY>                                                           \
    requires LegalGeometry<W, typename X::shape> && DifferentiableOn<Op, Element<X>> && ScalarsAgree<GY, X> &&        \
             GradientHasOutputShape<GY, W, X>                                                                         \
  constexpr auto name##_vjp(const X& x, const GY& gy, const Op& op __VA_ARGS__) {                                     \
    return spec::vjp<W>(op, x, gy);                                                                                   \
  }

// Linear operators pull a gradient from the input's shape alone (A6).
#define CENOTE_LINEAR_POOL(name, Op, Windows, ...)                                                                 \
  CENOTE_POOL(name, Op, Windows, __VA_ARGS__)                                                                      \
  template <Readable GY>                                                                                           \
    requires DifferentiableOn<Op, Element<GY>>                                                                     \
  Tensor<Element<GY>> name##_vjp(const Dims& in, const GY& gy, const Windows& windows, const Op& op __VA_ARGS__) { \
    return detail::pulled<Element<GY>>(#name "_vjp", op, resolve(in, windows, #name "_vjp"), read(gy));            \
  }

// Selecting operators say which tap won.
#define CENOTE_SELECTING_POOL(name, Op, Windows, ...)                                                              \
  CENOTE_POOL(name, Op, Windows, __VA_ARGS__)                                                                      \
  template <Readable X>                                                                                            \
    requires OperatorOn<Op, Element<X>>                                                                            \
  ValuesAndIndices<Element<X>> name##_with_indices(const X& x, const Windows& windows, const Op& op __VA_ARGS__) { \
    return detail::pooled_with_indices<Element<X>>(#name "_with_indices", op,                                      \
                                                   resolve(x.dims(), windows, #name "_with_indices"), read(x));    \
  }

CENOTE_SELECTING_POOL(max_pool, Max, Sliding, = {})
CENOTE_SELECTING_POOL(adaptive_max_pool, Max, Adaptive, = {})
CENOTE_SELECTING_POOL(global_max_pool, Max, Global, = {.ties = Ties::all})

CENOTE_SELECTING_POOL(min_pool, Min, Sliding, = {})
CENOTE_SELECTING_POOL(adaptive_min_pool, Min, Adaptive, = {})
CENOTE_SELECTING_POOL(global_min_pool, Min, Global, = {.ties = Ties::all})

CENOTE_LINEAR_POOL(avg_pool, Average, Sliding, = {})
CENOTE_LINEAR_POOL(adaptive_avg_pool, Average, Adaptive, = {})
CENOTE_LINEAR_POOL(global_avg_pool, Average, Global, = {})

CENOTE_LINEAR_POOL(sum_pool, Sum, Sliding, = {})
CENOTE_LINEAR_POOL(adaptive_sum_pool, Sum, Adaptive, = {})
CENOTE_LINEAR_POOL(global_sum_pool, Sum, Global, = {})

CENOTE_POOL(smooth_max_pool, SmoothMax, Sliding)  // beta has no default: say {.beta = 10}
CENOTE_POOL(adaptive_smooth_max_pool, SmoothMax, Adaptive)
CENOTE_POOL(global_smooth_max_pool, SmoothMax, Global)

CENOTE_POOL(lp_pool, Lp, Sliding)  // neither has p: say {.p = 2}
CENOTE_POOL(adaptive_lp_pool, Lp, Adaptive)
CENOTE_POOL(global_lp_pool, Lp, Global)

#undef CENOTE_POOL
#undef CENOTE_LINEAR_POOL
#undef CENOTE_SELECTING_POOL

// Any reducer over the taps of each window: Reduce{function of a Window}, or fold(init, step). Forward only.
template <Readable X, class F>
Tensor<Element<X>> reduce_pool(const X& x, const Sliding& windows, const Reduce<F>& reduce) {
  return detail::pooled<Element<X>>("reduce_pool", reduce, resolve(x.dims(), windows, "reduce_pool"), read(x));
}
template <Readable X, class F>
Tensor<Element<X>> adaptive_reduce_pool(const X& x, const Adaptive& windows, const Reduce<F>& reduce) {
  return detail::pooled<Element<X>>("adaptive_reduce_pool", reduce, resolve(x.dims(), windows, "adaptive_reduce_pool"),
                                    read(x));
}
template <Readable X, class F>
Tensor<Element<X>> global_reduce_pool(const X& x, const Global& windows, const Reduce<F>& reduce) {
  return detail::pooled<Element<X>>("global_reduce_pool", reduce, resolve(x.dims(), windows, "global_reduce_pool"),
                                    read(x));
}

}  // namespace cenote

#include "cenote/torch_names.hpp"  // IWYU pragma: export
