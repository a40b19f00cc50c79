// Nodes that work element by element: add, sub, mul, scale, neg, relu, tanh, exp, log, and `pointwise` for any function
// of one element.
#pragma once

#include "cenote/graph/wiring.hpp"
#include "cenote/scalar.hpp"

namespace cenote {

// y = value(x) for every element. derivative(x, y, d) is d * dy/dx; of x and y it may look at those that R names.
template <Reads R, class T, AnyHandle H, class Value, class Derivative>
H pointwise(Graph<T>& g, const std::string& name, const H& x, Value value, Derivative derivative,
            const std::string& parameters = "") {
  Node<T> node{.name = name, .inputs = {x}};
  node.shape = g.dims(x, node.name, "x");
  node.parameters = parameters;
  node.reads = R;
  node.forward = [value](const Forward<T>& f) {
    for (std::size_t i = 0; i < f.y.size(); ++i) f.y[i] = value(f.x[0][i]);
  };
  const auto weigh = [derivative](Values<T> in, std::span<const T> out, std::span<const T> from, std::span<T> to) {
    static const T nothing(Index{0});
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = derivative(reads_inputs(R) ? in[0][i] : nothing, reads_output(R) ? out[i] : nothing, from[i]);
  };
  node.jvp = [weigh](const Jvp<T>& j) { weigh(j.x, j.y, j.dx[0], j.dy); };
  node.vjp = [weigh](const Vjp<T>& v) { weigh(v.x, v.y, v.gy, v.gx[0]); };
  return detail::add_as<H>(g, std::move(node));
}

template <class T, AnyHandle H>
H neg(Graph<T>& g, const H& x) {
  const auto turn = [](const T& a) { return T(Index{0}) - a; };
  return pointwise<Reads::nothing>(g, "neg", x, turn, [=](const T&, const T&, const T& d) { return turn(d); });
}

// x times a constant.
template <class T, AnyHandle H>
H scale(Graph<T>& g, const H& x, const std::type_identity_t<T>& by) {
  std::string words;
  if constexpr (std::convertible_to<T, double>) words = "by " + detail::to_text(static_cast<double>(by));
  return pointwise<Reads::nothing>(
      g, "scale", x, [by](const T& a) { return by * a; }, [by](const T&, const T&, const T& d) { return by * d; },
      words);
}

// The larger of x and 0; NaN stays NaN. The derivative is selected, not multiplied (M8); at 0 it is 0.
template <class T, AnyHandle H>
H relu(Graph<T>& g, const H& x) {
  return pointwise<Reads::output>(
      g, "relu", x,
      [](const T& a) {
        const T zero(Index{0});
        if constexpr (set_valued<T>)
          return max_of(a, zero);
        else
          return a > zero || is_nan(a) ? a : zero;
      },
      [](const T&, const T& y, const T& d) {
        const T zero(Index{0});
        if (y > zero) return d;
        if (y == zero) return zero;
        if constexpr (set_valued<T>) return hull(zero, T(Index{1})) * d;  // on both sides of the corner
        return d;                                                         // NaN
      });
}

template <Transcendental T, AnyHandle H>
H tanh(Graph<T>& g, const H& x) {
  return pointwise<Reads::output>(
      g, "tanh", x, [](const T& a) { return T(tanh(a)); },
      [](const T&, const T& y, const T& d) { return T((T(Index{1}) - y * y) * d); });
}

template <Transcendental T, AnyHandle H>
H exp(Graph<T>& g, const H& x) {
  return pointwise<Reads::output>(
      g, "exp", x, [](const T& a) { return T(exp(a)); }, [](const T&, const T& y, const T& d) { return T(y * d); });
}

template <Transcendental T, AnyHandle H>
H log(Graph<T>& g, const H& x) {
  return pointwise<Reads::inputs>(
      g, "log", x, [](const T& a) { return T(log(a)); }, [](const T& a, const T&, const T& d) { return T(d / a); });
}

namespace detail {

// A node of two inputs of one shape.
template <class T, class A, class B>
Node<T> binary(Graph<T>& g, std::string_view name, const A& a, const B& b) {
  const Dims first = g.dims(a, name, "a");
  const Dims second = g.dims(b, name, "b");
  Node<T> node{.name = std::string(name), .inputs = {a, b}};
  node.shape = checked(fit_equal(first, second), name, {first, second});
  node.reads = Reads::nothing;
  node.selective = true;
  return node;
}

// y = a + sign * b, and the same for tangents; gradients pass as they are, or turned round.
template <class T, class H, class A, class B>
H sum_of_two(Graph<T>& g, std::string_view name, const A& a, const B& b, bool plus) {
  Node<T> node = binary(g, name, a, b);
  const auto combine = [plus](Values<T> in, std::span<T> out) {
    const T zero(Index{0});
    for (std::size_t i = 0; i < out.size(); ++i) {
      const T& first = in[0].empty() ? zero : in[0][i];
      const T& second = in[1].empty() ? zero : in[1][i];
      out[i] = plus ? first + second : first - second;
    }
  };
  node.forward = [combine](const Forward<T>& f) { combine(f.x, f.y); };
  node.jvp = [combine](const Jvp<T>& j) { combine(j.dx, j.dy); };
  node.vjp = [plus](const Vjp<T>& v) {
    if (!v.gx[0].empty()) copy_into(v.gy, v.gx[0]);
    for (std::size_t i = 0; i < v.gx[1].size(); ++i) v.gx[1][i] = plus ? v.gy[i] : T(Index{0}) - v.gy[i];
  };
  return add_as<H>(g, std::move(node));
}

}  // namespace detail

template <class T, class A, class B>
  requires ShapesAgree<A, B>
auto add(Graph<T>& g, const A& a, const B& b) {
  return detail::sum_of_two<T, detail::Joined<A, B>>(g, "add", a, b, true);
}

template <class T, class A, class B>
  requires ShapesAgree<A, B>
auto sub(Graph<T>& g, const A& a, const B& b) {
  return detail::sum_of_two<T, detail::Joined<A, B>>(g, "sub", a, b, false);
}

template <class T, class A, class B>
  requires ShapesAgree<A, B>
auto mul(Graph<T>& g, const A& a, const B& b) {
  Node<T> node = detail::binary(g, "mul", a, b);
  node.reads = Reads::others;
  node.forward = [](const Forward<T>& f) {
    for (std::size_t i = 0; i < f.y.size(); ++i) f.y[i] = f.x[0][i] * f.x[1][i];
  };
  node.jvp = [](const Jvp<T>& j) {
    for (std::size_t i = 0; i < j.dy.size(); ++i) {
      if (j.dx[0].empty())
        j.dy[i] = j.x[0][i] * j.dx[1][i];
      else if (j.dx[1].empty())
        j.dy[i] = j.dx[0][i] * j.x[1][i];
      else
        j.dy[i] = j.dx[0][i] * j.x[1][i] + j.x[0][i] * j.dx[1][i];
    }
  };
  node.vjp = [](const Vjp<T>& v) {
    for (std::size_t i = 0; i < v.gx[0].size(); ++i) v.gx[0][i] = v.gy[i] * v.x[1][i];
    for (std::size_t i = 0; i < v.gx[1].size(); ++i) v.gx[1][i] = v.gy[i] * v.x[0][i];
  };
  return detail::add_as<detail::Joined<A, B>>(g, std::move(node));
}

}  // namespace cenote
