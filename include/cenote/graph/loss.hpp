// Nodes that end a training program in one number: softmax cross-entropy and mean squared error.
#pragma once

#include "cenote/graph/pointwise.hpp"

namespace cenote {

namespace detail {

// f32 adds in f64; every other scalar in its own type.
template <class T>
using Adding = std::conditional_t<std::same_as<T, float>, double, T>;

// A node of two inputs of one shape whose output is one number.
template <class T, class A, class B>
Node<T> loss_node(Graph<T>& g, std::string_view name, const A& a, const B& b) {
  Node<T> node = binary(g, name, a, b);
  node.shape = {};
  node.reads = Reads::inputs;
  return node;
}
template <class A, class B>
using LossHandle = std::conditional_t<TypedHandle<A> || TypedHandle<B>, Var<Shape<>>, Handle>;

// log(sum(exp(row))), shifted so that nothing overflows.
template <class T>
T log_sum_exp(std::span<const T> row) {
  T shift = anchor(row[0]);
  for (const T& x : row)
    if (anchor(x) > shift) shift = anchor(x);
  Adding<T> sum(Index{0});
  for (const T& x : row)
    sum = sum + static_cast<Adding<T>>(exp(static_cast<Adding<T>>(x) - static_cast<Adding<T>>(shift)));
  return static_cast<T>(static_cast<Adding<T>>(shift) + static_cast<Adding<T>>(log(sum)));
}

// What softmax cross-entropy computes of one row: log-probabilities are x - log_sum_exp(x).
template <class T>
struct SoftmaxRow {
  std::span<const T> logits, targets;
  T normaliser, mass;  // log_sum_exp of the logits, and the sum of the targets
  SoftmaxRow(std::span<const T> x, std::span<const T> t)
      : logits(x), targets(t), normaliser(log_sum_exp(x)), mass(Index{0}) {
    for (const T& target : t) mass = mass + target;
  }
  [[nodiscard]] T log_probability(std::size_t i) const { return logits[i] - normaliser; }
  // By logit i and by target i.
  [[nodiscard]] T by_logit(std::size_t i) const { return mass * static_cast<T>(exp(log_probability(i))) - targets[i]; }
  [[nodiscard]] T by_target(std::size_t i) const { return T(Index{0}) - log_probability(i); }
};

}  // namespace detail

// The mean over all rows of -sum(targets * log(softmax(logits))), along the last axis. Targets are probabilities: a row
// with a single 1 names a class.
template <Transcendental T, class A, class B>
  requires ShapesAgree<A, B>
auto softmax_cross_entropy(Graph<T>& g, const A& logits, const B& targets) {
  using namespace detail;
  constexpr std::string_view name = "softmax_cross_entropy";
  const Dims dims = g.dims(logits, name, "a");
  if (dims.rank < 1) raise({Rule::rank_mismatch, "a", -1, dims.rank, 1}, name, "inputs scalar; expected ... x classes");
  Node<T> node = loss_node(g, name, logits, targets);
  const auto classes = static_cast<std::size_t>(dims[dims.rank - 1]);
  const std::size_t rows = classes == 0 ? 0 : cells(dims) / classes;
  const T count = static_cast<T>(static_cast<Index>(rows == 0 ? 1 : rows));
  const auto each_row = [=](Values<T> x, auto&& use) {
    for (std::size_t r = 0; r < rows; ++r)
      use(SoftmaxRow<T>(x[0].subspan(r * classes, classes), x[1].subspan(r * classes, classes)), r * classes);
  };
  node.forward = [=](const Forward<T>& f) {
    Adding<T> sum(Index{0});
    each_row(f.x, [&](const SoftmaxRow<T>& row, std::size_t) {
      for (std::size_t i = 0; i < classes; ++i)
        sum = sum - static_cast<Adding<T>>(row.targets[i] * row.log_probability(i));
    });
    f.y[0] = static_cast<T>(sum) / count;
  };
  node.jvp = [=](const Jvp<T>& j) {
    T sum(Index{0});
    each_row(j.x, [&](const SoftmaxRow<T>& row, std::size_t at) {
      for (std::size_t i = 0; i < classes; ++i) {
        if (!j.dx[0].empty()) sum = sum + row.by_logit(i) * j.dx[0][at + i];
        if (!j.dx[1].empty()) sum = sum + row.by_target(i) * j.dx[1][at + i];
      }
    });
    j.dy[0] = sum / count;
  };
  node.vjp = [=](const Vjp<T>& v) {
    const T each = v.gy[0] / count;
    each_row(v.x, [&](const SoftmaxRow<T>& row, std::size_t at) {
      for (std::size_t i = 0; i < classes; ++i) {
        if (!v.gx[0].empty()) v.gx[0][at + i] = row.by_logit(i) * each;
        if (!v.gx[1].empty()) v.gx[1][at + i] = row.by_target(i) * each;
      }
    });
  };
  return detail::add_as<LossHandle<A, B>>(g, std::move(node));
}

// The mean of (a - b)^2.
template <class T, class A, class B>
  requires ShapesAgree<A, B>
auto mean_squared_error(Graph<T>& g, const A& a, const B& b) {
  using namespace detail;
  const Index elements = volume(g.dims(a, "mean_squared_error", "a"));
  Node<T> node = loss_node(g, "mean_squared_error", a, b);
  const T count = static_cast<T>(elements == 0 ? 1 : elements);
  const T two(Index{2});
  node.forward = [=](const Forward<T>& f) {
    Adding<T> sum(Index{0});
    for (std::size_t i = 0; i < f.x[0].size(); ++i) {
      const T apart = f.x[0][i] - f.x[1][i];
      sum = sum + static_cast<Adding<T>>(apart * apart);
    }
    f.y[0] = static_cast<T>(sum) / count;
  };
  node.jvp = [=](const Jvp<T>& j) {
    T sum(Index{0});
    for (std::size_t i = 0; i < j.x[0].size(); ++i) {
      const T apart = j.x[0][i] - j.x[1][i];
      if (!j.dx[0].empty()) sum = sum + apart * j.dx[0][i];
      if (!j.dx[1].empty()) sum = sum - apart * j.dx[1][i];
    }
    j.dy[0] = two * sum / count;
  };
  node.vjp = [=](const Vjp<T>& v) {
    const T each = two * v.gy[0] / count;
    for (std::size_t i = 0; i < v.gx[0].size(); ++i) v.gx[0][i] = (v.x[0][i] - v.x[1][i]) * each;
    for (std::size_t i = 0; i < v.gx[1].size(); ++i) v.gx[1][i] = (v.x[1][i] - v.x[0][i]) * each;
  };
  return detail::add_as<LossHandle<A, B>>(g, std::move(node));
}

}  // namespace cenote
