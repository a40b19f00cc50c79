// What the law suites share: the lists of operators they iterate, random geometries and tensors, and the three verbs
// with owning results.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "cenote/fraction.hpp"
#include "cenote/linearize.hpp"
#include "cenote/pool.hpp"

namespace cenote::test {

// Many cases, and the same ones in every run; RC_PARAMS in the environment overrides it.
inline const bool configured = [] {
  return setenv("RC_PARAMS", "seed=20260101 max_success=2000 max_size=60", 0) == 0;
}();

// Every option that changes an operator's meaning; a new operator begins with its defaults.
template <class Op>
std::vector<Op> variants() {
  return {Op{}};
}
template <>
inline std::vector<Max> variants() {
  return {Max{Ties::first}, Max{Ties::all}, Max{Ties::split}};
}
template <>
inline std::vector<Min> variants() {
  return {Min{Ties::first}, Min{Ties::all}, Min{Ties::split}};
}
template <>
inline std::vector<Average> variants() {
  return {Average{Divisor::padded}, Average{Divisor::real}, Average{3}, Average{-2}};
}
template <>
inline std::vector<SmoothMax> variants() {
  std::vector<SmoothMax> out;
  for (const Padding padding : {Padding::zeros, Padding::ignore})
    for (const double beta : {2.0, 0.25, -1.5}) out.push_back({beta, padding});
  return out;
}
template <>
inline std::vector<Lp> variants() {
  return {Lp{1}, Lp{2}, Lp{3.5}};
}

// Walks the library's own list: use(op) for every operator that T accepts and `choose` lets through.
template <class T, class Choose, class F>
void for_each_listed(Choose choose, F&& use) {
  const auto all_of = [&]<class Op>(std::type_identity<Op>) {
    if constexpr (OperatorOn<Op, T>)
      if (choose(std::type_identity<Op>{}))
        for (const Op& op : variants<Op>()) use(op);
  };
#define CENOTE_USE(Op) all_of(std::type_identity<Op>{});
  CENOTE_OPERATORS(CENOTE_USE)
#undef CENOTE_USE
}

// Algebraic operators are those that exact fractions accept; the others need exp and log.
template <class F>
void for_each_algebraic_operator(F&& use) {
  for_each_listed<Fraction>([](auto) { return true; }, use);
}
template <class F>
void for_each_smooth_operator(F&& use) {
  for_each_listed<double>([]<class Op>(std::type_identity<Op>) { return !OperatorOn<Op, Fraction>; }, use);
}
template <class T, class F>
void for_each_operator(F&& use) {
  for_each_listed<T>([](auto) { return true; }, use);
}

template <class Op>
std::string label(const Op& op) {
  std::string out = Op::name;
  if constexpr (requires { op.ties; }) out += " ties " + std::to_string(static_cast<int>(op.ties));
  if constexpr (requires { op.divisor; })
    out += " divisor " + std::to_string(static_cast<int>(op.divisor.kind)) + ":" + std::to_string(op.divisor.number);
  if constexpr (requires { op.beta; })
    out += " beta " + std::to_string(op.beta) + (op.padding == Padding::zeros ? " zeros" : " ignore");
  if constexpr (requires { op.p; }) out += " p " + std::to_string(op.p);
  return out;
}

// ---- random geometries ------------------------------------------------------------------------------------------

inline Index between(Index low, Index high) { return *rc::gen::inRange<Index>(low, high + 1); }
// The same with every number equally likely. RapidCheck draws from the low end of a range while sizes are small, and
// with max_size below 100 never reaches its high end.
inline Index uniform(Index low, Index high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<Index>(low, high + 1));
}
inline bool chance() { return *rc::gen::arbitrary<bool>(); }

// Sizes of an input with `pooled` pooled axes and up to two others; small, because outputs times taps is the cost.
inline Dims random_dims(int pooled) {
  Dims dims;
  const Index most = pooled == 1 ? 12 : pooled == 2 ? 7 : pooled == 3 ? 4 : 3;
  const int rank = pooled + static_cast<int>(between(0, pooled > 3 ? 1 : 2));
  for (int a = 0; a < rank; ++a) dims.push_back(a < rank - pooled ? between(1, 2) : between(1, most));
  return dims;
}

// A choice of `count` distinct axes, in any order.
inline Dims random_axes(int rank, int count) {
  std::vector<Index> all;
  for (int a = 0; a < rank; ++a) all.push_back(a);
  Dims axes;
  for (int i = 0; i < count; ++i) {
    const auto pick = static_cast<std::ptrdiff_t>(between(0, static_cast<Index>(all.size()) - 1));
    axes.push_back(all[static_cast<std::size_t>(pick)]);
    all.erase(all.begin() + pick);
  }
  return axes;
}

inline Sliding random_sliding(const Dims& axes) {
  Sliding s{.axes = axes};
  Dims kernel;
  Dims stride;
  Dims dilation;
  Pads padding;
  const Index most_pad = axes.rank > 3 ? 1 : 3;
  for (int i = 0; i < axes.rank; ++i) {
    kernel.push_back(between(1, axes.rank > 3 ? 2 : 4));
    stride.push_back(between(1, 3));
    dilation.push_back(between(1, 3));
    padding.push_back({between(0, most_pad), between(0, most_pad)});
  }
  s.kernel = kernel;
  if (chance()) s.stride = stride;
  if (chance()) s.dilation = dilation;
  if (chance()) s.padding = padding;
  if (chance() && chance()) s.padding = chance() ? same : same_lower;
  s.rounding = chance() ? Rounding::ceil : Rounding::floor;
  return s;
}

// A legal geometry with 1 to 5 pooled axes: sliding, adaptive or global, any axes.
inline Geometry random_geometry() {
  const int pooled = static_cast<int>(between(1, 5));
  const Dims in = random_dims(pooled);
  Dims axes = random_axes(in.rank, pooled);
  switch (between(0, 3)) {
    case 0: {
      Dims output;
      for (int i = 0; i < pooled; ++i) output.push_back(between(1, pooled > 3 ? 3 : 5));
      return resolve(in, Adaptive{.output = output, .axes = axes});
    }
    case 1: return resolve(in, Global{.axes = axes, .keep = chance()});
    default: break;
  }
  const Resolved resolved = try_resolve(in, random_sliding(axes));
  RC_PRE(!resolved.problem.has_value());
  return resolved.geometry;
}

// ---- random tensors ---------------------------------------------------------------------------------------------

// Few distinct values, so that ties abound.
template <class T>
Tensor<T> random_tensor(const Dims& dims, Index spread = 3) {
  Tensor<T> out(dims);
  for (T& cell : out.data()) cell = T(between(-spread, spread));
  return out;
}

template <class To, class From>
Tensor<To> converted(const Tensor<From>& from) {
  Tensor<To> out(from.dims());
  for (std::size_t i = 0; i < from.data().size(); ++i) out.data()[i] = To(from.data()[i]);
  return out;
}

// ---- verbs with owning results ----------------------------------------------------------------------------------

template <class T, class Op>
Tensor<T> value(const Op& op, const Geometry& g, const Tensor<T>& x) {
  Tensor<T> y(g.out());
  spec::forward<T>(op, g, x.view(), y.view());
  return y;
}
template <class T, class Op>
Tensor<T> push(const Op& op, const Geometry& g, const Tensor<T>& x, const Tensor<T>& dx) {
  Tensor<T> dy(g.out());
  spec::jvp<T>(op, g, x.view(), dx.view(), dy.view());
  return dy;
}
template <class T, class Op>
Tensor<T> pull(const Op& op, const Geometry& g, const Tensor<T>& x, const Tensor<T>& gy) {
  Tensor<T> gx(g.in());
  spec::vjp<T>(op, g, x.view(), gy.view(), gx.view());
  return gx;
}
template <class T>
T dot(const Tensor<T>& a, const Tensor<T>& b) {
  T sum(Index{0});
  for (std::size_t i = 0; i < a.data().size(); ++i) sum = sum + a.data()[i] * b.data()[i];
  return sum;
}

// One input cell or one output cell set to 1.
template <class T>
Tensor<T> unit(const Dims& dims, std::size_t at) {
  Tensor<T> out(dims);
  out.data()[at] = T(Index{1});
  return out;
}

}  // namespace cenote::test
