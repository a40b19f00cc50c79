#include "arguments.hpp"

#include <array>

namespace cenote::python {
namespace {

std::string shown(nb::handle object) {
  std::string text = nb::repr(object).c_str();
  constexpr std::size_t most = 80;
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

std::string sentence(const Argument& argument, std::string_view expected) {
  return std::string(argument.caller) + ": " + argument.name + " is " + shown(argument.value) + "; it must be " +
         std::string(expected);
}

// An integer, not a bool, and nothing that would have to be rounded. An array of numbers has __index__ as well.
bool is_integer(PyObject* p) {
  return PyLong_Check(p) ? !PyBool_Check(p) : PyIndex_Check(p) != 0 && PySequence_Check(p) == 0;
}

Index integer(PyObject* p, const Argument& argument) {
  Index out = 0;
  if (PyLong_CheckExact(p)) {
    out = PyLong_AsLongLong(p);
  } else {
    const nb::object whole = nb::steal(PyNumber_Index(p));
    if (!whole.is_valid()) throw nb::python_error();
    out = PyLong_AsLongLong(whole.ptr());
  }
  if (out == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise_value(argument, "a number of 64 bits");
  }
  return out;
}

// A tuple or list as it is; other sequences, and arrays of numbers, as a list. Invalid for everything else.
nb::object items(PyObject* p) {
  if (PyTuple_Check(p) || PyList_Check(p)) return nb::borrow(p);
  if (PyUnicode_Check(p) || PyBytes_Check(p) || PySequence_Check(p) == 0) return {};
  nb::object list = nb::steal(PySequence_List(p));
  if (!list.is_valid()) PyErr_Clear();  // a numpy array of rank 0 is no sequence
  return list;
}
Py_ssize_t count(const nb::object& list) { return PySequence_Fast_GET_SIZE(list.ptr()); }
PyObject* item(const nb::object& list, Py_ssize_t i) { return PySequence_Fast_GET_ITEM(list.ptr(), i); }

constexpr std::string_view integers = "an integer or a sequence of integers, one per pooled axis";

// `one_is_all`: a sequence of one number stands for every axis, as it does in PyTorch.
PerAxis per_axis(const Argument& argument, bool one_is_all, std::string_view expected = integers) {
  PyObject* p = argument.value.ptr();
  if (is_integer(p)) return integer(p, argument);
  const nb::object list = items(p);
  if (!list.is_valid()) raise_kind(argument, expected);
  PerAxis out;
  for (Py_ssize_t i = 0; i < count(list); ++i) {
    if (!is_integer(item(list, i))) raise_kind(argument, expected);
    if (out.entries.rank == max_rank)
      raise({Rule::rank_limit, argument.name, -1, count(list), max_rank}, argument.caller);
    out.entries.push_back(integer(item(list, i), argument));
  }
  if (!out.given()) raise({Rule::kernel_missing, argument.name}, argument.caller);
  if (one_is_all && out.entries.rank == 1) out.every = true;
  return out;
}
PerAxis optional_per_axis(const Argument& argument) {
  return argument.value.is_none()
             ? PerAxis{}
             : per_axis(argument, true, "None, an integer or a sequence of integers, one per pooled axis");
}

// PyTorch's stride, which may also be left out by an empty sequence.
PerAxis torch_stride(const Argument& argument) {
  const nb::object list = items(argument.value.ptr());
  return list.is_valid() && count(list) == 0 ? PerAxis{} : optional_per_axis(argument);
}

constexpr std::string_view pads =
    "an integer, one per pooled axis, a (low, high) pair per pooled axis, 'same', 'same_lower' or 'valid'";

Pads to_pads(const Argument& argument) {
  PyObject* p = argument.value.ptr();
  if (is_integer(p)) return integer(p, argument);
  if (PyUnicode_Check(p)) {
    if (PyUnicode_CompareWithASCIIString(p, "same") == 0) return same;
    if (PyUnicode_CompareWithASCIIString(p, "same_lower") == 0) return same_lower;
    if (PyUnicode_CompareWithASCIIString(p, "valid") == 0) return valid;
    raise_value(argument, pads);
  }
  const nb::object list = items(p);
  if (!list.is_valid()) raise_kind(argument, pads);
  Pads out;
  for (Py_ssize_t i = 0; i < count(list); ++i) {
    PyObject* entry = item(list, i);
    if (out.rank == max_rank) raise({Rule::rank_limit, argument.name, -1, count(list), max_rank}, argument.caller);
    if (is_integer(entry)) {
      out.push_back(integer(entry, argument));
      continue;
    }
    const nb::object pair = items(entry);
    if (!pair.is_valid()) raise_kind(argument, pads);
    if (count(pair) != 2) raise_value(argument, pads);
    for (Py_ssize_t j = 0; j < 2; ++j)
      if (!is_integer(item(pair, j))) raise_kind(argument, pads);
    out.push_back({integer(item(pair, 0), argument), integer(item(pair, 1), argument)});
  }
  if (out.rank == 0) raise_value(argument, pads);
  out.every = out.rank == 1;
  return out;
}

Dims to_axes(const Argument& argument) {
  if (argument.value.is_none()) return {};
  const Dims out = to_dims(argument);
  if (out.rank == 0) raise({Rule::axes_missing, argument.name}, argument.caller);
  return out;
}

Ties to_ties(const Argument& argument) {
  constexpr std::string_view expected = "'first', 'all' or 'split'";
  PyObject* p = argument.value.ptr();
  if (!PyUnicode_Check(p)) raise_kind(argument, expected);
  if (PyUnicode_CompareWithASCIIString(p, "first") == 0) return Ties::first;
  if (PyUnicode_CompareWithASCIIString(p, "all") == 0) return Ties::all;
  if (PyUnicode_CompareWithASCIIString(p, "split") == 0) return Ties::split;
  raise_value(argument, expected);
}

// The operator, if its parameters are legal.
template <class Op>
AnyOperator checked(const Op& op, std::string_view caller) {
  with_names(caller, {{"divisor", "divisor_override"}}, [&] { spec::detail::check_operator(caller, op); });
  return op;
}

// PyTorch's None keeps an axis as it is, which the library calls -1; a caller's own -1 is an error.
TorchAdaptive torch_output(int axes, const Argument& argument) {
  constexpr std::string_view expected = "an integer, None, or a sequence of them, one per pooled axis";
  TorchAdaptive out{axes, {}, {}};
  const auto take = [&](PyObject* entry) {
    if (entry != Py_None && !is_integer(entry)) raise_kind(argument, expected);
    const Index size = entry == Py_None ? same_size : integer(entry, argument);
    if (entry != Py_None && size == same_size && !out.refused) out.refused = out.output.entries.rank;
    if (out.output.entries.rank == max_rank)
      raise({Rule::rank_limit, argument.name, -1, max_rank + 1, max_rank}, argument.caller);
    out.output.entries.push_back(size);
  };
  PyObject* p = argument.value.ptr();
  if (p == Py_None || is_integer(p)) {
    take(p);
  } else {
    const nb::object list = items(p);
    if (!list.is_valid()) raise_kind(argument, expected);
    for (Py_ssize_t i = 0; i < count(list); ++i) take(item(list, i));
  }
  out.output.every = out.output.entries.rank == 1;
  return out;
}

nb::handle at(nb::handle tuple, Py_ssize_t i) { return PyTuple_GET_ITEM(tuple.ptr(), i); }

// The tag of a tuple that the package made, or 0. Nobody else's tuple has a tag and as many entries as belong to it.
long tag_of(nb::handle object) {
  if (!PyTuple_CheckExact(object.ptr()) || PyTuple_GET_SIZE(object.ptr()) == 0) return 0;
  PyObject* first = at(object, 0).ptr();
  if (!PyLong_CheckExact(first)) return 0;
  int overflow = 0;
  const long tag = PyLong_AsLongAndOverflow(first, &overflow);
  constexpr std::array<Py_ssize_t, torch_adaptive_tag - max_tag + 1> sizes{2, 2, 3, 1, 3, 2, 2, 7, 3, 4, 7, 3};
  if (tag < max_tag || tag > torch_adaptive_tag) return 0;
  return PyTuple_GET_SIZE(object.ptr()) == sizes[static_cast<std::size_t>(tag - max_tag)] ? tag : 0;
}

}  // namespace

void raise_kind(const Argument& argument, std::string_view expected) {
  throw nb::type_error(sentence(argument, expected).c_str());
}
void raise_value(const Argument& argument, std::string_view expected) {
  throw nb::value_error(sentence(argument, expected).c_str());
}

void rethrow_renamed(const Error& error, std::string_view caller, std::initializer_list<Renamed> names) {
  // Every sentence of the library opens with "caller: argument".
  for (const auto& [from, to] : names) {
    if (error.argument != from) continue;
    const std::string rest = std::string(error.what()).substr(caller.size() + 2 + from.size());
    throw nb::value_error((std::string(caller) + ": " + std::string(to) + rest).c_str());
  }
  throw;
}

Index to_index(const Argument& argument) {
  if (!is_integer(argument.value.ptr())) raise_kind(argument, "an integer");
  return integer(argument.value.ptr(), argument);
}

double to_number(const Argument& argument) {
  PyObject* p = argument.value.ptr();
  if (PyFloat_CheckExact(p)) return PyFloat_AS_DOUBLE(p);
  if (PyBool_Check(p) || PyUnicode_Check(p)) raise_kind(argument, "a number");
  const double out = PyFloat_AsDouble(p);
  if (out == -1.0 && PyErr_Occurred() != nullptr) {
    const bool range = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    if (range) raise_value(argument, "within the range of a float");
    raise_kind(argument, "a number");
  }
  return out;
}

bool to_bool(const Argument& argument) {
  PyObject* p = argument.value.ptr();
  if (p == Py_True) return true;
  if (p == Py_False) return false;
  // numpy's own bool is the only other thing that is meant as one.
  if (std::string_view(Py_TYPE(p)->tp_name).find("bool") == std::string_view::npos)
    raise_kind(argument, "True or False");
  return PyObject_IsTrue(p) == 1;
}

Dims to_dims(const Argument& argument) {
  constexpr std::string_view expected = "an integer or a sequence of integers";
  PyObject* p = argument.value.ptr();
  Dims out;
  if (is_integer(p)) {
    out.push_back(integer(p, argument));
    return out;
  }
  const nb::object list = items(p);
  if (!list.is_valid()) raise_kind(argument, expected);
  for (Py_ssize_t i = 0; i < count(list); ++i) {
    if (!is_integer(item(list, i))) raise_kind(argument, expected);
    if (out.rank == max_rank) raise({Rule::rank_limit, argument.name, -1, count(list), max_rank}, argument.caller);
    out.push_back(integer(item(list, i), argument));
  }
  return out;
}

nb::tuple to_tuple(const Dims& dims) {
  const nb::object out = nb::steal(PyTuple_New(dims.rank));
  if (!out.is_valid()) throw nb::python_error();
  for (int a = 0; a < dims.rank; ++a) {
    PyObject* entry = PyLong_FromLongLong(dims[a]);
    if (entry == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(out.ptr(), a, entry);
  }
  return nb::borrow<nb::tuple>(out);
}

AnyOperator make_max(nb::handle ties, std::string_view caller) { return Max{to_ties({ties, "ties", caller})}; }
AnyOperator make_min(nb::handle ties, std::string_view caller) { return Min{to_ties({ties, "ties", caller})}; }

AnyOperator make_average(nb::handle count_include_pad, nb::handle divisor_override, std::string_view caller) {
  const bool include = to_bool({count_include_pad, "count_include_pad", caller});
  if (divisor_override.is_none()) return Average{include ? Divisor::padded : Divisor::real};
  return checked(Average{to_index({divisor_override, "divisor_override", caller})}, caller);
}

AnyOperator make_smooth_max(nb::handle beta, nb::handle padding_mode, std::string_view caller) {
  constexpr std::string_view expected = "'zeros' or 'ignore'";
  const Argument mode{padding_mode, "padding_mode", caller};
  PyObject* p = padding_mode.ptr();
  if (!PyUnicode_Check(p)) raise_kind(mode, expected);
  const bool zeros = PyUnicode_CompareWithASCIIString(p, "zeros") == 0;
  if (!zeros && PyUnicode_CompareWithASCIIString(p, "ignore") != 0) raise_value(mode, expected);
  return checked(SmoothMax{to_number({beta, "beta", caller}), zeros ? Padding::zeros : Padding::ignore}, caller);
}

AnyOperator make_lp(nb::handle p, std::string_view caller, const char* name) {
  return with_names(caller, {{"p", name}}, [&] { return checked(Lp{to_number({p, name, caller})}, caller); });
}

AnyOperator to_operator(const Argument& argument) {
  const nb::handle object = argument.value;
  const std::string_view caller = argument.caller;
  if (const long tag = tag_of(object); tag != 0) {
    switch (tag) {
      case max_tag: return make_max(at(object, 1), caller);
      case min_tag: return make_min(at(object, 1), caller);
      case average_tag: return make_average(at(object, 1), at(object, 2), caller);
      case sum_tag: return Sum{};
      case smooth_max_tag: return make_smooth_max(at(object, 1), at(object, 2), caller);
      case lp_tag: return make_lp(at(object, 1), caller);
      case torch_lp_tag: return make_lp(at(object, 1), caller, "norm_type");
      default: break;
    }
  }
  const Operator* op = nullptr;
  if (!nb::try_cast<const Operator*>(object, op, false) || op == nullptr)
    raise_kind(argument, "an operator: Max, Min, Average, Sum, SmoothMax or Lp");
  return op->value;
}

Sliding make_sliding(nb::handle kernel, nb::handle stride, nb::handle padding, nb::handle dilation,
                     nb::handle ceil_mode, nb::handle axes, std::string_view caller) {
  Sliding out;
  out.axes = to_axes({axes, "axes", caller});
  out.kernel = per_axis({kernel, "kernel", caller}, out.axes.rank > 0);
  out.stride = optional_per_axis({stride, "stride", caller});
  out.padding = to_pads({padding, "padding", caller});
  out.dilation = per_axis({dilation, "dilation", caller}, true);
  if (to_bool({ceil_mode, "ceil_mode", caller})) out.rounding = Rounding::ceil;
  return out;
}

Convolution make_convolution(nb::handle stride, nb::handle padding, nb::handle dilation, std::string_view caller) {
  return {per_axis({stride, "stride", caller}, true), to_pads({padding, "padding", caller}),
          per_axis({dilation, "dilation", caller}, true)};
}

Adaptive make_adaptive(nb::handle output_size, nb::handle axes, std::string_view caller) {
  Adaptive out;
  out.axes = to_axes({axes, "axes", caller});
  out.output = per_axis({output_size, "output_size", caller}, out.axes.rank > 0);
  return out;
}

Global make_global(nb::handle spatial_dims, nb::handle axes, nb::handle keepdims, std::string_view caller) {
  Global out;
  if (!spatial_dims.is_none()) {
    const Argument last{spatial_dims, "spatial_dims", caller};
    const Index number = to_index(last);
    if (number < 1 || number > max_rank) raise_value(last, "None, or how many of the last axes to pool: 1 to 16");
    out.last = static_cast<int>(number);
  }
  out.axes = to_axes({axes, "axes", caller});
  out.keep = to_bool({keepdims, "keepdims", caller});
  return out;
}

Geometry resolve_any(const AnyWindows& windows, const Dims& in, std::string_view caller) {
  return std::visit(
      [&]<class W>(const W& w) -> Geometry {
        if constexpr (std::is_same_v<W, Geometry>) {
          spec::detail::check_shape(caller, "x", in, w.in());
          return w;
        } else if constexpr (std::is_same_v<W, TorchSliding>) {
          return with_names(caller, {{"kernel", "kernel_size"}}, [&] {
            return detail::torch_sliding(caller, in, w.axes, w.kernel, w.stride, w.padding, w.dilation, w.ceil_mode);
          });
        } else if constexpr (std::is_same_v<W, TorchAdaptive>) {
          const Dims axes = detail::torch_axes(caller, in, w.axes);
          if (w.refused && *w.refused < axes.rank)
            detail::raise_unresolved(
                {Rule::output_positive, "output_size", static_cast<int>(axes[*w.refused]), same_size}, caller, in);
          return with_names(caller, {{"output", "output_size"}},
                            [&] { return detail::torch_adaptive(caller, in, w.axes, w.output); });
        } else {
          return with_names(caller, {{"output", "output_size"}, {"last", "spatial_dims"}},
                            [&] { return resolve(in, w, caller); });
        }
      },
      windows);
}

Geometry to_geometry(const Argument& argument, const Dims& in) {
  const nb::handle object = argument.value;
  const std::string_view caller = argument.caller;
  if (const long tag = tag_of(object); tag != 0) {
    const auto arg = [&](Py_ssize_t i) { return at(object, i); };
    const auto axes = [&] { return static_cast<int>(PyLong_AsLong(arg(1).ptr())); };
    switch (tag) {
      case sliding_tag:
        return resolve_any(make_sliding(arg(1), arg(2), arg(3), arg(4), arg(5), arg(6), caller), in, caller);
      case adaptive_tag: return resolve_any(make_adaptive(arg(1), arg(2), caller), in, caller);
      case global_tag: return resolve_any(make_global(arg(1), arg(2), arg(3), caller), in, caller);
      case torch_sliding_tag:
        return resolve_any(
            TorchSliding{axes(), per_axis({arg(2), "kernel_size", caller}, true),
                         torch_stride({arg(3), "stride", caller}), per_axis({arg(4), "padding", caller}, true),
                         per_axis({arg(5), "dilation", caller}, true), to_bool({arg(6), "ceil_mode", caller})},
            in, caller);
      case torch_adaptive_tag: return resolve_any(torch_output(axes(), {arg(2), "output_size", caller}), in, caller);
      default: break;
    }
  }
  const Windows* windows = nullptr;
  if (!nb::try_cast<const Windows*>(object, windows, false) || windows == nullptr)
    raise_kind(argument, "a geometry: Sliding, Adaptive, Global, or what resolve() makes of one");
  return resolve_any(windows->value, in, caller);
}

}  // namespace cenote::python
