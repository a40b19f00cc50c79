// Nodes that compute nothing: reshape and flatten, which cost nothing either, and concatenate.
#pragma once

#include "cenote/graph/wiring.hpp"

namespace cenote {

namespace detail {

constexpr Fit fit_reshape(const Dims& x, const Dims& shape) {
  if (const auto problem = size_problem(shape, "shape")) return misfit(*problem, "as many elements");
  if (volume(x) != volume(shape))
    return misfit({Rule::element_count, "x", -1, volume(x), volume(shape)}, "as many elements as the new shape");
  return {shape};
}

// Axes `from` to the last become one.
constexpr Fit fit_flatten(const Dims& x, int from) {
  const int axis = from < 0 ? from + x.rank : from;
  if (axis < 0 || axis >= x.rank) return misfit({Rule::axis_range, "from", -1, from, x.rank}, "one of the axes");
  Dims out;
  Index last = 1;
  for (int a = 0; a < x.rank; ++a) {
    if (a < axis)
      out.push_back(x[a]);
    else
      last *= x[a];
  }
  out.push_back(last);
  return {out};
}

constexpr Fit fit_concatenate(std::span<const Dims> xs, int along) {
  constexpr std::string_view expected = "shapes that differ on that axis only";
  if (xs.empty()) return misfit({Rule::inputs_expected, "xs", -1, 0, 1}, "at least one input");
  Dims out = xs[0];
  const int axis = along < 0 ? along + out.rank : along;
  if (axis < 0 || axis >= out.rank) return misfit({Rule::axis_range, "axis", -1, along, out.rank}, expected);
  for (std::size_t i = 1; i < xs.size(); ++i) {
    if (xs[i].rank != out.rank) return misfit({Rule::rank_mismatch, "xs", -1, xs[i].rank, out.rank}, expected);
    for (int a = 0; a < out.rank; ++a)
      if (a != axis && xs[i][a] != out[a]) return misfit({Rule::shape_mismatch, "xs", a, xs[i][a], out[a]}, expected);
    out[axis] += xs[i][axis];
  }
  return {out};
}

template <class T>
Node<T> reshape_node(std::string_view name, const Handle& x, const Dims& shape) {
  return {.name = std::string(name),
          .inputs = {x},
          .shape = shape,
          .forward = [](const Forward<T>& f) { copy_into(f.x[0], f.y); },
          .jvp = [](const Jvp<T>& j) { copy_into(j.dx[0], j.dy); },
          .vjp = [](const Vjp<T>& v) { copy_into(v.gy, v.gx[0]); },
          .reads = Reads::nothing,
          .alias = true};
}

template <class T>
Node<T> concatenate_node(Graph<T>& g, const std::vector<Handle>& xs, int along) {
  constexpr std::string_view name = "concatenate";
  std::vector<Dims> dims;
  for (std::size_t i = 0; i < xs.size(); ++i) dims.push_back(g.dims(xs[i], name, "xs[" + std::to_string(i) + "]"));
  const Fit fit = fit_concatenate(dims, along);
  if (fit.problem) raise_misfit(fit, name, dims);
  const int axis = along < 0 ? along + fit.dims.rank : along;

  // Seen as rows, one for each index before the axis, an input is a piece of every row of the output.
  std::vector<std::size_t> pieces;
  std::size_t row = 0;
  for (const Dims& shape : dims) {
    std::size_t piece = 1;
    for (int a = axis; a < shape.rank; ++a) piece *= static_cast<std::size_t>(shape[a]);
    pieces.push_back(piece);
    row += piece;
  }
  // move(i, from the output, from the input, length) for every piece of every row.
  const auto each_piece = [pieces, rows = row == 0 ? 0 : cells(fit.dims) / row](auto&& move) {
    for (std::size_t r = 0, out = 0; r < rows; ++r)
      for (std::size_t i = 0; i < pieces.size(); out += pieces[i++]) move(i, out, r * pieces[i], pieces[i]);
  };
  const auto join = [each_piece](Values<T> in, std::span<T> out) {
    each_piece([&](std::size_t i, std::size_t at, std::size_t from, std::size_t length) {
      if (in[i].empty())
        zero(out.subspan(at, length));
      else
        copy_into(in[i].subspan(from, length), out.subspan(at, length));
    });
  };
  Node<T> node{.name = std::string(name), .inputs = xs, .shape = fit.dims};
  node.forward = [join](const Forward<T>& f) { join(f.x, f.y); };
  node.jvp = [join](const Jvp<T>& j) { join(j.dx, j.dy); };
  node.vjp = [each_piece](const Vjp<T>& v) {
    each_piece([&](std::size_t i, std::size_t at, std::size_t to, std::size_t length) {
      if (!v.gx[i].empty()) copy_into(v.gy.subspan(at, length), v.gx[i].subspan(to, length));
    });
  };
  node.parameters = "axis " + std::to_string(axis);
  node.reads = Reads::nothing;
  node.selective = true;
  return node;
}

}  // namespace detail

// The same elements, row-major, as another shape.
template <class T>
Handle reshape(Graph<T>& g, const Handle& x, const Dims& shape) {
  const Dims from = g.dims(x, "reshape", "x");
  return g.add(
      detail::reshape_node<T>("reshape", x, detail::checked(detail::fit_reshape(from, shape), "reshape", {from})));
}
template <class H, class S>
concept ElementsAgree = TypedHandle<H> && StaticShape<S> && (!detail::fit_reshape(H::shape::dims, S::dims).problem);
template <StaticShape S, class T, TypedHandle H>
  requires ElementsAgree<H, S>
Var<S> reshape(Graph<T>& g, const H& x) {
  return g.template add<S>(detail::reshape_node<T>("reshape", x, S::dims));
}

// Axes `from` to the last as one: what stands between convolutions and a linear layer.
template <class T>
Handle flatten(Graph<T>& g, const Handle& x, int from) {
  const Dims in = g.dims(x, "flatten", "x");
  return g.add(detail::reshape_node<T>("flatten", x, detail::checked(detail::fit_flatten(in, from), "flatten", {in})));
}
namespace detail {
template <class H, int From>
constexpr bool has_axis() {
  if constexpr (TypedHandle<H>) return !fit_flatten(H::shape::dims, From).problem;
  return true;
}
template <class H, int From>
struct FlatDims {
  static constexpr Dims dims = fit_flatten(H::shape::dims, From).dims;
};
}  // namespace detail
template <class H, int From>
concept HasAxis = AnyHandle<H> && detail::has_axis<H, From>();
template <int From = 1, class T, class H>
  requires HasAxis<H, From>
auto flatten(Graph<T>& g, const H& x) {
  if constexpr (TypedHandle<H>) {
    using S = ShapeOf<detail::FlatDims<H, From>>;
    return g.template add<S>(detail::reshape_node<T>("flatten", x, S::dims));
  } else {
    return flatten(g, x, From);
  }
}

// Arrays one after the other along an axis; they agree on all others.
template <class T>
Handle concatenate(Graph<T>& g, const std::vector<Handle>& xs, int axis) {
  return g.add(detail::concatenate_node(g, xs, axis));
}
template <int Axis, class... H>
concept ShapesJoin = (TypedHandle<H> && ...) && (!detail::fit_concatenate(std::array{H::shape::dims...}, Axis).problem);
template <int Axis, class... H>
struct JoinedDims {
  static constexpr Dims dims = detail::fit_concatenate(std::array{H::shape::dims...}, Axis).dims;
};
template <int Axis, class T, TypedHandle... H>
  requires ShapesJoin<Axis, H...>
auto concatenate(Graph<T>& g, const H&... xs) {
  using S = ShapeOf<JoinedDims<Axis, H...>>;
  return g.template add<S>(detail::concatenate_node(g, std::vector<Handle>{xs...}, Axis));
}

}  // namespace cenote
