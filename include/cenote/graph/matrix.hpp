// Nodes that multiply matrices: matmul, and linear, a fully connected layer.
#pragma once

#include "cenote/graph/product.hpp"
#include "cenote/graph/wiring.hpp"

namespace cenote {

namespace detail {

constexpr Fit fit_matmul(const Dims& a, const Dims& b) {
  constexpr std::string_view expected = "n x k and k x m";
  if (a.rank != 2) return misfit({Rule::rank_mismatch, "a", -1, a.rank, 2}, expected);
  if (b.rank != 2) return misfit({Rule::rank_mismatch, "b", -1, b.rank, 2}, expected);
  if (a[1] != b[0]) return misfit({Rule::shape_mismatch, "b", 0, b[0], a[1]}, expected);
  return {{a[0], b[1]}};
}

// x has any axes before the last; the weights are outputs x inputs, as PyTorch's.
constexpr Fit fit_linear(const Dims& x, const Dims& weights, const Dims* bias) {
  constexpr std::string_view expected = "... x in, out x in and out";
  if (x.rank < 1) return misfit({Rule::rank_mismatch, "x", -1, x.rank, 1}, expected);
  if (weights.rank != 2) return misfit({Rule::rank_mismatch, "weights", -1, weights.rank, 2}, expected);
  if (weights[1] != x[x.rank - 1])
    return misfit({Rule::shape_mismatch, "weights", 1, weights[1], x[x.rank - 1]}, expected);
  if (const auto problem = bias_problem(bias, weights[0])) return misfit(*problem, expected);
  Dims out = x;
  out[x.rank - 1] = weights[0];
  return {out};
}

template <class T>
Node<T> matmul_node(const Handle& a, const Handle& b, Index n, Index k, Index m) {
  Node<T> node{.name = "matmul", .inputs = {a, b}, .shape = {n, m}};
  node.reads = Reads::others;
  node.selective = true;
  node.forward = [=](const Forward<T>& f) { multiply<T>({f.x[0].data(), n, k}, {f.x[1].data(), k, m}, f.y.data()); };
  node.jvp = [=](const Jvp<T>& j) {
    const bool left = !j.dx[0].empty();
    if (left) multiply<T>({j.dx[0].data(), n, k}, {j.x[1].data(), k, m}, j.dy.data());
    if (!j.dx[1].empty()) multiply<T>({j.x[0].data(), n, k}, {j.dx[1].data(), k, m}, j.dy.data(), left);
  };
  node.vjp = [=](const Vjp<T>& v) {
    const Matrix<T> gy{v.gy.data(), n, m};
    if (!v.gx[0].empty()) multiply<T>(gy, {v.x[1].data(), m, k, true}, v.gx[0].data());
    if (!v.gx[1].empty()) multiply<T>({v.x[0].data(), k, n, true}, gy, v.gx[1].data());
  };
  return node;
}

// to[r][c] += bias[c] for every row, and its adjoint.
template <class T>
void add_to_rows(std::span<const T> bias, std::span<T> to) {
  for (std::size_t at = 0; at < to.size(); at += bias.size()) add_into<T>(bias, to.subspan(at, bias.size()));
}
template <class T>
void sum_of_rows(std::span<const T> from, std::span<T> to) {
  zero(to);
  for (std::size_t at = 0; at < from.size(); at += to.size()) add_into<T>(from.subspan(at, to.size()), to);
}

template <class T>
Node<T> linear_node(const std::vector<Handle>& inputs, const Dims& shape, Index n, Index in, Index out) {
  const bool biased = inputs.size() == 3;
  Node<T> node{.name = "linear", .inputs = inputs, .shape = shape};
  node.reads = Reads::others;
  node.selective = true;
  node.forward = [=](const Forward<T>& f) {
    multiply<T>({f.x[0].data(), n, in}, {f.x[1].data(), in, out, true}, f.y.data());
    if (biased) add_to_rows<T>(f.x[2], f.y);
  };
  node.jvp = [=](const Jvp<T>& j) {
    zero(j.dy);
    if (!j.dx[0].empty()) multiply<T>({j.dx[0].data(), n, in}, {j.x[1].data(), in, out, true}, j.dy.data(), true);
    if (!j.dx[1].empty()) multiply<T>({j.x[0].data(), n, in}, {j.dx[1].data(), in, out, true}, j.dy.data(), true);
    if (biased && !j.dx[2].empty()) add_to_rows<T>(j.dx[2], j.dy);
  };
  node.vjp = [=](const Vjp<T>& v) {
    const T* gy = v.gy.data();
    if (!v.gx[0].empty()) multiply<T>({gy, n, out}, {v.x[1].data(), out, in}, v.gx[0].data());
    if (!v.gx[1].empty()) multiply<T>({gy, out, n, true}, {v.x[0].data(), n, in}, v.gx[1].data());
    if (biased && !v.gx[2].empty()) sum_of_rows<T>(v.gy, v.gx[2]);
  };
  return node;
}

template <class T>
Node<T> linear_node(Graph<T>& g, const std::vector<Handle>& inputs) {
  const std::vector<Dims> dims = layer_dims(g, "linear", inputs);
  const Fit fit = fit_linear(dims[0], dims[1], dims.size() == 3 ? &dims[2] : nullptr);
  if (fit.problem) raise_misfit(fit, "linear", dims);
  const Index in = dims[1][1], out = dims[1][0];
  Index rows = 1;
  for (int a = 0; a + 1 < dims[0].rank; ++a) rows *= dims[0][a];
  return linear_node<T>(inputs, fit.dims, rows, in, out);
}

// Whether typed handles fit; what is not known to the compiler is checked when the node is added.
template <class A, class B>
constexpr bool matrices_fit() {
  if constexpr (TypedHandle<A> && TypedHandle<B>) return !fit_matmul(A::shape::dims, B::shape::dims).problem;
  return true;
}
template <class X, class W>
constexpr bool weights_fit() {
  if constexpr (TypedHandle<X> && TypedHandle<W>) return !fit_linear(X::shape::dims, W::shape::dims, nullptr).problem;
  return true;
}
template <class X, class W, class B>
constexpr bool bias_fits() {
  if constexpr (TypedHandle<X> && TypedHandle<W> && TypedHandle<B>)
    return !fit_linear(X::shape::dims, W::shape::dims, &B::shape::dims).problem;
  return weights_fit<X, W>();
}
template <class A, class B>
struct ProductDims {
  static constexpr Dims dims = fit_matmul(A::shape::dims, B::shape::dims).dims;
};
template <class X, class W>
struct LinearDims {
  static constexpr Dims dims = fit_linear(X::shape::dims, W::shape::dims, nullptr).dims;
};

template <template <class, class> class Shaped, class A, class B, class T>
auto add_product(Graph<T>& g, Node<T> node) {
  constexpr bool typed = TypedHandle<A> && TypedHandle<B>;
  return add_shaped<typed, Shaped<A, B>>(g, std::move(node));
}

}  // namespace detail

template <class A, class B>
concept MatricesFit = AnyHandle<A> && AnyHandle<B> && detail::matrices_fit<A, B>();
template <class X, class W>
concept WeightsFit = AnyHandle<X> && AnyHandle<W> && detail::weights_fit<X, W>();
template <class X, class W, class B>
concept WeightsAndBiasFit = AnyHandle<B> && WeightsFit<X, W> && detail::bias_fits<X, W, B>();

// The product of two matrices.
template <class T, class A, class B>
  requires MatricesFit<A, B>
auto matmul(Graph<T>& g, const A& a, const B& b) {
  const Dims left = g.dims(a, "matmul", "a");
  const Dims right = g.dims(b, "matmul", "b");
  detail::checked(detail::fit_matmul(left, right), "matmul", {left, right});
  return detail::add_product<detail::ProductDims, A, B>(g, detail::matmul_node<T>(a, b, left[0], left[1], right[1]));
}

// y = x weights^T + bias over the last axis of x; the weights are outputs x inputs.
template <class T, class X, class W>
  requires WeightsFit<X, W>
auto linear(Graph<T>& g, const X& x, const W& weights) {
  return detail::add_product<detail::LinearDims, X, W>(g, detail::linear_node<T>(g, {x, weights}));
}
template <class T, class X, class W, class B>
  requires WeightsAndBiasFit<X, W, B>
auto linear(Graph<T>& g, const X& x, const W& weights, const B& bias) {
  return detail::add_product<detail::LinearDims, X, W>(g, detail::linear_node<T>(g, {x, weights, bias}));
}

}  // namespace cenote
