// The verbs on tensors of PyTorch's as eager code calls them. Each asks torch whether nothing but the kernel (and
// autograd) would happen to the tensors, reads them, makes the result and computes, because a small call costs what is
// done around it. Calls that are not ordinary get None, and go through torch's dispatcher.
#include "torch.hpp"

#include <array>
#include <optional>
#include <utility>

#include "bind.hpp"
#include "team.hpp"
#include "verbs.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

// What cenote.torch handed over; kept for good.
struct Torch {
  nb::handle tensor, parameter;  // types
  nb::handle modes;              // functions that say, by something true, that a call is not ordinary
  nb::handle is_grad_enabled, threads;
  nb::handle is_last;                 // whether a tensor's channels come last
  nb::handle new_last;                // a tensor like another one of sizes, channels last
  nb::handle new_bytes, new_indices;  // tensors of uint8 and int64, of sizes one by one
  nb::handle select, linear, other;   // Functions of autograd, applied to a call and a tensor that has gradients
  nb::handle forward_ad;              // its module: at which level forward mode is
  nb::handle is_forward_enabled, unpack_dual, make_dual;
};
Torch torch;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a module has one

nb::object checked(PyObject* result) {
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

bool truth(const nb::object& object) {
  if (object.ptr() == Py_False || object.is_none()) return false;
  const int out = PyObject_IsTrue(object.ptr());
  if (out < 0) throw nb::python_error();
  return out != 0;
}

PyObject* interned(const char* name) {
  PyObject* out = PyUnicode_InternFromString(name);
  if (out == nullptr) throw nb::python_error();
  return out;
}

// No transformation, mode, trace or profile.
bool is_quiet() {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(torch.modes.ptr()); ++i)
    if (truth(checked(PyObject_CallNoArgs(PyTuple_GET_ITEM(torch.modes.ptr(), i))))) return false;
  return true;
}

// A tensor as its memory, if there is nothing more to it.
std::optional<Array> plain(nb::handle x) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(x.ptr()));
  if (type != torch.tensor.ptr() && type != torch.parameter.ptr()) return {};
  static PyObject* const is_neg = interned("is_neg");
  if (truth(checked(PyObject_CallMethodNoArgs(x.ptr(), is_neg)))) return {};
  try {
    Array out = exchange_array(x, {"", "x"});
    if (out.data == nullptr && volume(out.dims) != 0) return {};  // tensors of zeros that are nowhere
    return out;
  } catch (nb::python_error&) {       // sparse, nested, wrapped ones; NOLINT(bugprone-empty-catch)
  } catch (nb::builtin_exception&) {  // other devices and types; NOLINT(bugprone-empty-catch)
  }
  return {};
}

bool requires_grad(nb::handle x) {
  static PyObject* const name = interned("requires_grad");
  return truth(checked(PyObject_GetAttr(x.ptr(), name))) &&
         truth(checked(PyObject_CallNoArgs(torch.is_grad_enabled.ptr())));
}

// What torch's own operators use, in the workers of a DataLoader one. Small calls do not ask: they use one. Calls are
// as large as the input, which has more cells than the gradient of the output.
int threads_for(Index cells) {
  constexpr Index small = 4096;
  if (cells <= small) return 1;
  return nb::cast<int>(checked(PyObject_CallNoArgs(torch.threads.ptr())));
}
int threads_for(const Array& x) { return threads_for(volume(x.dims)); }

// What to compute: (operator, windows, name), as the functions of cenote.torch write it.
struct Call {
  explicit Call(nb::handle call)
      : op(PyTuple_GetItem(call.ptr(), 0)), windows(PyTuple_GetItem(call.ptr(), 1)),
        caller(PyUnicode_AsUTF8(PyTuple_GetItem(call.ptr(), 2))) {}
  nb::handle op, windows;
  const char* caller;
};

// By what the derivative needs: winners, nothing or the input.
nb::handle function_for(const AnyOperator& any) {
  return std::visit(
      []<class Op>(const Op& op) {
        if constexpr (Op::linear) return torch.linear;
        if constexpr (Selecting<Op>)
          if (op.ties == Ties::first) return torch.select;
        return torch.other;
      },
      any);
}

nb::object forward_ordinary(nb::handle x_object, nb::handle call) {
  const auto x = is_quiet() ? plain(x_object) : std::nullopt;
  if (!x) return nb::none();
  const Call parts(call);
  if (requires_grad(x_object)) {
    const nb::handle function = function_for(to_operator({parts.op, "op", parts.caller}));
    const std::array<PyObject*, 2> arguments{call.ptr(), x_object.ptr()};
    return checked(PyObject_Vectorcall(function.ptr(), arguments.data(), 2, nullptr));
  }
  return forward_array(*x, parts.op, parts.windows, {*x, Format::like}, parts.caller, threads_for(*x));
}

// As a marked function, which the compiled part calls for a tensor.
nb::tuple maker(nb::handle make) { return nb::make_tuple(make, first_type_number); }

bool is_ordinary(nb::handle x, nb::handle other) { return is_quiet() && plain(x) && (other.is_none() || plain(other)); }

nb::object indices_ordinary(nb::handle x_object, nb::handle call) {
  const auto x = is_quiet() ? plain(x_object) : std::nullopt;
  if (!x || requires_grad(x_object)) return nb::none();
  const Call parts(call);
  return indexed_array(*x, parts.op, parts.windows, {*x, Format::like}, maker(torch.new_indices), parts.caller,
                       threads_for(*x));
}

// The value in forward mode, with its tangent if the tensor has one.
nb::object tangent_ordinary(nb::handle x_object, nb::handle call) {
  const auto x = is_quiet() ? plain(x_object) : std::nullopt;
  if (!x || requires_grad(x_object)) return nb::none();
  const Call parts(call);
  const nb::object pair = torch.unpack_dual(x_object, 0);
  const nb::object dx_object = pair[1];
  if (dx_object.is_none() || !truth(torch.is_forward_enabled()))
    return forward_array(*x, parts.op, parts.windows, {*x, Format::like}, parts.caller, threads_for(*x));
  const auto dx = plain(dx_object);
  if (!dx || requires_grad(dx_object)) return nb::none();
  const auto [y, dy] = dual_array(*x, *dx, parts.op, parts.windows, {*x, Format::like}, parts.caller, threads_for(*x));
  return torch.make_dual(y, dy, 0);
}

bool is_last(const Array& x) {
  return x.other_format && truth(checked(PyObject_CallOneArg(torch.is_last.ptr(), x.tensor.ptr())));
}

// What the gradient of a call needs besides gy, and the winners, which torch keeps.
struct Rest {
  AnyOperator op;
  Geometry geometry;
  Format format;           // of the gradient: the input's, whatever that of gy is
  nb::object shape, call;  // as Python has them

  [[nodiscard]] bool is_last() const { return format == Format::channels_last; }
};
Rest rest_of(const Array& x, const AnyOperator& op, const Geometry& g, nb::handle call) {
  return {op, g, is_last(x) ? Format::channels_last : Format::rows, to_tuple(x.dims), nb::borrow(call)};
}

nb::object forward_for_linear(nb::handle x_object, nb::handle call) {
  const Call parts(call);
  const Array x = exchange_array(x_object, {parts.caller, "x"});
  const AnyOperator op = to_operator({parts.op, "op", parts.caller});
  const Geometry g = to_geometry({parts.windows, "geometry", parts.caller}, x.dims);
  const nb::object y = forward_array(x, op, g, {x, Format::like}, parts.caller, threads_for(x));
  return nb::make_tuple(y, rest_of(x, op, g, call));
}

nb::object forward_for_selecting(nb::handle x_object, nb::handle call) {
  const Call parts(call);
  const Array x = exchange_array(x_object, {parts.caller, "x"});
  const AnyOperator op = to_operator({parts.op, "op", parts.caller});
  const Geometry g = to_geometry({parts.windows, "geometry", parts.caller}, x.dims);
  const auto [y, winners] =
      select_array(x, op, g, {x, Format::like}, maker(torch.new_bytes), parts.caller, threads_for(x));
  return nb::make_tuple(y, winners, rest_of(x, op, g, call));
}

// The memory of a gradient, if computing is all that happens to it.
std::optional<Array> plain_gradient(nb::handle gy_object) {
  auto gy = is_quiet() ? plain(gy_object) : std::nullopt;
  if (gy && requires_grad(gy_object)) gy.reset();
  return gy;
}

nb::object transpose_ordinary(nb::handle gy_object, const Rest& rest) {
  const auto gy = plain_gradient(gy_object);
  if (!gy) return nb::none();
  return transpose_array(rest.op, rest.geometry, *gy, {*gy, rest.format}, Call(rest.call).caller,
                         threads_for(volume(rest.geometry.in())));
}

nb::object pull_ordinary(nb::handle gy_object, nb::handle winners_object, const Rest& rest) {
  const auto gy = plain_gradient(gy_object);
  if (!gy) return nb::none();
  const auto winners = plain(winners_object);
  if (!winners || winners->strides != row_major(winners->dims)) return nb::none();
  return pull_array(rest.geometry, *winners, *gy, {*gy, rest.format}, Call(rest.call).caller,
                    threads_for(volume(rest.geometry.in())));
}

nb::object gradient_ordinary(nb::handle node, nb::handle gy) {
  static PyObject* const level = interned("_current_level");
  static PyObject* const rest_name = interned("rest");
  static PyObject* const saved_name = interned("saved_tensors");
  if (nb::cast<int>(checked(PyObject_GetAttr(torch.forward_ad.ptr(), level))) >= 0) return nb::none();
  const nb::object object = checked(PyObject_GetAttr(node.ptr(), rest_name));
  const Rest& rest = *nb::inst_ptr<Rest>(object);
  if (is_linear(rest.op)) return transpose_ordinary(gy, rest);
  const nb::tuple saved(checked(PyObject_GetAttr(node.ptr(), saved_name)));
  return pull_ordinary(gy, saved[0], rest);
}

// `apply` of the nodes that autograd calls for a gradient: of an ordinary tensor without a way through Python. It is a
// method of C's for their types, whose own is for all other cases. A node has two inputs and at most two outputs, of
// which the first has the gradient.
PyObject* apply_written = nullptr;  // kept for good; NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

PyObject* apply_node(PyObject* node, PyObject* const* arguments, Py_ssize_t count) noexcept {
  try {
    const nb::object gx = gradient_ordinary(node, arguments[0]);
    if (!gx.is_none()) return PyTuple_Pack(2, Py_None, gx.ptr());
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  } catch (const std::exception&) {  // which it raises again; NOLINT(bugprone-empty-catch)
  }
  const std::array<PyObject*, 3> all{node, arguments[0], count > 1 ? arguments[1] : nullptr};
  return PyObject_Vectorcall(apply_written, all.data(), static_cast<std::size_t>(count) + 1, nullptr);
}

void take_gradients(nb::handle node_type) {
  using Any = void (*)();
  static PyMethodDef method{"apply", reinterpret_cast<PyCFunction>(reinterpret_cast<Any>(&apply_node)), METH_FASTCALL,
                            ""};
  if (apply_written == nullptr) apply_written = nb::object(node_type.attr("apply")).release().ptr();
  node_type.attr("apply") = checked(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(node_type.ptr()), &method));
}

}  // namespace

Array new_tensor(const Array& x, const Dims& dims, Format format, const Place& place) {
  nb::object made;
  if (format == Format::channels_last || (format == Format::like && is_last(x))) {
    made = torch.new_last(x.tensor, to_tuple(dims));
  } else {
    static PyObject* const name = interned("new_empty");
    // Sizes one by one are what torch reads the fastest; of none it wants a tuple.
    std::array<PyObject*, max_rank + 1> arguments{x.tensor.ptr()};
    const nb::tuple sizes = dims.rank > 0 ? to_tuple(dims) : nb::make_tuple(nb::tuple());
    for (std::size_t i = 0; i < sizes.size(); ++i) arguments[i + 1] = sizes[i].ptr();
    made = checked(PyObject_VectorcallMethod(name, arguments.data(), sizes.size() + 1, nullptr));
  }
  Array out = exchange_array(made, place);
  prefer_large_pages(out.data, bytes_of(out));
  out.owner = std::move(made);
  return out;
}

void bind_torch(nb::module_& m) {
  m.def(
      "torch_start",
      [](nb::object tensor, nb::object parameter, nb::tuple modes, nb::object is_grad_enabled, nb::object threads,
         nb::object is_last, nb::object new_last, nb::object new_bytes, nb::object new_indices, nb::object select,
         nb::object linear, nb::object other, nb::object forward_ad, nb::object is_forward_enabled,
         nb::object unpack_dual, nb::object make_dual) {
        torch = {tensor.release(),      parameter.release(),
                 modes.release(),       is_grad_enabled.release(),
                 threads.release(),     is_last.release(),
                 new_last.release(),    new_bytes.release(),
                 new_indices.release(), select.release(),
                 linear.release(),      other.release(),
                 forward_ad.release(),  is_forward_enabled.release(),
                 unpack_dual.release(), make_dual.release()};
        nb::set_leak_warnings(false);  // torch keeps graphs until the process ends
        return find_team();
      },
      "tensor"_a, "parameter"_a, "modes"_a, "is_grad_enabled"_a, "threads"_a, "is_last"_a, "new_last"_a, "new_bytes"_a,
      "new_indices"_a, "select"_a, "linear"_a, "other"_a, "forward_ad"_a, "is_forward_enabled"_a, "unpack_dual"_a,
      "make_dual"_a, "Hands over what the functions below call of torch; whether they compute on its threads.",
      nb::sig("def torch_start(tensor: object, parameter: object, modes: tuple[object, ...], is_grad_enabled: object, "
              "threads: object, is_last: object, new_last: object, new_bytes: object, new_indices: object, "
              "select: object, linear: object, other: object, forward_ad: object, is_forward_enabled: object, "
              "unpack_dual: object, "
              "make_dual: object) -> bool"));
  nb::class_<Rest>(m, "TorchRest", "What the gradient of a call needs besides gy and the winners.")
      .def_ro("shape", &Rest::shape, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("channels_last", &Rest::is_last)
      .def_ro("call", &Rest::call, nb::sig("def call(self) -> tuple[typing.Any, ...]"));
  m.def("torch_take_gradients", &take_gradients, "node_type"_a,
        "Gives nodes of autograd that have a TorchRest as `rest` their gradients, where they are ordinary.");
  m.def("torch_ordinary", &is_ordinary, "x"_a.none(), "other"_a = nb::none(),
        "Whether nothing but a kernel, and autograd, would happen to x and another one.",
        nb::sig("def torch_ordinary(x: object, other: object = None) -> bool"));
  m.def("torch_indices", &indices_ordinary, "x"_a.none(), "call"_a, "Value and indices, or None.",
        nb::sig("def torch_indices(x: object, call: tuple[typing.Any, ...]) -> typing.Any"));
  m.def("torch_tangent", &tangent_ordinary, "x"_a.none(), "call"_a, "The value in forward mode, or None.",
        nb::sig("def torch_tangent(x: object, call: tuple[typing.Any, ...]) -> typing.Any"));
  m.def("torch_forward", &forward_ordinary, "x"_a.none(), "call"_a, "The value, or None where torch should be asked.",
        nb::sig("def torch_forward(x: object, call: tuple[typing.Any, ...]) -> typing.Any"));
  m.def("torch_linear", &forward_for_linear, "x"_a, "call"_a, "The value, and what its gradient needs besides gy.",
        nb::sig("def torch_linear(x: object, call: tuple[typing.Any, ...]) -> tuple[typing.Any, TorchRest]"));
  m.def("torch_select", &forward_for_selecting, "x"_a, "call"_a,
        "The value, the winners, and what the gradient needs besides gy and them.",
        nb::sig("def torch_select(x: object, call: tuple[typing.Any, ...]) "
                "-> tuple[typing.Any, typing.Any, TorchRest]"));
}

}  // namespace cenote::python
