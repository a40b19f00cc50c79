// Padding as an array operation: `pad` surrounds a tensor with a value, `unpad` removes what was added.
#pragma once

#include "cenote/geometry.hpp"

namespace cenote {

namespace detail {

// Sizes after padding (or after removing it), and the padding of every axis; or the rule that is broken.
struct PadPlan {
  Dims dims{};
  std::array<Pad, max_rank> pads{};
  std::optional<Problem> problem{};
};

// The pads are those of the last axes, as many as there are entries, or of all axes for a single number.
constexpr PadPlan plan_pads(const Dims& in, const Pads& pads, bool remove) {
  PadPlan plan{in};
  const int count = pads.every ? in.rank : pads.rank;
  if (pads.kind != Pads::Kind::given) return {in, {}, Problem{Rule::padding_given, "padding"}};
  if (count > in.rank) return {in, {}, Problem{Rule::axes_count, "padding", -1, count, in.rank}};
  for (int i = 0; i < count; ++i) {
    const int a = in.rank - count + i;
    const auto [low, high] = plan.pads[static_cast<std::size_t>(a)] = pads[i];
    Index& size = plan.dims[a];
    if (low < 0 || high < 0) return {in, {}, Problem{Rule::padding_nonnegative, "padding", a, low < 0 ? low : high}};
    if (remove && (low > size || high > size - low))
      return {in, {}, Problem{Rule::unpad_fits, "padding", a, low > size ? low : high, size - (low > size ? 0 : low)}};
    if (remove)
      size -= low + high;
    else if (__builtin_add_overflow(size, low, &size) || __builtin_add_overflow(size, high, &size))
      return {in, {}, Problem{Rule::size_overflow, "padding", a, low, high}};
  }
  return plan;
}
constexpr PadPlan checked_pads(const Dims& in, const Pads& pads, bool remove) {
  const PadPlan plan = plan_pads(in, pads, remove);
  if (plan.problem) raise_unresolved(*plan.problem, remove ? "unpad" : "pad", in);
  return plan;
}

}  // namespace detail

// Sizes after padding, and after removing padding.
constexpr Dims padded_dims(const Dims& in, const Pads& pads) { return detail::checked_pads(in, pads, false).dims; }
constexpr Dims unpadded_dims(const Dims& in, const Pads& pads) { return detail::checked_pads(in, pads, true).dims; }

// A view of `x` without its padding. No copy.
template <class T>
constexpr View<T> unpadded(const View<T>& x, const Pads& pads) {
  const detail::PadPlan plan = detail::checked_pads(x.dims(), pads, true);
  if (volume(plan.dims) == 0) return View<T>(x.data(), plan.dims);
  Index offset = 0;
  for (int a = 0; a < x.rank(); ++a) offset += plan.pads[static_cast<std::size_t>(a)].low * x.strides()[a];
  return View<T>(x.data() + offset, plan.dims, x.strides());
}

// `x` surrounded by `value`, as many cells as `pads` says on each side of its last axes (all axes for one number).
template <Readable X>
constexpr Tensor<Element<X>> pad(const X& x, const Pads& pads, const Element<X>& value = Element<X>(Index{0})) {
  Tensor<Element<X>> out(padded_dims(x.dims(), pads), value);
  copy_elements<Element<X>>(read(x), unpadded(out.view(), pads));
  return out;
}

// `x` without the padding that `pad` put round it.
template <Readable X>
constexpr Tensor<Element<X>> unpad(const X& x, const Pads& pads) {
  Tensor<Element<X>> out(unpadded_dims(x.dims(), pads));
  copy_elements<Element<X>>(unpadded(read(x), pads), out.view());
  return out;
}

// The same with shapes in types: pad<Pads(1)>(x).
template <class S, auto P>
concept PaddingIsLegal = !detail::plan_pads(S::dims, P, false).problem.has_value();
template <class S, auto P>
concept PaddingCanBeRemoved = !detail::plan_pads(S::dims, P, true).problem.has_value();

namespace detail {

template <class S, auto P, bool Remove>
struct PadDims {
  static constexpr Dims dims = plan_pads(S::dims, P, Remove).dims;
};

}  // namespace detail

template <Pads P, StaticReadable X>
  requires PaddingIsLegal<typename X::shape, P>
constexpr auto pad(const X& x, const Element<X>& value = Element<X>(Index{0})) {
  Tensor<Element<X>, ShapeOf<detail::PadDims<typename X::shape, P, false>>> out;
  for (Element<X>& cell : out.data()) cell = value;
  copy_elements<Element<X>>(read(x), unpadded<Element<X>>(out.view(), P));
  return out;
}

template <Pads P, StaticReadable X>
  requires PaddingCanBeRemoved<typename X::shape, P>
constexpr auto unpad(const X& x) {
  Tensor<Element<X>, ShapeOf<detail::PadDims<typename X::shape, P, true>>> out;
  copy_elements<Element<X>>(unpadded(read(x), P), View<Element<X>>(out.view()));
  return out;
}

}  // namespace cenote
