// PyTorch's names with PyTorch's argument meaning: max_pool1d/2d/3d, avg_pool1d/2d/3d, lp_pool1d/2d/3d and
// adaptive_{max,avg}_pool1d/2d/3d, each with _jvp and _vjp. Inputs are (C, spatial...) or (N, C, spatial...), padding
// is symmetric and at most half the effective kernel (G6). Included by pool.hpp.
#pragma once

#include "cenote/pool.hpp"

namespace cenote {

// PyTorch's keyword arguments, with its defaults.
struct MaxPoolOptions {
  PerAxis stride{};  // default: the kernel
  PerAxis padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
};
struct AvgPoolOptions {
  PerAxis stride{};
  PerAxis padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<Index> divisor_override{};
};
struct LpPoolOptions {
  PerAxis stride{};
  bool ceil_mode = false;
};

// PyTorch's None in an adaptive output size: the size stays that of the input.
inline constexpr Index same_size = -1;

namespace detail {

// The last `count` axes of an input that has one axis more (channels) or two (batch, channels).
inline Dims torch_axes(std::string_view caller, const Dims& in, int count) {
  if (in.rank != count + 1 && in.rank != count + 2) raise({Rule::torch_rank, "input", -1, in.rank, count + 1}, caller);
  Dims axes;
  for (int i = 0; i < count; ++i) axes.push_back(in.rank - count + i);
  return axes;
}

inline Geometry torch_sliding(std::string_view caller, const Dims& in, int count, const PerAxis& kernel,
                              const PerAxis& stride, const PerAxis& padding, const PerAxis& dilation, bool ceil_mode) {
  const Dims axes = torch_axes(caller, in, count);
  Pads pads;
  pads.every = padding.every;
  for (const Index entry : padding.entries) pads.push_back(entry);
  const Geometry g = resolve(in,
                             Sliding{.kernel = kernel,
                                     .stride = stride,
                                     .padding = pads,
                                     .dilation = dilation,
                                     .rounding = ceil_mode ? Rounding::ceil : Rounding::floor,
                                     .axes = axes},
                             caller);
  for (int a = in.rank - count; a < in.rank; ++a) {
    const Axis& axis = g.axis(a);
    const Index half = (axis.dilation * (axis.kernel - 1) + 1) / 2;
    if (axis.padding.low > half) raise({Rule::torch_padding, "padding", a, axis.padding.low, half}, caller);
  }
  return g;
}
inline Geometry torch_geometry(std::string_view caller, const Dims& in, int count, const PerAxis& kernel,
                               const MaxPoolOptions& o) {
  return torch_sliding(caller, in, count, kernel, o.stride, o.padding, o.dilation, o.ceil_mode);
}
inline Geometry torch_geometry(std::string_view caller, const Dims& in, int count, const PerAxis& kernel,
                               const AvgPoolOptions& o) {
  return torch_sliding(caller, in, count, kernel, o.stride, o.padding, 1, o.ceil_mode);
}
inline Geometry torch_geometry(std::string_view caller, const Dims& in, int count, const PerAxis& kernel,
                               const LpPoolOptions& o) {
  return torch_sliding(caller, in, count, kernel, o.stride, 0, 1, o.ceil_mode);
}
inline Geometry torch_adaptive(std::string_view caller, const Dims& in, int count, const PerAxis& output) {
  const Dims axes = torch_axes(caller, in, count);
  PerAxis sizes = output.every ? Dims::filled(count, output[0]) : output.entries;
  for (int i = 0; i < sizes.entries.rank && i < count; ++i)
    if (sizes[i] == same_size) sizes.entries[i] = in[in.rank - count + i];
  return resolve(in, Adaptive{.output = sizes, .axes = axes}, caller);
}

inline Max torch_operator(const MaxPoolOptions&) { return {}; }
inline Average torch_operator(const AvgPoolOptions& o) {
  if (o.divisor_override) return {.divisor = *o.divisor_override};
  return {.divisor = o.count_include_pad ? Divisor::padded : Divisor::real};
}

}  // namespace detail

// `first` is the arguments between the tensors and the options; `geometry` and `op` make something of them.
#define CENOTE_TORCH_VERBS(name, arguments, geometry, op)                            \
  template <Readable X>                                                              \
  Tensor<Element<X>> name(const X& x, CENOTE_UNWRAP arguments) {                     \
    constexpr std::string_view caller = #name;                                       \
    return detail::pooled<Element<X>>(caller, op, geometry, read(x));                \
  }                                                                                  \
  template <Readable X, Readable DX>                                                 \
    requires ScalarsAgree<DX, X>                                                     \
  Tensor<Element<X>> name##_jvp(const X& x, const DX& dx, CENOTE_UNWRAP arguments) { \
    constexpr std::string_view caller = #name "_jvp";                                \
    return detail::pushed<Element<X>>(caller, op, geometry, read(x), read(dx));      \
  }                                                                                  \
  template <Readable X, Readable GY>                                                 \
    requires ScalarsAgree<GY, X>                                                     \
  Tensor<Element<X>> name##_vjp(const X& x, const GY& gy, CENOTE_UNWRAP arguments) { \
    constexpr std::string_view caller = #name "_vjp";                                \
    return detail::pulled<Element<X>>(caller, op, geometry, read(x), read(gy));      \
  }
#define CENOTE_TORCH_INDICES(name, arguments, geometry)                                   \
  template <Readable X>                                                                   \
  ValuesAndIndices<Element<X>> name##_with_indices(const X& x, CENOTE_UNWRAP arguments) { \
    constexpr std::string_view caller = #name "_with_indices";                            \
    return detail::pooled_with_indices<Element<X>>(caller, Max{}, geometry, read(x));     \
  }
#define CENOTE_UNWRAP(...) __VA_ARGS__
#define CENOTE_TORCH_NAMES(n)                                                                                          \
  CENOTE_TORCH_VERBS(max_pool##n##d, (const PerAxis& kernel_size, const MaxPoolOptions& options = {}),                 \
                     detail::torch_geometry(caller, x.dims(), n, kernel_size, options),                                \
                     detail::torch_operator(options))                                                                  \
  CENOTE_TORCH_INDICES(max_pool##n##d, (const PerAxis& kernel_size, const MaxPoolOptions& options = {}),               \
                       detail::torch_geometry(caller, x.dims(), n, kernel_size, options))                              \
  CENOTE_TORCH_VERBS(avg_pool##n##d, (const PerAxis& kernel_size, const AvgPoolOptions& options = {}),                 \
                     detail::torch_geometry(caller, x.dims(), n, kernel_size, options),                                \
                     detail::torch_operator(options))                                                                  \
  CENOTE_TORCH_VERBS(lp_pool##n##d, (double norm_type, const PerAxis& kernel_size, const LpPoolOptions& options = {}), \
                     detail::torch_geometry(caller, x.dims(), n, kernel_size, options), Lp{.p = norm_type})            \
  CENOTE_TORCH_VERBS(adaptive_max_pool##n##d, (const PerAxis& output_size),                                            \
                     detail::torch_adaptive(caller, x.dims(), n, output_size), Max{})                                  \
  CENOTE_TORCH_INDICES(adaptive_max_pool##n##d, (const PerAxis& output_size),                                          \
                       detail::torch_adaptive(caller, x.dims(), n, output_size))                                       \
  CENOTE_TORCH_VERBS(adaptive_avg_pool##n##d, (const PerAxis& output_size),                                            \
                     detail::torch_adaptive(caller, x.dims(), n, output_size), Average{})

CENOTE_TORCH_NAMES(1)
CENOTE_TORCH_NAMES(2)
CENOTE_TORCH_NAMES(3)

#undef CENOTE_TORCH_NAMES
#undef CENOTE_UNWRAP
#undef CENOTE_TORCH_INDICES
#undef CENOTE_TORCH_VERBS

}  // namespace cenote
