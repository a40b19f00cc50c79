// What a caller writes in Python, as the library's values: operators and windows, from objects or from the tuples that
// the functions of the package pass on. Kinds are checked here (TypeError); values are checked by the library.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "cenote/geometry.hpp"
#include "cenote/graph/conv.hpp"
#include "cenote/ops.hpp"
#include "cenote/torch_names.hpp"

namespace cenote::python {

namespace nb = nanobind;

// Any operator. The classes Max, Min, ... of the module inherit it.
using AnyOperator = std::variant<Max, Min, Average, Sum, SmoothMax, Lp>;
struct Operator {
  AnyOperator value;
};

// PyTorch's windows: as many pooled axes as the function's name says, and PyTorch's bound on the padding (G6).
struct TorchSliding {
  int axes;
  PerAxis kernel, stride, padding, dilation;
  bool ceil_mode;
};
struct TorchAdaptive {
  int axes;
  PerAxis output;
  std::optional<int> refused;  // an entry that is no size
};

// Any windows, with or without a shape. The classes Sliding, Adaptive, Global and Geometry of the module inherit it.
using AnyWindows = std::variant<Sliding, Adaptive, Global, Geometry, TorchSliding, TorchAdaptive>;
struct Windows {
  AnyWindows value;
};

// One thing that a caller passes, and what to call it in a message.
struct Argument {
  nb::handle value;
  const char* name;
  std::string_view caller;
};

[[noreturn]] void raise_kind(const Argument& argument, std::string_view expected);   // TypeError
[[noreturn]] void raise_value(const Argument& argument, std::string_view expected);  // ValueError

Index to_index(const Argument& argument);
double to_number(const Argument& argument);
bool to_bool(const Argument& argument);
Dims to_dims(const Argument& argument);  // an integer or a sequence of them
nb::tuple to_tuple(const Dims& dims);

// The operator's parameters have been checked.
AnyOperator make_max(nb::handle ties, std::string_view caller);
AnyOperator make_min(nb::handle ties, std::string_view caller);
AnyOperator make_average(nb::handle count_include_pad, nb::handle divisor_override, std::string_view caller);
AnyOperator make_smooth_max(nb::handle beta, nb::handle padding_mode, std::string_view caller);
AnyOperator make_lp(nb::handle p, std::string_view caller, const char* name = "p");

Sliding make_sliding(nb::handle kernel, nb::handle stride, nb::handle padding, nb::handle dilation,
                     nb::handle ceil_mode, nb::handle axes, std::string_view caller);
Adaptive make_adaptive(nb::handle output_size, nb::handle axes, std::string_view caller);
Convolution make_convolution(nb::handle stride, nb::handle padding, nb::handle dilation, std::string_view caller);
Global make_global(nb::handle spatial_dims, nb::handle axes, nb::handle keepdims, std::string_view caller);

// The functions of the package pass a tuple of one of these numbers and the arguments of the class, which costs a call
// less than an object. The numbers are such that no kernel or shape is taken for one (_tags.py has them too).
enum Tag : long {
  max_tag = 1L << 40,
  min_tag,
  average_tag,
  sum_tag,
  smooth_max_tag,
  lp_tag,
  torch_lp_tag,
  sliding_tag,
  adaptive_tag,
  global_tag,
  torch_sliding_tag,
  torch_adaptive_tag
};

// From an Operator, or such a tuple.
AnyOperator to_operator(const Argument& argument);
nb::object to_object(const AnyOperator& any);  // an instance of the module's class
// From Windows, or such a tuple; checked against a shape.
Geometry to_geometry(const Argument& argument, const Dims& in);
Geometry resolve_any(const AnyWindows& windows, const Dims& in, std::string_view caller);

// Runs `call`; in what the library throws, arguments have the names that they have in Python.
struct Renamed {
  std::string_view from, to;
};
[[noreturn]] void rethrow_renamed(const Error& error, std::string_view caller, std::initializer_list<Renamed> names);
template <class F>
decltype(auto) with_names(std::string_view caller, std::initializer_list<Renamed> names, F&& call) {
  try {
    return call();
  } catch (const Error& error) {
    rethrow_renamed(error, caller, names);
  }
}

}  // namespace cenote::python
