// Shapes in types: the verbs for tensors whose shape, and a geometry whose every number, is known to the compiler.
// Each rule is a concept of its own, so that a broken one is named in the compiler's message.
#pragma once

#include "cenote/spec.hpp"

namespace cenote {

namespace detail {

template <auto G, class S>
inline constexpr Resolved resolved = try_resolve(S::dims, G);

template <auto G, class S>
constexpr bool obeys(std::initializer_list<Rule> rules) {
  const auto& problem = resolved<G, S>.problem;
  return !problem || std::find(rules.begin(), rules.end(), problem->rule) == rules.end();
}

}  // namespace detail

// A geometry G written for an input of shape S: one concept per rule.
template <auto G, class S>
concept KernelIsPositive = detail::obeys<G, S>({Rule::kernel_positive});
template <auto G, class S>
concept StrideIsPositive = detail::obeys<G, S>({Rule::stride_positive});
template <auto G, class S>
concept DilationIsPositive = detail::obeys<G, S>({Rule::dilation_positive});
template <auto G, class S>
concept PaddingIsNotNegative = detail::obeys<G, S>({Rule::padding_nonnegative});
template <auto G, class S>
concept WindowFits = detail::obeys<G, S>({Rule::window_fits, Rule::window_starts});
template <auto G, class S>
concept OutputIsPositive = detail::obeys<G, S>({Rule::output_positive});
template <auto G, class S>
concept PooledAxesAreNotEmpty = detail::obeys<G, S>({Rule::pooled_axis_empty});
template <auto G, class S>
concept AxesAreLegal =
    detail::obeys<G, S>({Rule::kernel_missing, Rule::axes_ambiguous, Rule::axes_missing, Rule::axes_conflict,
                         Rule::axes_count, Rule::length_mismatch, Rule::axis_range, Rule::axis_unique});
template <auto G, class S>
concept SizesFitIn64Bits = detail::obeys<G, S>({Rule::size_overflow});

template <auto G, class S>
concept LegalGeometry =
    KernelIsPositive<G, S> && StrideIsPositive<G, S> && DilationIsPositive<G, S> && PaddingIsNotNegative<G, S> &&
    WindowFits<G, S> && OutputIsPositive<G, S> && PooledAxesAreNotEmpty<G, S> && AxesAreLegal<G, S> &&
    SizesFitIn64Bits<G, S> && !detail::resolved<G, S>.problem.has_value();

// The checked geometry, and the shape of its results.
template <auto G, class S>
  requires LegalGeometry<G, S>
inline constexpr Geometry geometry_of = detail::resolved<G, S>.geometry;
template <auto G, class S>
struct OutputDims {
  static constexpr Dims dims = geometry_of<G, S>.out();
};
template <auto G, class S>
using OutputShape = ShapeOf<OutputDims<G, S>>;

// A tangent has the shape of its input, a gradient the shape of the output.
template <class A, class X>
concept TangentHasInputShape = std::same_as<typename A::shape, typename X::shape>;
template <class A, auto G, class X>
concept GradientHasOutputShape = std::same_as<typename A::shape, OutputShape<G, typename X::shape>>;

namespace spec {

// forward<Sliding{.kernel = {2, 2}}>(Max{}, x): the result's type carries the output shape.
template <auto G, class Op, StaticReadable X>
  requires LegalGeometry<G, typename X::shape> && OperatorOn<Op, Element<X>>
constexpr auto forward(const Op& op, const X& x) {
  Tensor<Element<X>, OutputShape<G, typename X::shape>> y;
  spec::forward<Element<X>>(op, geometry_of<G, typename X::shape>, read(x), y.view());
  return y;
}

template <auto G, class Op, StaticReadable X, StaticReadable DX>
  requires LegalGeometry<G, typename X::shape> && DifferentiableOn<Op, Element<X>> && ScalarsAgree<DX, X> &&
           TangentHasInputShape<DX, X>
constexpr auto jvp(const Op& op, const X& x, const DX& dx) {
  Tensor<Element<X>, OutputShape<G, typename X::shape>> dy;
  spec::jvp<Element<X>>(op, geometry_of<G, typename X::shape>, read(x), read(dx), dy.view());
  return dy;
}

template <auto G, class Op, StaticReadable X, StaticReadable GY>
  requires LegalGeometry<G, typename X::shape> && DifferentiableOn<Op, Element<X>> && ScalarsAgree<GY, X> &&
           GradientHasOutputShape<GY, G, X>
constexpr auto vjp(const Op& op, const X& x, const GY& gy) {
  Tensor<Element<X>, typename X::shape> gx;
  spec::vjp<Element<X>>(op, geometry_of<G, typename X::shape>, read(x), read(gy), gx.view());
  return gx;
}

}  // namespace spec
}  // namespace cenote
