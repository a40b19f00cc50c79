// Pooling as foreign functions of XLA, for cenote.jax: what a call needs is checked while jax traces, travels as
// attributes of the call, and is read from them by the handlers, which run without Python.
#include <algorithm>
#include <span>

#include "bind.hpp"
#include "cenote/indices.hpp"
#include "verbs.hpp"
#include "xla_frame.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

constexpr const char* caller = "cenote.jax";

// ---- attributes: one list of names, for writing and for reading --------------------------------------------------

template <class Op, class Visit>
void each_parameter(Op& op, Visit&& visit) {
  using Plain = std::remove_const_t<Op>;
  if constexpr (std::is_same_v<Plain, Max> || std::is_same_v<Plain, Min>) {
    visit("ties", op.ties);
  } else if constexpr (std::is_same_v<Plain, Average>) {
    visit("divisor_kind", op.divisor.kind);
    visit("divisor", op.divisor.number);
  } else if constexpr (std::is_same_v<Plain, SmoothMax>) {
    visit("beta", op.beta);
    visit("padding_mode", op.padding);
  } else if constexpr (std::is_same_v<Plain, Lp>) {
    visit("p", op.p);
  } else {
    static_assert(std::is_same_v<Plain, Sum>);
  }
}

template <class W, class Visit>
void each_parameter_of_windows(W& windows, Visit&& visit) {
  visit("axes", windows.axes);
  if constexpr (requires { windows.kernel; }) {
    visit("kernel", windows.kernel);
    visit("stride", windows.stride);
    visit("padding", windows.padding);
    visit("dilation", windows.dilation);
    visit("rounding", windows.rounding);
  } else if constexpr (requires { windows.output; }) {
    visit("output", windows.output);
  } else {
    visit("keep", windows.keep);
  }
}

template <class W>
constexpr const char* kind_of = nullptr;
template <>
constexpr const char* kind_of<Sliding> = "sliding";
template <>
constexpr const char* kind_of<Adaptive> = "adaptive";
template <>
constexpr const char* kind_of<Global> = "global";

template <class T>
concept Integer = std::is_enum_v<T> || std::is_integral_v<T>;

struct Writer {
  nb::dict to;
  void operator()(const char* name, const Dims& dims) const { to[name] = nb::list(to_tuple(dims)); }
  void operator()(const char* name, const PerAxis& numbers) const { (*this)(name, numbers.entries); }
  void operator()(const char* name, const Pads& pads) const {
    Dims low;
    Dims high;
    for (int i = 0; i < pads.rank; ++i) {
      low.push_back(pads[i].low);
      high.push_back(pads[i].high);
    }
    (*this)((name + std::string("_low")).c_str(), low);
    (*this)((name + std::string("_high")).c_str(), high);
  }
  void operator()(const char* name, double number) const { to[name] = number; }
  void operator()(const char* name, Integer auto number) const { to[name] = static_cast<Index>(number); }
};

struct Reader {
  const XlaFrame& from;
  void operator()(const char* name, Dims& to) const { from.get(name, to); }
  void operator()(const char* name, PerAxis& to) const {
    Dims numbers;
    from.get(name, numbers);
    to = numbers;
  }
  void operator()(const char* name, Pads& to) const {
    Dims low;
    Dims high;
    from.get(name + std::string("_low"), low);
    from.get(name + std::string("_high"), high);
    to = {};
    for (int i = 0; i < std::min(low.rank, high.rank); ++i) to.push_back({low[i], high[i]});
  }
  void operator()(const char* name, double& to) const { from.get(name, to); }
  void operator()(const char* name, Integer auto& to) const {
    Index number = 0;
    from.get(name, number);
    to = static_cast<std::remove_cvref_t<decltype(to)>>(number);
  }
};

// The attributes of a call, from windows as `signature` makes them.
nb::dict attributes(nb::handle op, nb::handle windows) {
  const Writer write{nb::dict()};
  std::visit(
      [&]<class Op>(const Op& each) {
        write.to["operator"] = Op::name;
        each_parameter(each, write);
      },
      nb::cast<const Operator&>(op).value);
  std::visit(
      [&]<class W>(const W& each) {
        if constexpr (WindowSpec<W>) {
          write.to["windows"] = kind_of<W>;
          each_parameter_of_windows(each, write);
        } else {
          throw nb::type_error("windows must come from xla_signature");
        }
      },
      nb::cast<const Windows&>(windows).value);
  return write.to;
}

AnyOperator read_operator(const XlaFrame& frame) {
  const std::string_view name = frame.text("operator");
#define CENOTE_READ(Op)                       \
  if (name == Op::name) {                     \
    Op op;                                    \
    each_parameter(op, Reader{frame});        \
    spec::detail::check_operator(caller, op); \
    return op;                                \
  }
  CENOTE_OPERATORS(CENOTE_READ)
#undef CENOTE_READ
  throw std::invalid_argument("there is no operator `" + std::string(name) + "`");
}

template <class W>
Geometry read_windows(const XlaFrame& frame, const Dims& in) {
  W windows;
  each_parameter_of_windows(windows, Reader{frame});
  return resolve(in, windows, caller);
}

Geometry read_geometry(const XlaFrame& frame, const Dims& in) {
  const std::string_view kind = frame.text("windows");
  if (kind == kind_of<Sliding>) return read_windows<Sliding>(frame, in);
  if (kind == kind_of<Adaptive>) return read_windows<Adaptive>(frame, in);
  return read_windows<Global>(frame, in);
}

// ---- handlers ----------------------------------------------------------------------------------------------------

// Winners travel as unsigned numbers of the output's shape, and are read and written where they lie.
Winners winners_on(const XLA_FFI_Buffer& buffer, const Geometry& g) {
  spec::detail::check_shape(caller, "winners", dims_of(buffer), g.out());
  const int bytes =
      with_scalar(element_type(buffer), []<class T>(std::type_identity<T>) { return static_cast<int>(sizeof(T)); });
  if (bytes != Winners::bytes_each(g)) throw std::invalid_argument("winners have another size than this geometry's");
  return {g, {static_cast<std::uint8_t*>(buffer.data), static_cast<std::size_t>(Winners::bytes_for(g))}};
}

// x -> y, or x -> y and winners.
void run_forward(const XlaFrame& frame) {
  const AnyOperator any = read_operator(frame);
  const Geometry g = read_geometry(frame, dims_of(frame.argument(0)));
  dispatch<false>(any, element_type(frame.argument(0)), {caller, "x"},
                  [&]<class Op, class T>(const Op& op, std::type_identity<T>) {
                    forward<T>(op, g, frame.read<T>(0), frame.write<T>(0), {}, caller);
                  });
}
void run_select(const XlaFrame& frame) {
  const AnyOperator any = read_operator(frame);
  const Geometry g = read_geometry(frame, dims_of(frame.argument(0)));
  dispatch<false>(any, element_type(frame.argument(0)), {caller, "x"},
                  [&]<class Op, class T>(const Op& op, std::type_identity<T>) {
                    if constexpr (Selecting<Op>) {
                      Winners winners = winners_on(frame.result(1), g);
                      forward_with_winners<T>(op, g, frame.read<T>(0), frame.write<T>(0), winners, {}, caller);
                    } else {
                      throw std::invalid_argument("only max and min have winners");
                    }
                  });
}

// x, dx -> y, dy, in one read of the input.
void run_forward_and_push(const XlaFrame& frame) {
  const AnyOperator any = read_operator(frame);
  const Geometry g = read_geometry(frame, dims_of(frame.argument(0)));
  dispatch<true>(
      any, element_type(frame.argument(0)), {caller, "x"}, [&]<class Op, class T>(const Op& op, std::type_identity<T>) {
        forward_and_jvp<T>(op, g, frame.read<T>(0), frame.read<T>(1), frame.write<T>(0), frame.write<T>(1), {}, caller);
      });
}

// The derivative at a point: nothing for a linear operator, winners where there is one winner, x for the rest.
// dx -> dy, or gy -> gx.
template <bool pull>
void run_derivative(const XlaFrame& frame) {
  const AnyOperator any = read_operator(frame);
  const Index last = frame.arguments() - 1;
  const XLA_FFI_Buffer& input = pull ? frame.result(0) : frame.argument(last);
  const Geometry g = read_geometry(frame, dims_of(input));
  dispatch<true>(any, element_type(input), {caller, "x"}, [&]<class Op, class T>(const Op& op, std::type_identity<T>) {
    const View<const T> from = frame.read<T>(last);
    const View<T> to = frame.write<T>(0);
    if constexpr (Op::linear) {
      if constexpr (pull)
        vjp<T>(op, g, from, to, {}, caller);
      else
        forward<T>(op, g, from, to, {}, caller);  // A6
      return;
    } else {
      if constexpr (Selecting<Op>) {
        if (op.ties == Ties::first) {
          const Winners winners = winners_on(frame.argument(0), g);
          spec::detail::check_shape(caller, pull ? "gy" : "dx", from.dims(), pull ? g.out() : g.in());
          spec::detail::check_shape(caller, pull ? "gx" : "dy", to.dims(), pull ? g.in() : g.out());
          if constexpr (pull)
            compiled::pull<T>(g, winners, from, to, {});
          else
            compiled::push<T>(g, winners, from, to, {});
          return;
        }
      }
      if constexpr (pull)
        vjp<T>(op, g, frame.read<T>(0), from, to, {}, caller);
      else
        jvp<T>(op, g, frame.read<T>(0), from, to, {}, caller);
    }
  });
}

// The input's shape: sizes of pooled axes from the attribute, of the others from the output, where a program may have
// learnt them.
Dims read_shape(const XlaFrame& frame, const Dims& out) {
  Dims in;
  Dims pooled;
  frame.get("shape", in);
  frame.get("axes", pooled);
  const bool kept = out.rank == in.rank;
  int next = 0;
  for (int a = 0; a < in.rank; ++a) {
    const bool is_pooled = std::find(pooled.begin(), pooled.end(), a) != pooled.end();
    if (!is_pooled) in[a] = out[next];
    if (!is_pooled || kept) ++next;
  }
  return in;
}

// Winners as PyTorch numbers them (M6).
void run_indices(const XlaFrame& frame) {
  const Geometry g = read_geometry(frame, read_shape(frame, dims_of(frame.argument(0))));
  const Winners winners = winners_on(frame.argument(0), g);
  const XLA_FFI_Buffer& to = frame.result(0);
  spec::detail::check_shape(caller, "indices", dims_of(to), g.out());
  const auto write = [&]<class Number>(Number) {
    flat_indices(g, winners, std::span(frame.write<Number>(0).data(), static_cast<std::size_t>(volume(g.out()))));
  };
  if (element_type(to) == Type::i64)
    write(std::int64_t{});
  else
    write(std::int32_t{});  // jax without 64 bits; that they fit has been checked
}

// ---- while jax traces --------------------------------------------------------------------------------------------

// The same windows in one form: every number of every pooled axis written down, so that equal windows are equal
// parameters of a program, and axes can be counted on when vmap adds one.
nb::object plain_windows(const Geometry& g) {
  Dims axes;
  Dims kernel;
  Dims stride;
  Dims dilation;
  Dims output;
  nb::list padding;
  bool sliding = false;
  bool drops = false;
  for (int a = 0; a < g.rank(); ++a) {
    const Axis& axis = g.axis(a);
    if (!axis.pooled()) continue;
    axes.push_back(a);
    kernel.push_back(axis.kernel);
    stride.push_back(axis.stride);
    dilation.push_back(axis.dilation);
    output.push_back(axis.out);
    padding.append(nb::make_tuple(axis.padding.low, axis.padding.high));
    sliding = axis.kind == Axis::Kind::sliding;
    drops = g.drops(a);
  }
  const nb::module_ core = nb::module_::import_("cenote._core");
  if (sliding)
    return core.attr("Sliding")(to_tuple(kernel), to_tuple(stride), nb::tuple(padding), to_tuple(dilation),
                                g.rounding() == Rounding::ceil, to_tuple(axes));
  if (drops) return core.attr("Global")(nb::none(), to_tuple(axes), false);
  return core.attr("Adaptive")(to_tuple(output), to_tuple(axes));
}

// What a call is, checked: an Operator, and windows in their plain form.
nb::tuple signature(nb::handle op, nb::handle windows, nb::handle shape, nb::handle dtype, const char* name,
                    bool derivative) {
  const Type type = type_of_dtype(dtype, {name, "x"});
  const AnyOperator any = to_operator({op, "op", name});
  const Geometry g = to_geometry({windows, "geometry", name}, to_dims({shape, "x", name}));
  if (derivative)
    dispatch<true>(any, type, {name, "x"}, [](const auto&, auto) {});
  else
    dispatch<false>(any, type, {name, "x"}, [](const auto&, auto) {});
  return nb::make_tuple(to_object(any), plain_windows(g));
}

// TypeError or ValueError unless a tangent or a gradient has the type of x and the shape that it must have.
void check_like(nb::handle shape, nb::handle dtype, nb::handle expected, nb::handle x_dtype, const char* argument,
                const char* name, const char* point) {
  Array x;
  Array other;
  x.type = type_of_dtype(x_dtype, {name, "x"});
  other.type = type_of_dtype(dtype, {name, argument});
  check_same_type(x, other, {name, argument}, point);
  spec::detail::check_shape(name, argument, to_dims({shape, argument, name}), to_dims({expected, argument, name}));
}

}  // namespace

void bind_xla(nb::module_& m) {
  m.def(
      "xla_handlers",
      [](int minor_version) {
        nb::set_leak_warnings(false);  // jax keeps operators and windows in its caches until the process ends
        xla_minor_version = std::clamp(minor_version, 1, XLA_FFI_API_MINOR);
        nb::dict out;
        const auto add = [&](const char* name, XLA_FFI_Handler* handler) {
          out[name] = nb::capsule(reinterpret_cast<void*>(handler));
        };
        add("cenote_forward", &xla_handler<run_forward>);
        add("cenote_select", &xla_handler<run_select>);
        add("cenote_forward_and_push", &xla_handler<run_forward_and_push>);
        add("cenote_push", &xla_handler<run_derivative<false>>);
        add("cenote_pull", &xla_handler<run_derivative<true>>);
        add("cenote_indices", &xla_handler<run_indices>);
        return out;
      },
      "minor_version"_a, nb::sig("def xla_handlers(minor_version: int) -> dict[str, typing.Any]"),
      "The handlers for jax.ffi.register_ffi_target, made for version 0.minor_version of XLA's interface or older.");
  m.def("xla_signature", &signature, "op"_a.none(), "geometry"_a.none(), "shape"_a.none(), "dtype"_a.none(), "caller"_a,
        "derivative"_a = false,
        nb::sig("def xla_signature(op: object, geometry: object, shape: object, dtype: object, caller: str, "
                "derivative: bool = False) -> tuple[Operator, Windows]"),
        "Operator and windows of a call, checked, in the form in which programs keep them.");
  m.def("xla_check_like", &check_like, "shape"_a.none(), "dtype"_a.none(), "expected"_a.none(), "x_dtype"_a.none(),
        "argument"_a, "caller"_a, "point"_a,
        nb::sig("def xla_check_like(shape: object, dtype: object, expected: object, x_dtype: object, argument: str, "
                "caller: str, point: str) -> None"),
        "Complains unless a tangent or a gradient has the type of x and the expected shape.");
  m.def("xla_attributes", &attributes, "op"_a, "geometry"_a,
        nb::sig("def xla_attributes(op: Operator, geometry: Windows) -> dict[str, int | float | str | list[int]]"),
        "What the handlers read.");
}

}  // namespace cenote::python
