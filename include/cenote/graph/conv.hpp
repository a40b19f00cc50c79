// Convolution (correlation, as networks mean it) in any number of dimensions: windows are laid out as columns of a
// matrix, and a matrix product does the rest. Which cells a window holds is geometry.hpp's business, as for pooling.
#pragma once

#include "cenote/geometry.hpp"
#include "cenote/graph/product.hpp"
#include "cenote/graph/wiring.hpp"

namespace cenote {

struct Convolution {
  PerAxis stride = 1;
  Pads padding = 0;
  PerAxis dilation = 1;
};

namespace detail {

// Sizes of one convolution: x is (batch,) channels, space...; the weights are outputs, channels, window...
struct ConvolutionSizes {
  Geometry geometry{};  // of the space alone
  Index batch = 1, in = 1, out = 1;
  Index cells = 1, taps = 1, windows = 1;  // of one channel: of the input, of a window, of the output
  [[nodiscard]] constexpr Index rows() const { return in * taps; }
};
struct ConvolutionFit {
  Fit fit{};
  ConvolutionSizes sizes{};
};

constexpr ConvolutionFit fit_conv(const Dims& x, const Dims& weights, const Dims* bias, const Convolution& options) {
  constexpr std::string_view expected = "(batch x) channels x space, outputs x channels x window and outputs";
  const auto no = [&](const Problem& problem) { return ConvolutionFit{misfit(problem, expected)}; };
  if (weights.rank < 3) return no({Rule::rank_mismatch, "weights", -1, weights.rank, 3});
  const int space = weights.rank - 2;
  if (x.rank != space + 1 && x.rank != space + 2) return no({Rule::torch_rank, "x", -1, x.rank, space + 1});
  const int channel = x.rank - space - 1;
  if (weights[1] != x[channel]) return no({Rule::shape_mismatch, "weights", 1, weights[1], x[channel]});
  if (const auto problem = bias_problem(bias, weights[0])) return no(*problem);
  Dims window, cells;
  for (int a = 0; a < space; ++a) {
    window.push_back(weights[a + 2]);
    cells.push_back(x[channel + 1 + a]);
  }
  const Resolved resolved = try_resolve(cells, Sliding{.kernel = window,
                                                       .stride = options.stride.given() ? options.stride : PerAxis(1),
                                                       .padding = options.padding,
                                                       .dilation = options.dilation});
  if (resolved.problem) return no(*resolved.problem);
  ConvolutionFit out;
  out.sizes.geometry = resolved.geometry;
  out.sizes.batch = channel == 1 ? x[0] : 1;
  out.sizes.in = x[channel];
  out.sizes.out = weights[0];
  out.fit.dims = x;
  out.fit.dims[channel] = weights[0];
  for (int a = 0; a < space; ++a) {
    const Index size = resolved.geometry.axis(a).out;
    out.fit.dims[channel + 1 + a] = size;
    out.sizes.cells *= cells[a];
    out.sizes.taps *= window[a];
    out.sizes.windows *= size;
  }
  return out;
}

// Calls visit(tap, first window, windows, first cell, step) for every tap and every row of windows: the windows of the
// row whose tap lies in the input, as a run of cells.
template <class F>
void each_run(const Geometry& g, F&& visit) {
  const int last = g.rank() - 1;
  const Axis& inner = g.axis(last);
  Dims rows = g.out();
  rows[last] = 1;
  const Dims in_strides = row_major(g.in()), out_strides = row_major(g.out());
  Index tap = 0;
  for_each_index(g.window_box(), [&](const Dims& w) {
    const Index shift = w[last] * inner.dilation - inner.padding.low;  // cell of window o: o * stride + shift
    const Index begin = shift >= 0 ? 0 : ceil_div(-shift, inner.stride);
    const Index end = inner.in <= shift ? 0 : std::min(inner.out, (inner.in - 1 - shift) / inner.stride + 1);
    if (begin < end)
      for_each_index(rows, [&](const Dims& o) {
        Index cell = begin * inner.stride + shift, window = begin;
        for (int a = 0; a < last; ++a) {
          const Index position = g.axis(a).position(o[a], w[a]);
          if (position < 0 || position >= g.axis(a).in) return;
          cell += position * in_strides[a];
          window += o[a] * out_strides[a];
        }
        visit(tap, window, end - begin, cell, inner.stride);
      });
    ++tap;
  });
}

// The windows of one image as columns: row (channel, tap), column window; 0 where a tap is padding.
template <class T>
void to_columns(const ConvolutionSizes& s, const T* image, std::span<T> columns) {
  std::fill_n(columns.begin(), s.rows() * s.windows, T(Index{0}));
  each_run(s.geometry, [&](Index tap, Index window, Index count, Index cell, Index step) {
    for (Index c = 0; c < s.in; ++c) {
      T* to = columns.data() + (c * s.taps + tap) * s.windows + window;
      const T* from = image + c * s.cells + cell;
      for (Index i = 0; i < count; ++i) to[i] = from[i * step];
    }
  });
}
// The adjoint: columns added where they came from.
template <class T>
void from_columns(const ConvolutionSizes& s, std::span<const T> columns, T* image) {
  std::fill_n(image, s.in * s.cells, T(Index{0}));
  each_run(s.geometry, [&](Index tap, Index window, Index count, Index cell, Index step) {
    for (Index c = 0; c < s.in; ++c) {
      const T* from = columns.data() + (c * s.taps + tap) * s.windows + window;
      T* to = image + c * s.cells + cell;
      for (Index i = 0; i < count; ++i) to[i * step] = to[i * step] + from[i];
    }
  });
}

// y (+)= weights * x, image by image.
template <class T>
void convolve(const ConvolutionSizes& s, const T* x, const T* weights, T* y, std::span<T> columns, bool add) {
  for (Index n = 0; n < s.batch; ++n) {
    to_columns(s, x + n * s.in * s.cells, columns);
    multiply<T>({weights, s.out, s.rows()}, {columns.data(), s.rows(), s.windows}, y + n * s.out * s.windows, add);
  }
}
template <class T>
void add_bias(const ConvolutionSizes& s, std::span<const T> bias, std::span<T> y) {
  auto at = y.begin();
  for (Index n = 0; n < s.batch; ++n)
    for (const T& b : bias)
      for (Index i = 0; i < s.windows; ++i, ++at) *at = *at + b;
}

template <class T>
Node<T> conv_node(const std::vector<Handle>& inputs, const ConvolutionFit& fit) {
  const ConvolutionSizes s = fit.sizes;
  const bool biased = inputs.size() == 3;
  Node<T> node{.name = "conv", .inputs = inputs, .shape = fit.fit.dims};
  const std::string words = describe(s.geometry);  // "8x8 -> 8x8, sliding 3x3 stride 1 padding 1"
  node.parameters = words.substr(words.find("sliding ") + 8);
  node.reads = Reads::others;
  node.selective = true;
  node.scratch = static_cast<std::size_t>(s.rows() * s.windows);
  node.forward = [=](const Forward<T>& f) {
    convolve<T>(s, f.x[0].data(), f.x[1].data(), f.y.data(), f.memory.scratch, false);
    if (biased) add_bias<T>(s, f.x[2], f.y);
  };
  node.jvp = [=](const Jvp<T>& j) {
    zero(j.dy);
    if (!j.dx[0].empty()) convolve<T>(s, j.dx[0].data(), j.x[1].data(), j.dy.data(), j.memory.scratch, true);
    if (!j.dx[1].empty()) convolve<T>(s, j.x[0].data(), j.dx[1].data(), j.dy.data(), j.memory.scratch, true);
    if (biased && !j.dx[2].empty()) add_bias<T>(s, j.dx[2], j.dy);
  };
  node.vjp = [=](const Vjp<T>& v) {
    const std::span<T> columns = v.memory.scratch;
    for (Index n = 0; n < s.batch; ++n) {
      const T* gy = v.gy.data() + n * s.out * s.windows;
      if (!v.gx[1].empty()) {
        to_columns(s, v.x[0].data() + n * s.in * s.cells, columns);
        multiply<T>({gy, s.out, s.windows}, {columns.data(), s.windows, s.rows(), true}, v.gx[1].data(), n > 0);
      }
      if (!v.gx[0].empty()) {
        multiply<T>({v.x[1].data(), s.rows(), s.out, true}, {gy, s.out, s.windows}, columns.data());
        from_columns<T>(s, columns, v.gx[0].data() + n * s.in * s.cells);
      }
    }
    if (s.batch == 0) zero(v.gx[1]);
    if (!biased || v.gx[2].empty()) return;
    zero(v.gx[2]);
    auto at = v.gy.begin();
    for (Index n = 0; n < s.batch; ++n)
      for (T& sum : v.gx[2])
        for (Index i = 0; i < s.windows; ++i, ++at) sum = sum + *at;
  };
  return node;
}

template <class T>
Node<T> conv_node(Graph<T>& g, const std::vector<Handle>& inputs, const Convolution& options) {
  const std::vector<Dims> dims = layer_dims(g, "conv", inputs);
  const ConvolutionFit fit = fit_conv(dims[0], dims[1], dims.size() == 3 ? &dims[2] : nullptr, options);
  if (fit.fit.problem) raise_misfit(fit.fit, "conv", dims);
  return conv_node<T>(inputs, fit);
}

// Whether typed handles fit; what is not known to the compiler is checked when the node is added.
template <Convolution C, class X, class W>
constexpr bool convolution_fits() {
  if constexpr (TypedHandle<X> && TypedHandle<W>)
    return !fit_conv(X::shape::dims, W::shape::dims, nullptr, C).fit.problem;
  return true;
}
template <Convolution C, class X, class W, class B>
constexpr bool biased_convolution_fits() {
  if constexpr (TypedHandle<X> && TypedHandle<W> && TypedHandle<B>)
    return !fit_conv(X::shape::dims, W::shape::dims, &B::shape::dims, C).fit.problem;
  return convolution_fits<C, X, W>();
}
template <Convolution C, class X, class W>
struct ConvolutionDims {
  static constexpr Dims dims = fit_conv(X::shape::dims, W::shape::dims, nullptr, C).fit.dims;
};

template <Convolution C, class X, class W, class T>
auto add_conv(Graph<T>& g, const std::vector<Handle>& inputs) {
  constexpr bool typed = TypedHandle<X> && TypedHandle<W>;
  return add_shaped<typed, ConvolutionDims<C, X, W>>(g, conv_node<T>(g, inputs, C));
}

}  // namespace detail

template <class X, class W, Convolution C>
concept ConvolutionFits = AnyHandle<X> && AnyHandle<W> && detail::convolution_fits<C, X, W>();
template <class X, class W, class B, Convolution C>
concept ConvolutionFitsWithBias =
    AnyHandle<B> && ConvolutionFits<X, W, C> && detail::biased_convolution_fits<C, X, W, B>();

// x is (batch,) channels, space...; the weights are outputs, channels, window...; the bias has one number per output.
template <Convolution C = Convolution{}, class T, class X, class W>
  requires ConvolutionFits<X, W, C>
auto conv(Graph<T>& g, const X& x, const W& weights) {
  return detail::add_conv<C, X, W>(g, {x, weights});
}
template <Convolution C = Convolution{}, class T, class X, class W, class B>
  requires ConvolutionFitsWithBias<X, W, B, C>
auto conv(Graph<T>& g, const X& x, const W& weights, const B& bias) {
  return detail::add_conv<C, X, W>(g, {x, weights, bias});
}
// With options that are known at run time only.
template <class T>
Handle conv(Graph<T>& g, const Handle& x, const Handle& weights, const Convolution& options) {
  return g.add(detail::conv_node<T>(g, {x, weights}, options));
}
template <class T>
Handle conv(Graph<T>& g, const Handle& x, const Handle& weights, const Handle& bias, const Convolution& options) {
  return g.add(detail::conv_node<T>(g, {x, weights, bias}, options));
}

}  // namespace cenote
