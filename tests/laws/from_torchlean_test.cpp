// The definitions of the original, written out from the formulas of its documentation, against their spelling here.
// docs/from-torchlean.md lists which test stands for which definition; tools/check_coverage_page.py holds it to that.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "cenote/dual.hpp"
#include "cenote/fraction.hpp"
#include "cenote/interval.hpp"
#include "cenote/pool.hpp"

namespace {

using namespace cenote;

// ---- numbers ----------------------------------------------------------------------------------------------------

// Small, of both signs, with ties; exact in every scalar.
template <class T>
Tensor<T> numbers(const Dims& dims, Index seed) {
  Tensor<T> out(dims);
  Index i = seed * 5;
  for (T& cell : out.data()) {
    ++i;
    cell = T(Index{(i * 37 + i * i * seed) % 9 - 4}) / T(Index{2});
  }
  return out;
}

template <class S>
Tensor<Fraction, S> fixed(const Tensor<Fraction>& x) {
  Tensor<Fraction, S> out;
  EXPECT_EQ(x.dims(), S::dims);
  std::copy(x.data().begin(), x.data().end(), out.data().begin());
  return out;
}

template <class T, class S>
Tensor<T> dynamic(const Tensor<T, S>& x) {
  return Tensor<T>(x.dims(), std::vector<T>(x.data().begin(), x.data().end()));
}

template <class T>
T dot(const Tensor<T>& a, const Tensor<T>& b) {
  EXPECT_EQ(a.dims(), b.dims());
  T sum(Index{0});
  for (std::size_t i = 0; i < a.data().size(); ++i) sum = sum + a.data()[i] * b.data()[i];
  return sum;
}

void expect_near(const Tensor<double>& got, const Tensor<double>& expected) {
  ASSERT_EQ(got.dims(), expected.dims());
  for (std::size_t i = 0; i < got.data().size(); ++i) EXPECT_NEAR(got.data()[i], expected.data()[i], 1e-14) << i;
}

Tensor<Fraction> integers(const Dims& dims, const std::vector<Index>& values) {
  std::vector<Fraction> cells;
  for (const Index value : values) cells.emplace_back(value);
  return Tensor<Fraction>(dims, cells);
}

// ---- the original's definitions ---------------------------------------------------------------------------------

// Every index of `dims`, last axis fastest, by recursion as in the original.
template <class F>
void fold_indices(const Dims& dims, F&& visit, const Dims& head = {}) {
  if (head.rank == dims.rank) return visit(head);
  for (Index i = 0; i < dims[head.rank]; ++i) {
    Dims next = head;
    next.push_back(i);
    fold_indices(dims, visit, next);
  }
}

// A kernel, stride and symmetric padding on a spatial tensor.
struct Layer {
  Dims in;
  PerAxis kernel, stride;
  Pads padding;

  [[nodiscard]] Dims out() const {  // (in + 2*pad - k) / stride + 1
    Dims dims;
    for (int a = 0; a < in.rank; ++a) dims.push_back((in[a] + 2 * padding[a].low - kernel[a]) / stride[a] + 1);
    return dims;
  }

  // Where a window cell lies in the input: out*stride + window in the padded input, then without the padding.
  [[nodiscard]] std::optional<Dims> cell(const Dims& o, const Dims& w) const {
    Dims at;
    for (int a = 0; a < in.rank; ++a) {
      const Index position = o[a] * stride[a] + w[a] - padding[a].low;
      if (position < 0 || position >= in[a]) return {};
      at.push_back(position);
    }
    return at;
  }

  // The first largest real cell.
  template <class T>
  std::optional<Dims> winner(const Tensor<T>& x, const Dims& o) const {
    std::optional<Dims> best;
    fold_indices(kernel.entries, [&](const Dims& w) {
      const auto at = cell(o, w);
      if (at && (!best || x.view()[*at] > x.view()[*best])) best = at;
    });
    return best;
  }

  template <class T>
  Tensor<T> max(const Tensor<T>& x) const {
    return max_jvp(x, x);
  }
  template <class T>
  Tensor<T> max_jvp(const Tensor<T>& x, const Tensor<T>& dx) const {
    Tensor<T> dy(out());
    fold_indices(out(), [&](const Dims& o) {
      const auto at = winner(x, o);
      if (at) dy.view()[o] = dx.view()[*at];
    });
    return dy;
  }
  template <class T>
  Tensor<T> max_vjp(const Tensor<T>& x, const Tensor<T>& gy) const {
    Tensor<T> gx(in);
    fold_indices(out(), [&](const Dims& o) {
      const auto at = winner(x, o);
      if (at) gx.view()[*at] = gx.view()[*at] + gy.view()[o];
    });
    return gx;
  }

  // Every window cell counts, padding as zero.
  template <class T>
  Tensor<T> average(const Tensor<T>& x) const {
    Tensor<T> y(out());
    fold_indices(out(), [&](const Dims& o) {
      T sum(Index{0});
      fold_indices(kernel.entries, [&](const Dims& w) {
        const auto at = cell(o, w);
        if (at) sum = sum + x.view()[*at];
      });
      y.view()[o] = sum / T(volume(kernel.entries));
    });
    return y;
  }
  template <class T>
  Tensor<T> average_vjp(const Tensor<T>& gy) const {
    Tensor<T> gx(in);
    fold_indices(out(), [&](const Dims& o) {
      fold_indices(kernel.entries, [&](const Dims& w) {
        const auto at = cell(o, w);
        if (at) gx.view()[*at] = gx.view()[*at] + gy.view()[o] / T(volume(kernel.entries));
      });
    });
    return gx;
  }

  // Unshifted, as the original has it: fit for small numbers only.
  [[nodiscard]] double sum_exp(double beta, const Tensor<double>& x, const Dims& o) const {
    double sum = 0;
    fold_indices(kernel.entries, [&](const Dims& w) {
      const auto at = cell(o, w);
      sum += std::exp(beta * (at ? x.view()[*at] : 0));
    });
    return sum;
  }
  [[nodiscard]] Tensor<double> smooth(double beta, const Tensor<double>& x) const {
    Tensor<double> y(out());
    fold_indices(out(), [&](const Dims& o) { y.view()[o] = std::log(sum_exp(beta, x, o)) / beta; });
    return y;
  }
  [[nodiscard]] Tensor<double> smooth_jvp(double beta, const Tensor<double>& x, const Tensor<double>& dx) const {
    Tensor<double> dy(out());
    fold_indices(out(), [&](const Dims& o) {
      fold_indices(kernel.entries, [&](const Dims& w) {
        const auto at = cell(o, w);
        if (at) dy.view()[o] += std::exp(beta * x.view()[*at]) / sum_exp(beta, x, o) * dx.view()[*at];
      });
    });
    return dy;
  }
  [[nodiscard]] Tensor<double> smooth_vjp(double beta, const Tensor<double>& x, const Tensor<double>& gy) const {
    Tensor<double> gx(in);
    fold_indices(out(), [&](const Dims& o) {
      fold_indices(kernel.entries, [&](const Dims& w) {
        const auto at = cell(o, w);
        if (at) gx.view()[*at] += std::exp(beta * x.view()[*at]) / sum_exp(beta, x, o) * gy.view()[o];
      });
    });
    return gx;
  }
};

// f of every channel, stacked along a new first axis.
template <class T, class F, class... More>
Tensor<T> per_channel(F&& f, const Tensor<T>& first, const More&... more) {
  const auto channel = [](const Tensor<T>& x, Index c) {
    const Dims dims(std::span(x.dims().begin() + 1, x.dims().end()));
    const auto begin = x.data().begin() + c * volume(dims);
    return Tensor<T>(dims, std::vector<T>(begin, begin + volume(dims)));
  };
  Dims dims{first.dims()[0]};
  std::vector<T> cells;
  for (Index c = 0; c < first.dims()[0]; ++c) {
    const Tensor<T> one = f(channel(first, c), channel(more, c)...);
    if (c == 0)
      for (const Index size : one.dims()) dims.push_back(size);
    cells.insert(cells.end(), one.data().begin(), one.data().end());
  }
  return Tensor<T>(dims, cells);
}

Dims with_channels(Index channels, const Dims& spatial) {
  Dims dims{channels};
  for (const Index size : spatial) dims.push_back(size);
  return dims;
}

// Ranks 1 to 3, with and without padding, overlapping and spaced windows, the last two with windows of padding only.
template <class F>
void for_each_layer(F&& check) {
  const std::vector<Layer> layers{
      {{7}, {3}, {2}, {0}},
      {{6}, {2}, {1}, {1}},
      {{5, 6}, {2, 3}, {1, 2}, {0, 0}},
      {{5, 6}, {3, 3}, {2, 2}, {1, 1}},
      {{4, 5}, {2, 4}, {3, 1}, {1, 2}},
      {{4, 3, 5}, {2, 2, 3}, {2, 1, 2}, {0, 0, 0}},
      {{4, 3, 5}, {2, 3, 3}, {2, 1, 2}, {1, 1, 1}},
      {{2}, {2}, {1}, {3}},
      {{2, 3}, {2, 1}, {2, 2}, {2, 1}},
  };
  for (const Layer& layer : layers) {
    SCOPED_TRACE(to_string(layer.in) + " kernel " + to_string(layer.kernel.entries));
    check(layer, layer.kernel, layer.stride, layer.padding);
  }
}

// The same for the 2-D definitions, whose numbers are in types: height, width, kernel, one stride, one padding.
template <class F>
void for_each_layer_2d(F&& check) {
  check.template operator()<5, 5, 2, 2, 2>();
  check.template operator()<4, 7, 3, 2, 1>();
  check.template operator()<6, 3, 1, 3, 2>();
  check.template operator()<3, 3, 3, 3, 5>();
}
template <class F>
void for_each_padded_layer_2d(F&& check) {
  check.template operator()<5, 5, 2, 2, 2, 0>();
  check.template operator()<5, 4, 3, 3, 2, 1>();
  check.template operator()<3, 4, 4, 3, 1, 2>();
  check.template operator()<2, 2, 1, 2, 1, 2>();  // some windows are padding only
}

Layer layer_2d(Index h, Index w, Index kh, Index kw, Index stride, Index padding = 0) {
  return {{h, w}, {kh, kw}, {stride, stride}, {padding, padding}};
}

// ---- configurations and shapes ----------------------------------------------------------------------------------

template <Sliding W>
concept LegalFor8x8 = LegalGeometry<W, Shape<8, 8>>;

TEST(FromTorchLean, Configurations) {
  const PerAxis kernel{3, 2}, stride{2, 1};
  const Pads padding{1, 0};
  const auto layer = Sliding{.kernel = kernel, .stride = stride, .padding = padding};
  EXPECT_EQ(describe(resolve({8, 8}, layer)), "8x8 -> 4x7, sliding 3x2 stride 2x1 padding 1x0");
  const auto broken = [](const Sliding& windows) { return try_resolve({8, 8}, windows).problem->rule; };
  EXPECT_EQ(broken({.kernel = {3, 0}}), Rule::kernel_positive);
  EXPECT_EQ(broken({.kernel = {3, 2}, .stride = {1, 0}}), Rule::stride_positive);
}

TEST(FromTorchLean, Configurations2d) {
  constexpr Index kH = 3, kW = 2, stride = 2;
  static_assert(LegalFor8x8<Sliding{.kernel = {kH, kW}, .stride = stride}>);
  static_assert(!LegalFor8x8<Sliding{.kernel = {0, kW}, .stride = stride}>);
  static_assert(!LegalFor8x8<Sliding{.kernel = {kH, kW}, .stride = 0}>);
  constexpr auto layer = Sliding{.kernel = {kH, kW}, .stride = stride};
  EXPECT_EQ(describe(resolve({8, 8}, layer)), "8x8 -> 3x4, sliding 3x2 stride 2");
}

TEST(FromTorchLean, OutputSizes) {
  for (Index n = 1; n < 9; ++n)
    for (Index k = 1; k < 6; ++k)
      for (Index s = 1; s < 4; ++s)
        for (Index p = 0; p < 4; ++p) {
          const Dims in{n};
          const PerAxis kernel{k}, stride{s};
          const Pads padding{p};
          if (k <= n) {
            EXPECT_EQ(resolve(in, Sliding{.kernel = kernel, .stride = stride}).out(), (Dims{(n - k) / s + 1}));
          }
          if (k <= n + 2 * p) {
            EXPECT_EQ(resolve(in, Sliding{.kernel = kernel, .stride = stride, .padding = padding}).out(),
                      (Dims{(n + 2 * p - k) / s + 1}));
          } else {  // natural-number subtraction would stop at 0 and count one window that is not there
            EXPECT_THROW((void)resolve(in, Sliding{.kernel = kernel, .stride = stride, .padding = padding}),
                         ShapeError);
          }
        }
}

TEST(FromTorchLean, OutputShapes) {
  static_assert(std::same_as<OutputShape<Sliding{.kernel = {3, 2}, .stride = {2, 1}}, Shape<7, 5>>, Shape<3, 4>>);
  static_assert(std::same_as<OutputShape<Sliding{.kernel = {3, 2}, .stride = {2, 1}}, Shape<6, 7, 5>>, Shape<6, 3, 4>>);
  static_assert(std::same_as<OutputShape<Sliding{.kernel = {3}, .stride = {2}, .padding = {1}}, Shape<7>>, Shape<4>>);
  static_assert(std::same_as<
                OutputShape<Sliding{.kernel = {3, 2, 2}, .stride = {2, 1, 3}, .padding = {1, 1, 0}}, Shape<6, 7, 5, 8>>,
                Shape<6, 4, 6, 3>>);
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    const auto g = resolve(layer.in, Sliding{.kernel = kernel, .stride = stride, .padding = padding});
    EXPECT_EQ(g.out(), layer.out());
    const Dims in = with_channels(6, layer.in);
    EXPECT_EQ(resolve(in, Sliding{.kernel = kernel, .stride = stride, .padding = padding}).out(),
              with_channels(6, layer.out()));
  });
}

TEST(FromTorchLean, OutputShapes2d) {
  for_each_padded_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride, Index padding>() {
    constexpr Index outH = (inH + 2 * padding - kH) / stride + 1, outW = (inW + 2 * padding - kW) / stride + 1;
    using Single = OutputShape<Sliding{.kernel = {kH, kW}, .stride = stride, .padding = padding}, Shape<inH, inW>>;
    using Multi = OutputShape<Sliding{.kernel = {kH, kW}, .stride = stride, .padding = padding}, Shape<4, inH, inW>>;
    static_assert(std::same_as<Single, Shape<outH, outW>>);
    static_assert(std::same_as<Multi, Shape<4, outH, outW>>);
  });
  for_each_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride>() {
    constexpr Index outH = (inH - kH) / stride + 1, outW = (inW - kW) / stride + 1;
    using Single = OutputShape<Sliding{.kernel = {kH, kW}, .stride = stride}, Shape<inH, inW>>;
    using Multi = OutputShape<Sliding{.kernel = {kH, kW}, .stride = stride}, Shape<4, inH, inW>>;
    static_assert(std::same_as<Single, Shape<outH, outW>>);
    static_assert(std::same_as<Multi, Shape<4, outH, outW>>);
  });
}

// ---- N-D --------------------------------------------------------------------------------------------------------
// The spelling for a spatial tensor and for a channels-first one is the same: the last axes are pooled.

TEST(FromTorchLean, MaxPool) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const Dims& dims : {layer.in, with_channels(3, layer.in)}) {
      const auto x = numbers<Fraction>(dims, 1);
      const auto expected =
          dims == layer.in ? layer.max(x) : per_channel([&](const auto& c) { return layer.max(c); }, x);
      EXPECT_EQ(max_pool(x, {.kernel = kernel, .stride = stride, .padding = padding}), expected);
    }
  });
}

TEST(FromTorchLean, MaxPoolJvp) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const Dims& dims : {layer.in, with_channels(3, layer.in)}) {
      const auto x = numbers<Fraction>(dims, 1), dx = numbers<Fraction>(dims, 2);
      const auto expected =
          dims == layer.in ? layer.max_jvp(x, dx)
                           : per_channel([&](const auto& c, const auto& dc) { return layer.max_jvp(c, dc); }, x, dx);
      EXPECT_EQ(max_pool_jvp(x, dx, {.kernel = kernel, .stride = stride, .padding = padding}), expected);
    }
  });
}

TEST(FromTorchLean, MaxPoolBackward) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const bool multi : {false, true}) {
      const auto x = numbers<Fraction>(multi ? with_channels(3, layer.in) : layer.in, 1);
      const auto gy = numbers<Fraction>(multi ? with_channels(3, layer.out()) : layer.out(), 3);
      const auto expected =
          multi ? per_channel([&](const auto& c, const auto& gc) { return layer.max_vjp(c, gc); }, x, gy)
                : layer.max_vjp(x, gy);
      EXPECT_EQ(max_pool_vjp(x, gy, {.kernel = kernel, .stride = stride, .padding = padding}), expected);
    }
  });
}

TEST(FromTorchLean, AvgPool) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const Dims& dims : {layer.in, with_channels(3, layer.in)}) {
      const auto x = numbers<Fraction>(dims, 1), dx = numbers<Fraction>(dims, 2);
      const auto expected = [&](const auto& of) {
        return dims == layer.in ? layer.average(of) : per_channel([&](const auto& c) { return layer.average(c); }, of);
      };
      EXPECT_EQ(avg_pool(x, {.kernel = kernel, .stride = stride, .padding = padding}), expected(x));
      EXPECT_EQ(avg_pool_jvp(x, dx, {.kernel = kernel, .stride = stride, .padding = padding}), expected(dx));
    }
  });
}

TEST(FromTorchLean, AvgPoolBackward) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const bool multi : {false, true}) {
      const Dims in = multi ? with_channels(3, layer.in) : layer.in;
      const auto gy = numbers<Fraction>(multi ? with_channels(3, layer.out()) : layer.out(), 3);
      const auto expected =
          multi ? per_channel([&](const auto& gc) { return layer.average_vjp(gc); }, gy) : layer.average_vjp(gy);
      EXPECT_EQ(avg_pool_vjp(in, gy, {.kernel = kernel, .stride = stride, .padding = padding}), expected);
    }
  });
}

TEST(FromTorchLean, SmoothMaxPool) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const double beta : {0.5, 3.0, -2.0})
      for (const Dims& dims : {layer.in, with_channels(3, layer.in)}) {
        const auto x = numbers<double>(dims, 1);
        const auto expected = dims == layer.in ? layer.smooth(beta, x)
                                               : per_channel([&](const auto& c) { return layer.smooth(beta, c); }, x);
        expect_near(smooth_max_pool(x, {.kernel = kernel, .stride = stride, .padding = padding}, {.beta = beta}),
                    expected);
      }
  });
}

TEST(FromTorchLean, SmoothMaxPoolJvp) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const double beta : {0.5, 3.0, -2.0})
      for (const Dims& dims : {layer.in, with_channels(3, layer.in)}) {
        const auto x = numbers<double>(dims, 1), dx = numbers<double>(dims, 2);
        const auto expected =
            dims == layer.in
                ? layer.smooth_jvp(beta, x, dx)
                : per_channel([&](const auto& c, const auto& dc) { return layer.smooth_jvp(beta, c, dc); }, x, dx);
        expect_near(
            smooth_max_pool_jvp(x, dx, {.kernel = kernel, .stride = stride, .padding = padding}, {.beta = beta}),
            expected);
      }
  });
}

TEST(FromTorchLean, SmoothMaxPoolBackward) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    for (const double beta : {0.5, 3.0, -2.0})
      for (const bool multi : {false, true}) {
        const auto x = numbers<double>(multi ? with_channels(3, layer.in) : layer.in, 1);
        const auto gy = numbers<double>(multi ? with_channels(3, layer.out()) : layer.out(), 3);
        const auto expected =
            multi ? per_channel([&](const auto& c, const auto& gc) { return layer.smooth_vjp(beta, c, gc); }, x, gy)
                  : layer.smooth_vjp(beta, x, gy);
        expect_near(
            smooth_max_pool_vjp(x, gy, {.kernel = kernel, .stride = stride, .padding = padding}, {.beta = beta}),
            expected);
      }
  });
}

// ---- 2-D, shapes in types ---------------------------------------------------------------------------------------

TEST(FromTorchLean, MaxPool2d) {
  for_each_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride);
    {
      const auto x = fixed<Shape<inH, inW>>(numbers<Fraction>(layer.in, 1));
      const auto y = max_pool<Sliding{.kernel = {kH, kW}, .stride = stride}>(x);
      static_assert(std::same_as<typename decltype(y)::shape, Shape<(inH - kH) / stride + 1, (inW - kW) / stride + 1>>);
      EXPECT_EQ(dynamic(y), layer.max(dynamic(x)));
    }
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    EXPECT_EQ(dynamic(max_pool<Sliding{.kernel = {kH, kW}, .stride = stride}>(x)),
              per_channel([&](const auto& c) { return layer.max(c); }, dynamic(x)));
  });
}

TEST(FromTorchLean, MaxPool2dJvp) {
  for_each_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride);
    {
      const auto x = fixed<Shape<inH, inW>>(numbers<Fraction>(layer.in, 1));
      const auto dx = fixed<Shape<inH, inW>>(numbers<Fraction>(layer.in, 2));
      EXPECT_EQ(dynamic(max_pool_jvp<Sliding{.kernel = {kH, kW}, .stride = stride}>(x, dx)),
                layer.max_jvp(dynamic(x), dynamic(dx)));
    }
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    const auto dx = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 2));
    EXPECT_EQ(
        dynamic(max_pool_jvp<Sliding{.kernel = {kH, kW}, .stride = stride}>(x, dx)),
        per_channel([&](const auto& c, const auto& dc) { return layer.max_jvp(c, dc); }, dynamic(x), dynamic(dx)));
  });
}

TEST(FromTorchLean, MaxPool2dBackward) {
  for_each_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride);
    constexpr Index outH = (inH - kH) / stride + 1, outW = (inW - kW) / stride + 1;
    {
      const auto x = fixed<Shape<inH, inW>>(numbers<Fraction>(layer.in, 1));
      const auto gy = fixed<Shape<outH, outW>>(numbers<Fraction>(layer.out(), 3));
      EXPECT_EQ(dynamic(max_pool_vjp<Sliding{.kernel = {kH, kW}, .stride = stride}>(x, gy)),
                layer.max_vjp(dynamic(x), dynamic(gy)));
    }
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    const auto gy = fixed<Shape<3, outH, outW>>(numbers<Fraction>({3, outH, outW}, 3));
    EXPECT_EQ(
        dynamic(max_pool_vjp<Sliding{.kernel = {kH, kW}, .stride = stride}>(x, gy)),
        per_channel([&](const auto& c, const auto& gc) { return layer.max_vjp(c, gc); }, dynamic(x), dynamic(gy)));
  });
}

TEST(FromTorchLean, AvgPool2d) {
  for_each_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride);
    {
      const auto x = fixed<Shape<inH, inW>>(numbers<Fraction>(layer.in, 1));
      EXPECT_EQ(dynamic(avg_pool<Sliding{.kernel = {kH, kW}, .stride = stride}>(x)), layer.average(dynamic(x)));
    }
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    EXPECT_EQ(dynamic(avg_pool<Sliding{.kernel = {kH, kW}, .stride = stride}>(x)),
              per_channel([&](const auto& c) { return layer.average(c); }, dynamic(x)));
  });
}

TEST(FromTorchLean, AvgPool2dBackward) {
  for_each_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride);
    constexpr Index outH = (inH - kH) / stride + 1, outW = (inW - kW) / stride + 1;
    {
      const auto x = Tensor<Fraction, Shape<inH, inW>>{};  // its values do not matter
      const auto gy = fixed<Shape<outH, outW>>(numbers<Fraction>(layer.out(), 3));
      EXPECT_EQ(dynamic(avg_pool_vjp<Sliding{.kernel = {kH, kW}, .stride = stride}>(x, gy)),
                layer.average_vjp(dynamic(gy)));
    }
    const auto x = Tensor<Fraction, Shape<3, inH, inW>>{};
    const auto gy = fixed<Shape<3, outH, outW>>(numbers<Fraction>({3, outH, outW}, 3));
    EXPECT_EQ(dynamic(avg_pool_vjp<Sliding{.kernel = {kH, kW}, .stride = stride}>(x, gy)),
              per_channel([&](const auto& gc) { return layer.average_vjp(gc); }, dynamic(gy)));
  });
}

// The smooth ones in double, shapes at run time: {kH, kW} and one stride.
template <class F>
void for_each_smooth_2d(F&& check) {
  for (const double beta : {0.75, 4.0, -1.0})
    for (const auto& [inH, inW, kH, kW, stride] :
         std::vector<std::array<Index, 5>>{{5, 5, 2, 2, 2}, {4, 7, 3, 2, 1}, {6, 3, 1, 3, 2}})
      check(layer_2d(inH, inW, kH, kW, stride), kH, kW, stride, beta);
}

TEST(FromTorchLean, SmoothMaxPool2d) {
  for_each_smooth_2d([](const Layer& layer, Index kH, Index kW, Index stride, double beta) {
    const auto single = numbers<double>(layer.in, 1);
    expect_near(smooth_max_pool(single, {.kernel = {kH, kW}, .stride = stride}, {.beta = beta}),
                layer.smooth(beta, single));
    const auto x = numbers<double>(with_channels(2, layer.in), 1);
    expect_near(smooth_max_pool(x, {.kernel = {kH, kW}, .stride = stride}, {.beta = beta}),
                per_channel([&](const auto& c) { return layer.smooth(beta, c); }, x));
  });
}

TEST(FromTorchLean, SmoothMaxPool2dJvp) {
  for_each_smooth_2d([](const Layer& layer, Index kH, Index kW, Index stride, double beta) {
    const auto single = numbers<double>(layer.in, 1), tangent = numbers<double>(layer.in, 2);
    expect_near(smooth_max_pool_jvp(single, tangent, {.kernel = {kH, kW}, .stride = stride}, {.beta = beta}),
                layer.smooth_jvp(beta, single, tangent));
    const auto x = numbers<double>(with_channels(2, layer.in), 1), dx = numbers<double>(with_channels(2, layer.in), 2);
    expect_near(smooth_max_pool_jvp(x, dx, {.kernel = {kH, kW}, .stride = stride}, {.beta = beta}),
                per_channel([&](const auto& c, const auto& dc) { return layer.smooth_jvp(beta, c, dc); }, x, dx));
  });
}

TEST(FromTorchLean, SmoothMaxPool2dBackward) {
  for_each_smooth_2d([](const Layer& layer, Index kH, Index kW, Index stride, double beta) {
    const auto single = numbers<double>(layer.in, 1), gradient = numbers<double>(layer.out(), 3);
    expect_near(smooth_max_pool_vjp(single, gradient, {.kernel = {kH, kW}, .stride = stride}, {.beta = beta}),
                layer.smooth_vjp(beta, single, gradient));
    const auto x = numbers<double>(with_channels(2, layer.in), 1),
               gy = numbers<double>(with_channels(2, layer.out()), 3);
    expect_near(smooth_max_pool_vjp(x, gy, {.kernel = {kH, kW}, .stride = stride}, {.beta = beta}),
                per_channel([&](const auto& c, const auto& gc) { return layer.smooth_vjp(beta, c, gc); }, x, gy));
  });
}

// ---- 2-D with padding -------------------------------------------------------------------------------------------

TEST(FromTorchLean, MaxPool2dMultiSpecPad) {
  for_each_padded_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride, Index padding>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride, padding);
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    EXPECT_EQ(dynamic(max_pool<Sliding{.kernel = {kH, kW}, .stride = stride, .padding = padding}>(x)),
              per_channel([&](const auto& c) { return layer.max(c); }, dynamic(x)));
  });
}

TEST(FromTorchLean, MaxPool2dMultiJvpSpecPad) {
  for_each_padded_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride, Index padding>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride, padding);
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    const auto dx = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 2));
    EXPECT_EQ(
        dynamic(max_pool_jvp<Sliding{.kernel = {kH, kW}, .stride = stride, .padding = padding}>(x, dx)),
        per_channel([&](const auto& c, const auto& dc) { return layer.max_jvp(c, dc); }, dynamic(x), dynamic(dx)));
  });
}

TEST(FromTorchLean, MaxPool2dMultiBackwardSpecPad) {
  for_each_padded_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride, Index padding>() {
    const Layer layer = layer_2d(inH, inW, kH, kW, stride, padding);
    constexpr Index outH = (inH + 2 * padding - kH) / stride + 1, outW = (inW + 2 * padding - kW) / stride + 1;
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    const auto gy = fixed<Shape<3, outH, outW>>(numbers<Fraction>({3, outH, outW}, 3));
    EXPECT_EQ(
        dynamic(max_pool_vjp<Sliding{.kernel = {kH, kW}, .stride = stride, .padding = padding}>(x, gy)),
        per_channel([&](const auto& c, const auto& gc) { return layer.max_vjp(c, gc); }, dynamic(x), dynamic(gy)));
  });
}

TEST(FromTorchLean, AvgPool2dMultiSpecPad) {
  for_each_padded_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride, Index padding>() {
    const auto x = fixed<Shape<3, inH, inW>>(numbers<Fraction>({3, inH, inW}, 1));
    const Layer without = layer_2d(inH + 2 * padding, inW + 2 * padding, kH, kW, stride);  // pad with zeros first
    EXPECT_EQ(dynamic(avg_pool<Sliding{.kernel = {kH, kW}, .stride = stride, .padding = padding}>(x)),
              per_channel([&](const auto& c) { return without.average(c); }, pad(x, {padding, padding})));
  });
}

TEST(FromTorchLean, AvgPool2dMultiBackwardSpecPad) {
  for_each_padded_layer_2d([]<Index inH, Index inW, Index kH, Index kW, Index stride, Index padding>() {
    constexpr Index outH = (inH + 2 * padding - kH) / stride + 1, outW = (inW + 2 * padding - kW) / stride + 1;
    const Tensor<Fraction, Shape<3, inH, inW>> x;
    const auto gy = fixed<Shape<3, outH, outW>>(numbers<Fraction>({3, outH, outW}, 3));
    const Layer without = layer_2d(inH + 2 * padding, inW + 2 * padding, kH, kW, stride);  // pull back, then unpad
    EXPECT_EQ(
        dynamic(avg_pool_vjp<Sliding{.kernel = {kH, kW}, .stride = stride, .padding = padding}>(x, gy)),
        unpad(per_channel([&](const auto& gc) { return without.average_vjp(gc); }, dynamic(gy)), {padding, padding}));
  });
}

TEST(FromTorchLean, Unpad) {
  constexpr Index padding = 2;
  const auto small = numbers<Fraction>({3, 4}, 1);
  Tensor<Fraction> img({3 + 2 * padding, 4 + 2 * padding}, Fraction(Index{9}));  // a frame of 9 round the image
  fold_indices(small.dims(), [&](const Dims& at) { img.view()(at[0] + padding, at[1] + padding) = small.view()[at]; });
  EXPECT_EQ(unpad(img, {padding, padding}), small);
  EXPECT_EQ(pad(small, {padding, padding}, Fraction(Index{9})), img);
  const auto image = fixed<Shape<7, 8>>(img);
  const auto smaller = unpad<Pads{padding, padding}>(image);
  static_assert(std::same_as<decltype(smaller), const Tensor<Fraction, Shape<3, 4>>>);
  EXPECT_EQ(dynamic(smaller), small);
  EXPECT_EQ((pad<Pads{padding, padding}>(smaller, Fraction(Index{9}))), image);
}

TEST(FromTorchLean, UnpadMultiChannel) {
  constexpr Index padding = 1;
  const auto img = numbers<Fraction>({2, 5, 6}, 1);
  const auto expected = per_channel([&](const auto& c) { return unpad(c, {padding, padding}); }, img);
  EXPECT_EQ(unpad(img, {padding, padding}), expected);  // the channels are not among the last two axes
  EXPECT_EQ(expected.dims(), (Dims{2, 3, 4}));
  const auto image = fixed<Shape<2, 5, 6>>(img);
  static_assert(std::same_as<decltype(unpad<Pads{padding, padding}>(image)), Tensor<Fraction, Shape<2, 3, 4>>>);
  EXPECT_EQ(dynamic(unpad<Pads{padding, padding}>(image)), expected);
  EXPECT_THROW((void)unpad(img, {3, padding}), ShapeError);
}

// ---- adaptive ---------------------------------------------------------------------------------------------------

TEST(FromTorchLean, AdaptiveStartAndEnd) {
  for (Index in = 1; in < 12; ++in)
    for (Index out = 1; out < 15; ++out)
      for (Index i = 0; i < out; ++i) {
        EXPECT_EQ(adaptive_start(i, in, out), i * in / out);
        EXPECT_EQ(adaptive_end(i, in, out), ((i + 1) * in + out - 1) / out);
      }
}

// Calls visit(output, cell) for every cell of every region of a channels-first picture.
template <class F>
void for_each_region_cell(const Dims& in, Index outH, Index outW, F&& visit) {
  fold_indices({in[0], outH, outW}, [&](const Dims& o) {
    for (Index i = o[1] * in[1] / outH; i < ((o[1] + 1) * in[1] + outH - 1) / outH; ++i)
      for (Index j = o[2] * in[2] / outW; j < ((o[2] + 1) * in[2] + outW - 1) / outW; ++j) visit(o, Dims{o[0], i, j});
  });
}

TEST(FromTorchLean, AdaptiveAvgPool2d) {
  for (const Dims& in : {Dims{2, 5, 7}, Dims{1, 6, 4}, Dims{3, 2, 3}})
    for (Index outH = 1; outH < 8; ++outH)
      for (Index outW = 1; outW < 8; outW += 2) {
        const auto x = numbers<Fraction>(in, 1);
        Tensor<Fraction> sum({in[0], outH, outW}), count({in[0], outH, outW});
        for_each_region_cell(in, outH, outW, [&](const Dims& o, const Dims& at) {
          sum.view()[o] = sum.view()[o] + x.view()[at];
          count.view()[o] = count.view()[o] + Fraction(Index{1});
        });
        for (std::size_t i = 0; i < sum.data().size(); ++i) sum.data()[i] = sum.data()[i] / count.data()[i];
        EXPECT_EQ(adaptive_avg_pool(x, {.output = {outH, outW}}), sum);
      }
  static_assert(std::same_as<OutputShape<Adaptive{.output = {3, 9}}, Shape<2, 5, 7>>, Shape<2, 3, 9>>);
}

TEST(FromTorchLean, AdaptiveMaxPool2d) {
  for (const Dims& in : {Dims{2, 5, 7}, Dims{1, 6, 4}, Dims{3, 2, 3}})
    for (Index outH = 1; outH < 8; ++outH)
      for (Index outW = 1; outW < 8; outW += 2) {
        const auto x = numbers<Fraction>(in, 1);
        Tensor<Fraction> best({in[0], outH, outW}, Fraction(Index{-100}));
        for_each_region_cell(in, outH, outW, [&](const Dims& o, const Dims& at) {
          if (x.view()[at] > best.view()[o]) best.view()[o] = x.view()[at];
        });
        EXPECT_EQ(adaptive_max_pool(x, {.output = {outH, outW}}), best);
      }
}

// <J dx, gy> = <dx, J^T gy>, and the JVP is what dual numbers say.
TEST(FromTorchLean, AdaptiveDerivatives) {
  const std::vector<std::pair<Dims, PerAxis>> problems{
      {{2, 7}, {3}}, {{3}, {5}}, {{2, 5, 7}, {3, 4}}, {{4, 4}, {6, 1}}, {{2, 3, 5, 4}, {2, 3, 3}}};
  for (const auto& [in, output] : problems) {
    const auto x = numbers<Fraction>(in, 1), dx = numbers<Fraction>(in, 2);
    Tensor<Dual<Fraction>> both(in);
    for (std::size_t i = 0; i < both.data().size(); ++i) both.data()[i] = {x.data()[i], dx.data()[i]};
    const auto tangents = [](const Tensor<Dual<Fraction>>& y) {
      Tensor<Fraction> out(y.dims());
      for (std::size_t i = 0; i < y.data().size(); ++i) out.data()[i] = y.data()[i].tangent;
      return out;
    };
    const auto largest = adaptive_max_pool_jvp(x, dx, {.output = output});
    const auto average = adaptive_avg_pool_jvp(x, dx, {.output = output});
    EXPECT_EQ(largest, tangents(adaptive_max_pool(both, {.output = output})));
    EXPECT_EQ(average, tangents(adaptive_avg_pool(both, {.output = output})));
    const auto gy = numbers<Fraction>(largest.dims(), 3);
    EXPECT_EQ(dot(largest, gy), dot(dx, adaptive_max_pool_vjp(x, gy, {.output = output})));
    EXPECT_EQ(dot(average, gy), dot(dx, adaptive_avg_pool_vjp(in, gy, {.output = output})));
  }
}

// ---- global -----------------------------------------------------------------------------------------------------

const std::vector<Dims> pictures{{3, 4, 5}, {1, 1, 6}, {2, 7, 1}, {4, 2, 2}};

// A fold over the (H, W) grid of one channel.
template <class T, class F>
T reduce_spatial(const T& init, F&& f, const Tensor<T>& channel) {
  T out = init;
  for (Index i = 0; i < channel.dims()[0]; ++i)
    for (Index j = 0; j < channel.dims()[1]; ++j) out = f(out, channel.view()(i, j));
  return out;
}
Fraction spatial_max(const Tensor<Fraction>& channel) {
  return reduce_spatial(
      channel.data()[0], [](const Fraction& a, const Fraction& b) { return a > b ? a : b; }, channel);
}
Fraction spatial_mean(const Tensor<Fraction>& channel) {
  return reduce_spatial(Fraction(), std::plus<>{}, channel) / Fraction(volume(channel.dims()));
}

// One number per channel, kept as (C,1,1) or as (C).
template <class F>
Tensor<Fraction> per_picture(const Tensor<Fraction>& x, bool keep, F&& f) {
  return per_channel([&](const auto& c) { return Tensor<Fraction>(keep ? Dims{1, 1} : Dims{}, f(c)); }, x);
}

TEST(FromTorchLean, GlobalShapes) {
  for (const Dims& in : pictures) {
    EXPECT_EQ(resolve(in, Global{.last = 2}).out(), (Dims{in[0], 1, 1}));
    EXPECT_EQ(resolve(in, Global{.last = 2, .keep = false}).out(), (Dims{in[0]}));
  }
  static_assert(std::same_as<OutputShape<Global{.last = 2}, Shape<3, 4, 5>>, Shape<3, 1, 1>>);
  static_assert(std::same_as<OutputShape<Global{.last = 2, .keep = false}, Shape<3, 4, 5>>, Shape<3>>);
}

TEST(FromTorchLean, ReduceSpatial) {
  const auto channel = numbers<Fraction>({3, 4}, 1);
  const Fraction init(Index{2});
  const auto f = [](const Fraction& a, const Fraction& b) { return a / Fraction(Index{2}) - b; };  // the order matters
  const auto y = global_reduce_pool(channel, {.last = 2, .keep = false}, fold(init, f));
  EXPECT_EQ(y.dims(), Dims{});
  EXPECT_EQ(y.data()[0], reduce_spatial(init, f, channel));
}

TEST(FromTorchLean, ChannelSpatialMax) {
  for (const Dims& dims : {Dims{3, 4}, Dims{1, 1}, Dims{5, 2}}) {
    const auto channel = numbers<Fraction>(dims, 1);
    EXPECT_EQ(global_max_pool(channel, {.last = 2, .keep = false}).data()[0], spatial_max(channel));
  }
}

TEST(FromTorchLean, BroadcastScalar1x1) {
  const Fraction v(7, 2);
  const auto image = Tensor<Fraction>({1, 1}, v);
  EXPECT_EQ(image.dims(), (Dims{1, 1}));
  EXPECT_EQ(image.view()(0, 0), v);
}

TEST(FromTorchLean, GlobalPool2d) {
  // The product of a channel's first cell with its size: no fold, and no operator of the library.
  const auto reduce = [](const Window<Fraction>& window) { return window.front().value * Fraction(window.real()); };
  const auto expected = [](const Tensor<Fraction>& c) { return c.data()[0] * Fraction(volume(c.dims())); };
  for (const Dims& in : pictures) {
    const auto x = numbers<Fraction>(in, 1);
    EXPECT_EQ(global_reduce_pool(x, {.last = 2}, Reduce{reduce}), per_picture(x, true, expected));
    EXPECT_EQ(global_reduce_pool(x, {.last = 2, .keep = false}, Reduce{reduce}), per_picture(x, false, expected));
  }
}

TEST(FromTorchLean, GlobalAvgPool2d) {
  for (const Dims& in : pictures) {
    const auto x = numbers<Fraction>(in, 1);
    EXPECT_EQ(global_avg_pool(x, {.last = 2}), per_picture(x, true, spatial_mean));
    EXPECT_EQ(global_avg_pool(x, {.last = 2, .keep = false}), per_picture(x, false, spatial_mean));
  }
}

TEST(FromTorchLean, GlobalMaxPool2d) {
  for (const Dims& in : pictures) {
    const auto x = numbers<Fraction>(in, 1);
    EXPECT_EQ(global_max_pool(x, {.last = 2}), per_picture(x, true, spatial_max));
    EXPECT_EQ(global_max_pool(x, {.last = 2, .keep = false}), per_picture(x, false, spatial_max));
  }
}

TEST(FromTorchLean, GlobalAvgPool2dBackward) {
  for (const Dims& in : pictures) {
    const auto flat = numbers<Fraction>({in[0]}, 3);
    Tensor<Fraction> expected(in);
    fold_indices(in, [&](const Dims& at) { expected.view()[at] = flat.view()(at[0]) / Fraction(in[1] * in[2]); });
    const Tensor<Fraction> gy({in[0], 1, 1}, std::vector(flat.data().begin(), flat.data().end()));
    EXPECT_EQ(global_avg_pool_vjp(in, gy, {.last = 2}), expected);
    EXPECT_EQ(global_avg_pool_vjp(in, flat, {.last = 2, .keep = false}), expected);
  }
}

// Every tied maximum gets `share(number of ties)` of its channel's gradient.
template <class F>
Tensor<Fraction> to_the_largest(const Tensor<Fraction>& x, const Tensor<Fraction>& flat, F&& share) {
  Tensor<Fraction> gx(x.dims());
  const auto best = per_picture(x, false, spatial_max);
  const auto ties = per_picture(x, false, [](const Tensor<Fraction>& c) {
    Index count = 0;
    for (const Fraction& cell : c.data()) count += cell == spatial_max(c) ? 1 : 0;
    return Fraction(count);
  });
  fold_indices(x.dims(), [&](const Dims& at) {
    if (x.view()[at] == best.view()(at[0])) gx.view()[at] = flat.view()(at[0]) * share(ties.view()(at[0]));
  });
  return gx;
}

TEST(FromTorchLean, GlobalMaxPool2dBackward) {
  for (const Dims& in : pictures) {
    const auto x = numbers<Fraction>(in, 1), flat = numbers<Fraction>({in[0]}, 3);
    const Tensor<Fraction> gy({in[0], 1, 1}, std::vector(flat.data().begin(), flat.data().end()));
    const auto expected = to_the_largest(x, flat, [](const Fraction&) { return Fraction(Index{1}); });
    EXPECT_EQ(global_max_pool_vjp(x, gy, {.last = 2}), expected);
    EXPECT_EQ(global_max_pool_vjp(x, flat, {.last = 2, .keep = false}), expected);
  }
  const auto tied = integers({1, 2, 3}, {4, 1, 4, 0, 4, 2});
  EXPECT_EQ(global_max_pool_vjp(tied, integers({1, 1, 1}, {6}), {.last = 2}), integers({1, 2, 3}, {6, 0, 6, 0, 6, 0}));
}

TEST(FromTorchLean, GlobalMaxPool2dBackwardDistributed) {
  for (const Dims& in : pictures) {
    const auto x = numbers<Fraction>(in, 1), flat = numbers<Fraction>({in[0]}, 3);
    const Tensor<Fraction> gy({in[0], 1, 1}, std::vector(flat.data().begin(), flat.data().end()));
    EXPECT_EQ(global_max_pool_vjp(x, gy, {.last = 2}, {.ties = Ties::split}),
              to_the_largest(x, flat, [](const Fraction& ties) { return Fraction(Index{1}) / ties; }));
  }
  const auto tied = integers({1, 2, 3}, {4, 1, 4, 0, 4, 2});
  EXPECT_EQ(global_max_pool_vjp(tied, integers({1, 1, 1}, {6}), {.last = 2}, {.ties = Ties::split}),
            integers({1, 2, 3}, {2, 0, 2, 0, 2, 0}));
}

// ---- private helpers --------------------------------------------------------------------------------------------

TEST(FromTorchLean, Indices) {
  const Dims dims{2, 3, 2};
  std::vector<Dims> expected, seen;
  fold_indices(dims, [&](const Dims& index) { expected.push_back(index); });
  for_each_index(dims, [&](const Dims& index) { seen.push_back(index); });
  EXPECT_EQ(seen, expected);
  Tensor<Index> x(dims);
  const auto f = [](const Dims& index) { return index[0] * 100 + index[1] * 10 + index[2]; };
  for_each_index(dims, [&](const Dims& index) { x.view()[index] = f(index); });
  EXPECT_EQ(x.data()[7], 101);
  EXPECT_EQ(x.data()[11], 121);
}

TEST(FromTorchLean, Coordinates) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    const auto g = resolve(layer.in, Sliding{.kernel = kernel, .stride = stride, .padding = padding});
    EXPECT_EQ(volume(g.window_box()), volume(kernel.entries));
    for (int a = 0; a < g.rank(); ++a) {
      const Axis& axis = g.axis(a);
      for (Index o = 0; o < axis.out; ++o) {
        Index real = 0;
        for (Index w = 0; w < axis.kernel; ++w) {
          const Index padded = o * stride[a] + w;
          EXPECT_EQ(axis.position(o, w), padded - padding[a].low);
          real += padded >= padding[a].low && padded - padding[a].low < axis.in ? 1 : 0;
        }
        EXPECT_EQ(axis.window(o).real, real);
        EXPECT_EQ(axis.window(o).padded, axis.kernel);
      }
    }
  });
}

TEST(FromTorchLean, WindowValues) {
  const double beta = 1.5;
  for_each_layer([&](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    const auto g = resolve(layer.in, Sliding{.kernel = kernel, .stride = stride, .padding = padding});
    const auto x = numbers<double>(layer.in, 1), dx = numbers<double>(layer.in, 2);
    const auto largest = layer.max(x), largest_tangent = layer.max_jvp(x, dx);
    const auto average = layer.average(x);
    const auto smooth = layer.smooth(beta, x), smooth_tangent = layer.smooth_jvp(beta, x, dx);
    const auto flat = row_major(layer.in);  // taps are marked with their place in x and dx
    Walk<double>(g, x.view(), {flat}, row_major(g.out())).each([&](const Window<double>& window, Index out) {
      const auto o = static_cast<std::size_t>(out);
      // Padding is counted and adds nothing to a sum; a maximum does not see it.
      double sum = 0;
      Index real = 0;
      window.each([&](const Tap<double>& tap) {
        EXPECT_EQ(tap.value, x.data()[static_cast<std::size_t>(tap.mark)]);
        sum += tap.value;
        ++real;
      });
      EXPECT_EQ(window.real(), real);
      EXPECT_EQ(window.padded(), volume(kernel.entries));
      EXPECT_NEAR(sum / static_cast<double>(window.padded()), average.data()[o], 1e-15);
      EXPECT_EQ(Max{}.value(window), largest.data()[o]);
      EXPECT_NEAR(Average{}.value(window), average.data()[o], 1e-15);
      EXPECT_NEAR(SmoothMax{.beta = beta}.value(window), smooth.data()[o], 1e-14);
      double tangent = 0;
      const auto give = [&](const Tap<double>& tap, const auto& weight) {
        tangent += weigh(weight, dx.data()[static_cast<std::size_t>(tap.mark)]);
      };
      Max{}.weights(window, give);
      EXPECT_EQ(tangent, largest_tangent.data()[o]);
      tangent = 0;
      SmoothMax{.beta = beta}.weights(window, give);
      EXPECT_NEAR(tangent, smooth_tangent.data()[o], 1e-14);
    });
  });
}

// ---- what a graph node will carry -------------------------------------------------------------------------------

template <class T, class Op>
void check_payloads(const Op& op, const Sliding& windows, const Dims& in) {
  const auto g = resolve(in, windows);
  const auto x = numbers<T>(in, 1), dx = numbers<T>(in, 2), gy = numbers<T>(g.out(), 3);
  Tensor<T> y(g.out()), dy(g.out()), gx(in);
  forward<T>(op, g, x.view(), y.view());
  jvp<T>(op, g, x.view(), dx.view(), dy.view());
  vjp<T>(op, g, x.view(), gy.view(), gx.view());
  if constexpr (std::same_as<T, Fraction>)
    EXPECT_EQ(dot(dy, gy), dot(dx, gx));
  else
    EXPECT_NEAR(dot(dy, gy), dot(dx, gx), 1e-13);
  // Forward at dual numbers is (forward, JVP).
  Tensor<Dual<T>> both(in), expected(g.out());
  for (std::size_t i = 0; i < both.data().size(); ++i) both.data()[i] = {x.data()[i], dx.data()[i]};
  forward<Dual<T>>(op, g, both.view(), expected.view());
  for (std::size_t i = 0; i < y.data().size(); ++i) {
    if constexpr (std::same_as<T, Fraction>) {
      EXPECT_EQ(y.data()[i], expected.data()[i].value);
      EXPECT_EQ(dy.data()[i], expected.data()[i].tangent);
    } else {
      EXPECT_NEAR(y.data()[i], expected.data()[i].value, 1e-14);
      EXPECT_NEAR(dy.data()[i], expected.data()[i].tangent, 1e-14);
    }
  }
}

TEST(FromTorchLean, PayloadsOfMaxPool) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    const auto windows = Sliding{.kernel = kernel, .stride = stride, .padding = padding};
    check_payloads<Fraction>(Max{}, windows, with_channels(2, layer.in));
  });
}

TEST(FromTorchLean, PayloadsOfAvgPool) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    const auto windows = Sliding{.kernel = kernel, .stride = stride, .padding = padding};
    check_payloads<Fraction>(Average{}, windows, with_channels(2, layer.in));
  });
}

TEST(FromTorchLean, PayloadsOfSmoothMaxPool) {
  for_each_layer([](const Layer& layer, const PerAxis& kernel, const PerAxis& stride, const Pads& padding) {
    const auto windows = Sliding{.kernel = kernel, .stride = stride, .padding = padding};
    check_payloads<double>(SmoothMax{.beta = 1.5}, windows, with_channels(2, layer.in));
  });
}

// ---- faults of the original, not repeated -----------------------------------------------------------------------

// Its 2-D search compares with the best of the rows before, so the later 3 replaced the 5.
TEST(FromTorchLean, FaultWinnerSearch) {
  constexpr Tensor<Fraction, Shape<1, 3>> x{Fraction(0), Fraction(5), Fraction(3)};
  constexpr Tensor<Fraction, Shape<1, 3>> dx{Fraction(10), Fraction(20), Fraction(30)};
  constexpr Tensor<Fraction, Shape<1, 1>> gy{Fraction(7)};
  constexpr Tensor<Fraction, Shape<1, 3>> gx{Fraction(0), Fraction(7), Fraction(0)};
  static_assert(max_pool<Sliding{.kernel = {1, 3}}>(x).data()[0] == Fraction(5));
  static_assert(max_pool_jvp<Sliding{.kernel = {1, 3}}>(x, dx).data()[0] == Fraction(20));
  static_assert(max_pool_vjp<Sliding{.kernel = {1, 3}}>(x, gy) == gx);
  EXPECT_EQ(max_pool_with_indices(x, {.kernel = {1, 3}}).indices.data()[0], 1);
}

TEST(FromTorchLean, FaultSmoothMaxOverflow) {
  const Tensor<double> x({4}, {900.0, 1000.0, -1e308, 1e308});
  ASSERT_TRUE(std::isinf(std::exp(x.data()[0])));
  const auto y = smooth_max_pool(x, {.kernel = {2}}, {.beta = 1});
  EXPECT_DOUBLE_EQ(y.data()[0], 1000.0);
  EXPECT_DOUBLE_EQ(y.data()[1], 1e308);
  const auto gx = smooth_max_pool_vjp(x, Tensor<double>({2}, 1.0), {.kernel = {2}}, {.beta = 1});
  EXPECT_DOUBLE_EQ(gx.data()[0], std::exp(-100.0));
  EXPECT_DOUBLE_EQ(gx.data()[1], 1.0);
}

// PyTorch's names hold padding to half the kernel in every rank, the plain names in none.
TEST(FromTorchLean, FaultPaddingBound) {
  const Tensor<double> one({1, 9}), two({1, 9, 9}), three({1, 9, 9, 9});
  const auto rule_of = [](const auto& call) -> std::optional<Rule> {
    try {
      (void)call();
    } catch (const Error& error) {
      return error.rule;
    }
    return {};
  };
  const Index half = 2, more = 3;  // of a kernel of 4
  EXPECT_EQ(rule_of([&] { return max_pool1d(one, 4, {.padding = half}); }), std::nullopt);
  EXPECT_EQ(rule_of([&] { return max_pool2d(two, 4, {.padding = half}); }), std::nullopt);
  EXPECT_EQ(rule_of([&] { return max_pool3d(three, 4, {.padding = half}); }), std::nullopt);
  EXPECT_EQ(rule_of([&] { return max_pool1d(one, 4, {.padding = more}); }), Rule::torch_padding);
  EXPECT_EQ(rule_of([&] { return max_pool2d(two, 4, {.padding = more}); }), Rule::torch_padding);
  EXPECT_EQ(rule_of([&] { return max_pool3d(three, 4, {.padding = more}); }), Rule::torch_padding);
  EXPECT_EQ(rule_of([&] { return avg_pool1d(one, 4, {.padding = more}); }), Rule::torch_padding);
  EXPECT_EQ(rule_of([&] { return avg_pool2d(two, 4, {.padding = more}); }), Rule::torch_padding);
  EXPECT_EQ(rule_of([&] { return avg_pool3d(three, 4, {.padding = more}); }), Rule::torch_padding);
  EXPECT_EQ(rule_of([&] { return max_pool(three, {.kernel = {4, 4, 4}, .padding = more}); }), std::nullopt);
}

// Bounds of an average are the averages of the bounds, as tight as they can be.
TEST(FromTorchLean, FaultOpaqueAverage) {
  const Tensor<Interval> x({4}, {Interval(0, 1), Interval(-2, 3), Interval(4, 4), Interval(-8, 0)});
  const auto y = avg_pool(x, {.kernel = {2}});
  EXPECT_EQ(y.data()[0], Interval(-1, 2));
  EXPECT_EQ(y.data()[1], Interval(-2, 2));
}

}  // namespace
