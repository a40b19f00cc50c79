// A graph run once, with owning results: for scripts, tests and small programs. What runs many times takes a Program
// and a Workspace, which allocate once.
#pragma once

#include "cenote/dual.hpp"
#include "cenote/graph/program.hpp"

namespace cenote {

template <class T>
using Tensors = std::vector<Tensor<T>>;

namespace detail {

template <class T>
std::vector<View<const T>> views(const Tensors<T>& tensors) {
  std::vector<View<const T>> out;
  for (const Tensor<T>& tensor : tensors) out.push_back(tensor.view());
  return out;
}
template <class T>
Tensors<T> owned(Arrays<T> arrays) {
  Tensors<T> out;
  for (const View<const T>& array : arrays)
    out.emplace_back(array.dims(), std::vector<T>(array.data(), array.data() + array.size()));
  return out;
}

}  // namespace detail

template <class T>
Tensors<T> evaluate(const Graph<T>& g, const std::type_identity_t<Tensors<T>>& inputs) {
  const Program<T> program(g);
  Workspace<T> workspace(program);
  return detail::owned<T>(program.evaluate(workspace, detail::views(inputs)));
}

template <class T>
struct OwnedJvp {
  Tensors<T> values, tangents;
};
template <class T>
OwnedJvp<T> jvp(const Graph<T>& g, const std::type_identity_t<Tensors<T>>& inputs,
                const std::type_identity_t<Tensors<T>>& tangents, const std::vector<Handle>& by = {}) {
  const Program<T> program(g, {.by = by});
  Workspace<T> workspace(program);
  const auto result = program.jvp(workspace, detail::views(inputs), detail::views(tangents));
  return {detail::owned<T>(result.values), detail::owned<T>(result.tangents)};
}

template <class T>
struct OwnedVjp {
  Tensors<T> values, gradients;
};
template <class T>
OwnedVjp<T> value_and_vjp(const Graph<T>& g, const std::type_identity_t<Tensors<T>>& inputs,
                          const std::type_identity_t<Tensors<T>>& output_gradients,
                          const std::vector<Handle>& by = {}) {
  const Program<T> program(g, {.by = by});
  Workspace<T> workspace(program);
  const auto result = program.value_and_vjp(workspace, detail::views(inputs), detail::views(output_gradients));
  return {detail::owned<T>(result.values), detail::owned<T>(result.gradients)};
}
template <class T>
Tensors<T> vjp(const Graph<T>& g, const std::type_identity_t<Tensors<T>>& inputs,
               const std::type_identity_t<Tensors<T>>& output_gradients, const std::vector<Handle>& by = {}) {
  return value_and_vjp(g, inputs, output_gradients, by).gradients;
}

// ---- second order -------------------------------------------------------------------------------------------------

template <class T>
struct HessianVector {
  T value;
  Tensors<T> gradients;  // by every input
  Tensors<T> products;   // the derivatives of the gradients in the direction
};

// Gradient and Hessian-vector product of a program with one number as its output. `build(g)` adds the program to any
// graph and names its output: it is built for dual numbers here, and the VJP of that graph, run once, carries the
// derivative of the gradient in its tangents.
template <class T, class Build>
HessianVector<T> hessian_vector_product(Build&& build, const Tensors<T>& inputs, const Tensors<T>& direction) {
  using D = Dual<T>;
  constexpr std::string_view caller = "hessian_vector_product";
  Graph<D> g;
  build(g);
  if (direction.size() != inputs.size())
    raise({.rule = Rule::array_count,
           .argument = "direction",
           .got = static_cast<Index>(direction.size()),
           .limit = static_cast<Index>(inputs.size()),
           .text = "the inputs"},
          caller);
  Tensors<D> points;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    spec::detail::check_shape(caller, "direction", direction[k].dims(), inputs[k].dims());
    Tensor<D> point(inputs[k].dims());
    for (std::size_t i = 0; i < point.data().size(); ++i)
      point.data()[i] = D(inputs[k].data()[i], direction[k].data()[i]);
    points.push_back(std::move(point));
  }
  const auto [values, gradients] = value_and_vjp(g, points, Tensors<D>{Tensor<D>(Dims{}, D(Index{1}))});
  HessianVector<T> out{values[0].data()[0].value, {}, {}};
  for (const Tensor<D>& gradient : gradients) {
    Tensor<T>& value = out.gradients.emplace_back(gradient.dims());
    Tensor<T>& tangent = out.products.emplace_back(gradient.dims());
    for (std::size_t i = 0; i < gradient.data().size(); ++i) {
      value.data()[i] = gradient.data()[i].value;
      tangent.data()[i] = gradient.data()[i].tangent;
    }
  }
  return out;
}

}  // namespace cenote
