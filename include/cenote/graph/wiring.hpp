// What the builders of nodes share: one description of which shapes fit together, used by the compiler for typed
// handles and at build time for the others.
#pragma once

#include <array>

#include "cenote/graph/build.hpp"

namespace cenote {

// Handles that may be connected where equal shapes are asked for.
template <class A, class B>
concept ShapesAgree = AnyHandle<A> && AnyHandle<B> &&
                      (UntypedHandle<A> || UntypedHandle<B> || std::same_as<typename A::shape, typename B::shape>);

namespace detail {

// The shape of a node's output, or the rule that its inputs break and what they should have been.
struct Fit {
  Dims dims{};
  std::optional<Problem> problem{};
  std::string_view expected{};
};
constexpr Fit misfit(const Problem& problem, std::string_view expected) { return {{}, problem, expected}; }

// The first axis on which b differs from a.
constexpr Fit fit_equal(const Dims& a, const Dims& b) {
  constexpr std::string_view expected = "equal shapes";
  if (a.rank != b.rank) return misfit({Rule::rank_mismatch, "b", -1, b.rank, a.rank}, expected);
  for (int i = 0; i < a.rank; ++i)
    if (a[i] != b[i]) return misfit({Rule::shape_mismatch, "b", i, b[i], a[i]}, expected);
  return {a};
}

[[gnu::cold, gnu::noinline, noreturn]] inline void raise_misfit(const Fit& fit, std::string_view name,
                                                                std::span<const Dims> inputs) {
  raise(*fit.problem, name, "inputs " + shapes_in_words(inputs) + "; expected " + std::string(fit.expected));
}
inline const Dims& checked(const Fit& fit, std::string_view name, std::initializer_list<Dims> inputs) {
  if (fit.problem) raise_misfit(fit, name, {inputs.begin(), inputs.size()});
  return fit.dims;
}

// A node whose handle is of type H.
template <AnyHandle H, class T>
H add_as(Graph<T>& g, Node<T> node) {
  if constexpr (TypedHandle<H>)
    return g.template add<typename H::shape>(std::move(node));
  else
    return g.add(std::move(node));
}

// A node whose handle has its shape in its type if those of its inputs do; `Shaped` has it as `dims`.
template <bool typed, class Shaped, class T>
auto add_shaped(Graph<T>& g, Node<T> node) {
  if constexpr (typed)
    return g.template add<cenote::ShapeOf<Shaped>>(std::move(node));
  else
    return g.add(std::move(node));
}

// Of layers whose inputs are x, weights and, perhaps, a bias: their shapes, and what is wrong with a bias.
template <class T>
std::vector<Dims> layer_dims(const Graph<T>& g, std::string_view name, const std::vector<Handle>& inputs) {
  static constexpr std::array<std::string_view, 3> names{"x", "weights", "bias"};
  std::vector<Dims> dims;
  for (std::size_t i = 0; i < inputs.size(); ++i) dims.push_back(g.dims(inputs[i], name, names[i]));
  return dims;
}
constexpr std::optional<Problem> bias_problem(const Dims* bias, Index outputs) {
  if (bias == nullptr) return {};
  if (bias->rank != 1) return Problem{Rule::rank_mismatch, "bias", -1, bias->rank, 1};
  if ((*bias)[0] != outputs) return Problem{Rule::shape_mismatch, "bias", 0, (*bias)[0], outputs};
  return {};
}

template <class A, class B>
using Joined = std::conditional_t<TypedHandle<A>, A, B>;  // the typed one of two that agree

}  // namespace detail
}  // namespace cenote
