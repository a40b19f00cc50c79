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
  nb::handle tracked;                 // the value of a call on a tensor that has gradients
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
int threads_for_shape(nb::handle shape) {
  Index cells = 1;
  for (const nb::handle size : shape) cells *= nb::cast<Index>(size);
  return threads_for(cells);
}

// What to compute: (operator, windows, name), as the functions of cenote.torch write it.
struct Call {
  explicit Call(nb::handle call)
      : op(PyTuple_GetItem(call.ptr(), 0)), windows(PyTuple_GetItem(call.ptr(), 1)),
        caller(PyUnicode_AsUTF8(PyTuple_GetItem(call.ptr(), 2))) {}
  nb::handle op, windows;
  const char* caller;
};

nb::object forward_ordinary(nb::handle x_object, nb::handle call) {
  const auto x = is_quiet() ? plain(x_object) : std::nullopt;
  if (!x) return nb::none();
  if (requires_grad(x_object)) {
    const std::array<PyObject*, 2> arguments{x_object.ptr(), call.ptr()};
    return checked(PyObject_Vectorcall(torch.tracked.ptr(), arguments.data(), 2, nullptr));
  }
  const Call parts(call);
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

nb::object dual_ordinary(nb::handle x_object, nb::handle dx_object, nb::handle call) {
  const auto x = plain(x_object);
  const auto dx = plain(dx_object);
  if (!x || !dx || requires_grad(dx_object)) return nb::none();
  const Call parts(call);
  return dual_array(*x, *dx, parts.op, parts.windows, {*x, Format::like}, parts.caller, threads_for(*x));
}

bool is_last(const Array& x) {
  return x.other_format && truth(checked(PyObject_CallOneArg(torch.is_last.ptr(), x.tensor.ptr())));
}

// What the gradient needs besides winners: the input's shape, whether its channels come last, and the call.
nb::tuple rest_of(const Array& x, nb::handle call) { return nb::make_tuple(to_tuple(x.dims), is_last(x), call); }

nb::object forward_for_linear(nb::handle x_object, nb::handle call) {
  const Call parts(call);
  const Array x = exchange_array(x_object, {parts.caller, "x"});
  const nb::object y = forward_array(x, parts.op, parts.windows, {x, Format::like}, parts.caller, threads_for(x));
  return nb::make_tuple(y, rest_of(x, call));
}

nb::object forward_for_selecting(nb::handle x_object, nb::handle call) {
  const Call parts(call);
  const Array x = exchange_array(x_object, {parts.caller, "x"});
  const auto [y, winners] =
      select_array(x, parts.op, parts.windows, {x, Format::like}, maker(torch.new_bytes), parts.caller, threads_for(x));
  return nb::make_tuple(y, winners, rest_of(x, call));
}

// The gradient's memory format is the input's, whatever that of gy is.
Format gradient_format(nb::handle channels_last) {
  return channels_last.ptr() == Py_True ? Format::channels_last : Format::rows;
}

nb::object transpose_ordinary(nb::handle gy_object, nb::handle shape, nb::handle channels_last, nb::handle call) {
  const auto gy = is_quiet() ? plain(gy_object) : std::nullopt;
  if (!gy || requires_grad(gy_object)) return nb::none();
  const Call parts(call);
  return vjp_array(parts.op, parts.windows, shape, *gy, {*gy, gradient_format(channels_last)}, parts.caller,
                   threads_for_shape(shape));
}

nb::object pull_ordinary(nb::handle gy_object, nb::handle winners_object, nb::handle shape, nb::handle channels_last,
                         nb::handle call) {
  const auto gy = is_quiet() ? plain(gy_object) : std::nullopt;
  if (!gy || requires_grad(gy_object)) return nb::none();
  const auto winners = plain(winners_object);
  if (!winners || winners->strides != row_major(winners->dims)) return nb::none();
  const Call parts(call);
  return pull_array(parts.windows, shape, *winners, *gy, {*gy, gradient_format(channels_last)}, parts.caller,
                    threads_for_shape(shape));
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
         nb::object is_last, nb::object new_last, nb::object new_bytes, nb::object new_indices, nb::object tracked) {
        torch = {tensor.release(),      parameter.release(), modes.release(),    is_grad_enabled.release(),
                 threads.release(),     is_last.release(),   new_last.release(), new_bytes.release(),
                 new_indices.release(), tracked.release()};
        return find_team();
      },
      "tensor"_a, "parameter"_a, "modes"_a, "is_grad_enabled"_a, "threads"_a, "is_last"_a, "new_last"_a, "new_bytes"_a,
      "new_indices"_a, "tracked"_a,
      "Hands over what the functions below call of torch; whether they compute on its threads.",
      nb::sig("def torch_start(tensor: object, parameter: object, modes: tuple[object, ...], is_grad_enabled: object, "
              "threads: object, is_last: object, new_last: object, new_bytes: object, new_indices: object, "
              "tracked: object) -> bool"));
  m.def("torch_ordinary", &is_ordinary, "x"_a.none(), "other"_a = nb::none(),
        "Whether nothing but a kernel, and autograd, would happen to x and another one.",
        nb::sig("def torch_ordinary(x: object, other: object = None) -> bool"));
  m.def("torch_indices", &indices_ordinary, "x"_a.none(), "call"_a, "Value and indices, or None.",
        nb::sig("def torch_indices(x: object, call: tuple[typing.Any, ...]) -> typing.Any"));
  m.def("torch_dual", &dual_ordinary, "x"_a.none(), "dx"_a.none(), "call"_a, "Value and tangent, or None.",
        nb::sig("def torch_dual(x: object, dx: object, call: tuple[typing.Any, ...]) -> typing.Any"));
  m.def("torch_forward", &forward_ordinary, "x"_a.none(), "call"_a, "The value, or None where torch should be asked.",
        nb::sig("def torch_forward(x: object, call: tuple[typing.Any, ...]) -> typing.Any"));
  m.def("torch_linear", &forward_for_linear, "x"_a, "call"_a, "The value, and what `torch_transpose` wants besides gy.",
        nb::sig("def torch_linear(x: object, call: tuple[typing.Any, ...]) -> tuple[typing.Any, typing.Any]"));
  m.def("torch_select", &forward_for_selecting, "x"_a, "call"_a,
        "The value, the winners, and what `torch_pull` wants besides gy and them.",
        nb::sig("def torch_select(x: object, call: tuple[typing.Any, ...]) "
                "-> tuple[typing.Any, typing.Any, typing.Any]"));
  m.def("torch_transpose", &transpose_ordinary, "gy"_a.none(), "shape"_a, "channels_last"_a, "call"_a,
        nb::sig("def torch_transpose(gy: object, shape: tuple[int, ...], channels_last: bool, "
                "call: tuple[typing.Any, ...]) -> typing.Any"));
  m.def("torch_pull", &pull_ordinary, "gy"_a.none(), "winners"_a, "shape"_a, "channels_last"_a, "call"_a,
        nb::sig("def torch_pull(gy: object, winners: object, shape: tuple[int, ...], channels_last: bool, "
                "call: tuple[typing.Any, ...]) -> typing.Any"));
}

}  // namespace cenote::python
