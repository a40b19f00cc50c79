// What each operator is, as equations between operators, geometries and inputs.
#include <cmath>

#include "cenote/rational.hpp"
#include "support/laws.hpp"

namespace cenote::test {
namespace {

template <class T, class F>
Tensor<T> mapped(const Tensor<T>& x, F&& f) {
  Tensor<T> out = x;
  for (T& cell : out.data()) cell = f(cell);
  return out;
}

// Calls check(window's taps, output number) with the real tap values and the number of padding taps of each output.
template <class T, class F>
void for_each_output(const Geometry& g, const Tensor<T>& x, F&& check) {
  Walk<T>(g, x.view(), {Dims::filled(g.rank(), 0)}, row_major(g.out_kept()))
      .each([&](const Window<T>& window, Index o) {
        std::vector<T> taps;
        window.each([&](const Tap<T>& tap) { taps.push_back(tap.value); });
        check(taps, window.padded() - window.real(), static_cast<std::size_t>(o));
      });
}

RC_GTEST_PROP(SmoothMaxLaw, LiesBetweenMaxAndMaxPlusLogTapsOverBeta, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<double>(g.in(), 50);
  for (const Padding padding : {Padding::zeros, Padding::ignore})
    for (const double beta : {0.01, 1.0, 30.0, -0.5}) {
      const auto y = value(SmoothMax{beta, padding}, g, x);
      for_each_output(g, x, [&](std::vector<double> taps, Index zeros, std::size_t o) {
        if (padding == Padding::zeros) taps.insert(taps.end(), static_cast<std::size_t>(zeros), 0.0);
        if (taps.empty()) {
          RC_ASSERT(y.data()[o] == 0);
          return;
        }
        const auto [low, high] = std::minmax_element(taps.begin(), taps.end());
        const double extreme = beta > 0 ? *high : *low;
        const double other = extreme + std::log(static_cast<double>(taps.size())) / beta;
        const double slack = 1e-12 * std::max(1.0, std::abs(other));
        RC_ASSERT(y.data()[o] >= std::min(extreme, other) - slack);
        RC_ASSERT(y.data()[o] <= std::max(extreme, other) + slack);
      });
    }
}

RC_GTEST_PROP(SmoothMaxLaw, TendsToMaxAsBetaGrows, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<double>(g.in(), 3);
  const auto hard = value(Max{}, g, x);
  double before = std::numeric_limits<double>::infinity();
  for (const double beta : {1.0, 10.0, 100.0, 1e4, 1e8}) {
    const auto soft = value(SmoothMax{beta, Padding::ignore}, g, x);
    double worst = 0;
    for (std::size_t o = 0; o < soft.data().size(); ++o) worst = std::max(worst, soft.data()[o] - hard.data()[o]);
    RC_ASSERT(worst <= before);
    before = worst;
  }
  RC_ASSERT(before <= 1e-6);
}

RC_GTEST_PROP(SmoothMaxLaw, IsShiftEquivariant, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<double>(g.in(), 3);
  const double shift = static_cast<double>(between(-1000, 1000));
  const SmoothMax op{2, Padding::ignore};  // zeros do not move with the input
  const auto y = value(op, g, x);
  const auto moved = value(op, g, mapped(x, [&](double v) { return v + shift; }));
  for_each_output(g, x, [&](const std::vector<double>& taps, Index, std::size_t o) {
    RC_ASSERT(taps.empty() || std::abs(moved.data()[o] - (y.data()[o] + shift)) <= 1e-12 * (1 + std::abs(shift)));
  });
}

RC_GTEST_PROP(AverageLaw, OfAConstantIsThatConstantOverRealTaps, ()) {
  const Geometry g = random_geometry();
  const Rational constant = Rational(between(-9, 9)) / 7;
  const Tensor<Rational> x(g.in(), constant);
  const auto y = value(Average{Divisor::real}, g, x);
  for_each_output(g, x, [&](const std::vector<Rational>& taps, Index, std::size_t o) {
    RC_ASSERT(y.data()[o] == (taps.empty() ? Rational(0) : constant));
  });
}

RC_GTEST_PROP(AverageLaw, TimesItsDivisorIsTheSum, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<Rational>(g.in(), 9);
  const auto sum = value(Sum{}, g, x);
  const auto padded = value(Average{}, g, x);
  const auto real = value(Average{Divisor::real}, g, x);
  const auto fixed = value(Average{Divisor(-7)}, g, x);
  for_each_output(g, x, [&](const std::vector<Rational>& taps, Index zeros, std::size_t o) {
    const Rational total = std::accumulate(taps.begin(), taps.end(), Rational(0));
    RC_ASSERT(sum.data()[o] == total);
    RC_ASSERT(real.data()[o] * static_cast<Index>(taps.size()) == total);
    RC_ASSERT(padded.data()[o] * (static_cast<Index>(taps.size()) + zeros) == total);
    RC_ASSERT(fixed.data()[o] * -7 == total);
  });
}

RC_GTEST_PROP(MaxLaw, CommutesWithMonotoneMaps, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<Rational>(g.in(), 5);
  const auto cube = [](const Rational& v) { return Rational(v * v * v); };  // 0 -> 0, as empty windows need
  RC_ASSERT(value(Max{}, g, mapped(x, cube)) == mapped(value(Max{}, g, x), cube));
  RC_ASSERT(value(Min{}, g, mapped(x, cube)) == mapped(value(Min{}, g, x), cube));
}

RC_GTEST_PROP(MaxLaw, MinIsMaxTurnedRound, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<Rational>(g.in(), 3);
  const auto gy = random_tensor<Rational>(g.out(), 9);
  const auto negate = [](const Rational& v) { return Rational(-v); };
  for (const Ties ties : {Ties::first, Ties::all, Ties::split}) {
    RC_ASSERT(value(Min{ties}, g, x) == mapped(value(Max{ties}, g, mapped(x, negate)), negate));
    RC_ASSERT(pull(Min{ties}, g, x, gy) == pull(Max{ties}, g, mapped(x, negate), gy));
  }
}

RC_GTEST_PROP(GeometryLaw, GlobalEqualsSlidingWithTheFullKernel, ()) {
  const int pooled = static_cast<int>(between(1, 4));
  const Dims in = random_dims(pooled);
  const Dims axes = random_axes(in.rank, pooled);
  Dims kernel;
  for (const Index a : axes) kernel.push_back(in[static_cast<int>(a)]);
  const Geometry global = resolve(in, Global{.axes = axes});
  const Geometry sliding = resolve(in, Sliding{.kernel = kernel, .axes = axes});
  const auto x = random_tensor<Rational>(in);
  const auto gy = random_tensor<Rational>(global.out());
  for_each_algebraic_operator([&](const auto& op) {
    RC_ASSERT(value(op, global, x) == value(op, sliding, x));
    RC_ASSERT(pull(op, global, x, gy) == pull(op, sliding, x, gy));
  });
}

RC_GTEST_PROP(GeometryLaw, AdaptiveThatDividesEqualsSliding, ()) {
  Dims in;
  Dims output;
  Dims kernel;
  for (Index i = between(1, 3); i > 0; --i) {
    kernel.push_back(between(1, 3));
    output.push_back(between(1, 3));
    in.push_back(kernel[kernel.rank - 1] * output[output.rank - 1]);
  }
  const Geometry adaptive = resolve(in, Adaptive{.output = output});
  const Geometry sliding = resolve(in, Sliding{.kernel = kernel});
  const auto x = random_tensor<Rational>(in);
  const auto gy = random_tensor<Rational>(sliding.out());
  for_each_algebraic_operator([&](const auto& op) {
    RC_ASSERT(value(op, adaptive, x) == value(op, sliding, x));
    RC_ASSERT(pull(op, adaptive, x, gy) == pull(op, sliding, x, gy));
  });
}

// Padding equals padding first, each operator with its own convention.
RC_GTEST_PROP(GeometryLaw, PaddingEqualsPaddingFirst, ()) {
  const int pooled = static_cast<int>(between(1, 3));
  Dims in;
  Pads pads;
  Dims kernel;
  Dims stride;
  for (int i = 0; i < pooled; ++i) {
    in.push_back(between(1, 5));
    pads.push_back({between(0, 2), between(0, 2)});
    kernel.push_back(between(1, 3));
    stride.push_back(between(1, 2));
  }
  const Sliding inside{.kernel = kernel, .stride = stride, .padding = pads};
  const Sliding after{.kernel = kernel, .stride = stride};
  const Resolved g = try_resolve(in, inside);
  RC_PRE(!g.problem.has_value());
  const Geometry wide = resolve(padded_dims(in, pads), after);
  const auto x = random_tensor<Rational>(in);
  const auto zeros = pad(x, pads);
  RC_ASSERT(value(Average{}, g.geometry, x) == value(Average{}, wide, zeros));
  RC_ASSERT(value(Sum{}, g.geometry, x) == value(Sum{}, wide, zeros));
  // a maximum never sees its padding: surround with less than everything, and empty windows give 0
  const auto lowest = value(Max{}, wide, pad(x, pads, Rational(-1000)));
  RC_ASSERT(value(Max{}, g.geometry, x) ==
            mapped(lowest, [](const Rational& v) { return v == -1000 ? Rational(0) : v; }));
  const auto y = value(SmoothMax{2}, g.geometry, converted<double>(x));
  const auto y_wide = value(SmoothMax{2}, wide, converted<double>(zeros));
  for (std::size_t o = 0; o < y.data().size(); ++o)
    RC_ASSERT(std::abs(y.data()[o] - y_wide.data()[o]) <= 1e-14 * (1 + std::abs(y.data()[o])));
  const auto norm = value(Lp{3}, g.geometry, converted<double>(x));
  const auto norm_wide = value(Lp{3}, wide, converted<double>(zeros));
  for (std::size_t o = 0; o < norm.data().size(); ++o)
    RC_ASSERT(std::abs(norm.data()[o] - norm_wide.data()[o]) <= 1e-14 * (1 + norm.data()[o]));
  // and the gradient of a padded sum is the unpadded gradient
  const auto gy = random_tensor<Rational>(wide.out());
  RC_ASSERT(pull(Sum{}, g.geometry, x, gy) == unpad(pull(Sum{}, wide, zeros, gy), pads));
}

RC_GTEST_PROP(LpLaw, OneNormIsTheSumOfMagnitudesAndTwoNormIsEuclid, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<double>(g.in(), 9);
  const auto one = value(Lp{1}, g, x);
  const auto two = value(Lp{2}, g, x);
  const auto many = value(Lp{200}, g, x);
  for_each_output(g, x, [&](const std::vector<double>& taps, Index, std::size_t o) {
    double sum = 0;
    double squares = 0;
    double most = 0;
    for (const double tap : taps) {
      sum += std::abs(tap);
      squares += tap * tap;
      most = std::max(most, std::abs(tap));
    }
    RC_ASSERT(std::abs(one.data()[o] - sum) <= 1e-14 * (1 + sum));
    RC_ASSERT(std::abs(two.data()[o] - std::sqrt(squares)) <= 1e-14 * (1 + sum));
    RC_ASSERT(many.data()[o] >= most * (1 - 1e-14) && many.data()[o] <= most * 1.05);
  });
}

// Strides, negative ones included, and the order of axes in memory change nothing.
RC_GTEST_PROP(LayoutLaw, ResultsDoNotDependOnStrides, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<double>(g.in());
  const auto dx = random_tensor<double>(g.in());
  const auto gy = random_tensor<double>(g.out());
  // the same elements in a permuted, reversed and gapped buffer
  const auto scrambled = [](const Dims& dims, std::vector<double>& buffer) {
    Dims strides = Dims::filled(dims.rank, 0);
    Index step = between(1, 2);
    Index start = 0;
    const Dims order = random_axes(dims.rank, dims.rank);
    for (const Index a : order) {
      const int axis = static_cast<int>(a);
      strides[axis] = chance() ? step : -step;
      if (strides[axis] < 0) start += step * (dims[axis] - 1);
      step *= dims[axis] + between(0, 1);
    }
    buffer.assign(static_cast<std::size_t>(step) + 1, -777.0);
    return View<double>(buffer.data() + start, dims, strides);
  };
  std::vector<double> bx;
  std::vector<double> bdx;
  std::vector<double> bgy;
  std::vector<double> by;
  std::vector<double> bgx;
  const auto sx = scrambled(g.in(), bx);
  const auto sdx = scrambled(g.in(), bdx);
  const auto sgy = scrambled(g.out(), bgy);
  const auto sy = scrambled(g.out(), by);
  const auto sgx = scrambled(g.in(), bgx);
  copy_elements<double>(x.view(), sx);
  copy_elements<double>(dx.view(), sdx);
  copy_elements<double>(gy.view(), sgy);
  const auto dense = [](const View<double>& view) {
    Tensor<double> out(view.dims());
    copy_elements<double>(view, out.view());
    return out;
  };
  for_each_operator<double>([&](const auto& op) {
    RC_LOG() << describe(g) << ", " << label(op) << "\n";
    spec::forward<double>(op, g, sx, sy);
    RC_ASSERT(dense(sy) == value(op, g, x));
    spec::jvp<double>(op, g, sx, sdx, sy);
    RC_ASSERT(dense(sy) == push(op, g, x, dx));
    spec::vjp<double>(op, g, sx, sgy, sgx);
    RC_ASSERT(dense(sgx) == pull(op, g, x, gy));
    const auto lin = spec::linearize<double>(op, g, sx, sy);
    lin.push(sdx, sy);
    RC_ASSERT(dense(sy) == push(op, g, x, dx));
    lin.pull(sgy, sgx);
    RC_ASSERT(dense(sgx) == pull(op, g, x, gy));
  });
}

// Identity axes: each slice is pooled as if it were alone.
RC_GTEST_PROP(LayoutLaw, ResultsDoNotDependOnBatchPosition, ()) {
  const Dims plane{between(1, 6), between(1, 6)};
  const Sliding windows{
      .kernel = {between(1, 3), between(1, 3)}, .stride = between(1, 2), .padding = 1, .axes = {-2, -1}};
  const Resolved single = try_resolve(plane, windows);
  RC_PRE(!single.problem.has_value());
  const Index batch = 3;
  const Geometry many = resolve({batch, plane[0], plane[1]}, windows);
  const auto x = random_tensor<double>(many.in());
  for_each_operator<double>([&](const auto& op) {
    const auto all = value(op, many, x);
    const auto cells = static_cast<std::size_t>(volume(plane));
    const auto outs = all.data().size() / static_cast<std::size_t>(batch);
    for (std::size_t b = 0; b < static_cast<std::size_t>(batch); ++b) {
      Tensor<double> slice(plane);
      std::copy_n(x.data().begin() + static_cast<std::ptrdiff_t>(b * cells), cells, slice.data().begin());
      const auto one = value(op, single.geometry, slice);
      RC_ASSERT(
          std::equal(one.data().begin(), one.data().end(), all.data().begin() + static_cast<std::ptrdiff_t>(b * outs)));
    }
  });
}

}  // namespace
}  // namespace cenote::test
