// forward, jvp and vjp on Python's arrays.
#include "verbs.hpp"

#include <algorithm>
#include <span>

#include "bind.hpp"
#include "team.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

// In messages, a result that the caller gave has the name it has in Python.
template <class F>
void with_result_names(std::string_view caller, F&& call) {
  with_names(caller, {{"y", "out"}, {"dy", "out"}, {"gx", "out"}}, call);
}

// The elements of a contiguous array.
template <class T>
std::span<T> elements(const Array& array) {
  return {static_cast<T*>(array.data), static_cast<std::size_t>(volume(array.dims))};
}

nb::object forward_verb(nb::handle op, nb::handle windows, nb::handle x, nb::handle out, const char* caller,
                        int threads) {
  return forward_array(read_array(x, {caller, "x"}), op, windows, out, caller, threads);
}

nb::object forward_and_indices_verb(nb::handle op, nb::handle windows, nb::handle x, nb::handle out,
                                    const char* caller) {
  return indexed_array(read_array(x, {caller, "x"}), op, windows, out, nb::none(), caller, 0);
}

// The shape of x, where x is given by its shape alone: a tuple or a list of integers.
bool is_shape(nb::handle x) {
  if (!PyTuple_Check(x.ptr()) && !PyList_Check(x.ptr())) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x.ptr()); ++i)
    if (PyIndex_Check(PySequence_Fast_GET_ITEM(x.ptr(), i)) == 0) return false;
  return true;
}

// x of a derivative, and what else of its shape and type is known from `other`.
struct Point {
  Array x;
  bool known;  // its elements are there
};
Point read_point(nb::handle object, const AnyOperator& op, const Array& other, const Place& other_place) {
  const Place place{other_place.caller, "x"};
  if (is_shape(object) && is_linear(op)) {
    Array x;
    x.dims = to_dims({object, "x", place.caller});
    x.type = other.type;
    return {x, false};
  }
  Point point{read_array(object, place), true};
  check_same_type(point.x, other, other_place, "x");
  return point;
}

nb::object jvp_verb(nb::handle op, nb::handle windows, nb::handle x_object, nb::handle dx_object, nb::handle out,
                    const char* caller, int threads) {
  const AnyOperator any = to_operator({op, "op", caller});
  const Array dx = read_array(dx_object, {caller, "dx"});
  const Point point = read_point(x_object, any, dx, {caller, "dx"});
  const Geometry g = to_geometry({windows, "geometry", caller}, point.x.dims);
  const Array dy = result_array(out, g.out(), dx.type, caller);
  with_result_names(caller, [&] {
    dispatch<true>(any, dx.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
      const View<const T> tangent = dx.read<T>();
      const View<T> to = dy.write<T>();
      spec::detail::check_shape(caller, "dx", tangent.dims(), g.in());
      const View<const T> at = point.known ? point.x.read<T>() : tangent;  // which a linear operator does not read (A6)
      const Unlocked unlocked(g);
      jvp<T>(each, g, at, tangent, to, at_most(threads), caller);
    });
  });
  return dy.owner;
}

nb::object forward_and_jvp_verb(nb::handle op, nb::handle windows, nb::handle x, nb::handle dx, nb::handle out,
                                const char* caller, int threads) {
  const auto [y, dy] =
      dual_array(read_array(x, {caller, "x"}), read_array(dx, {caller, "dx"}), op, windows, out, caller, threads);
  return nb::make_tuple(y, dy);
}

nb::object vjp_verb(nb::handle op, nb::handle windows, nb::handle x, nb::handle gy, nb::handle out, const char* caller,
                    int threads) {
  return vjp_array(op, windows, x, read_array(gy, {caller, "gy"}), out, caller, threads);
}

// What a function makes of sizes, which it is given one by one; of none, as an empty tuple.
nb::object made(nb::handle make, const Dims& dims) {
  const nb::tuple sizes = dims.rank > 0 ? nb::tuple(to_tuple(dims)) : nb::make_tuple(nb::tuple());
  nb::object out = nb::steal(PyObject_CallObject(make.ptr(), sizes.ptr()));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

}  // namespace

bool is_linear(const AnyOperator& op) {
  return std::visit([]<class Op>(const Op&) { return Op::linear; }, op);
}

void raise_unsupported(const char* op, const Place& place, Type type, bool derivative) {
  throw nb::type_error((std::string(place.caller) + ": " + place.argument + " has dtype " + name_of(type) + "; " +
                        (derivative ? std::string("derivatives are") : std::string(op) + " is") +
                        " defined for float64, float32, float16 and bfloat16")
                           .c_str());
}

nb::object indices_array(const Geometry& g, const Winners& winners, std::string_view caller, nb::handle out) {
  const Array array = result_array(out, g.out(), Type::i64, caller);
  spec::detail::check_shape(caller, "out", array.dims, g.out());
  if (array.strides != row_major(array.dims)) throw nb::value_error("indices are written to contiguous arrays only");
  {
    const Unlocked unlocked(g);
    flat_indices(g, winners, elements<std::int64_t>(array));
  }
  return array.owner;
}

Execution at_most(int threads) {
  if (threads <= 0) return {};
  return {.threads = std::min(threads, num_threads()), .executor = team()};
}

Array given_or_made(nb::handle object, const Dims& dims, const Place& place) {
  const nb::handle make = marked(object);
  const bool makes = make.is_valid() && PyCallable_Check(make.ptr()) != 0;
  const nb::object owner = makes ? made(make, dims) : nb::borrow(object);
  Array array = makes ? exchange_array(owner, place) : write_array(object, place);
  if (makes) prefer_large_pages(array.data, bytes_of(array));
  array.owner = owner;
  return array;
}

Array result_array(const Target& target, const Dims& dims, Type type, std::string_view caller) {
  if (target.like != nullptr) return new_tensor(*target.like, dims, target.format, {caller, "out"});
  if (target.out.is_none()) return new_array(dims, type, caller);
  Array array = given_or_made(target.out, dims, {caller, "out"});
  Array like;
  like.type = type;
  check_same_type(like, array, {caller, "out"}, "x");
  return array;
}

nb::object forward_array(const Array& x, nb::handle op, nb::handle windows, const Target& to_array, const char* caller,
                         int threads) {
  const AnyOperator any = to_operator({op, "op", caller});
  return forward_array(x, any, to_geometry({windows, "geometry", caller}, x.dims), to_array, caller, threads);
}

nb::object forward_array(const Array& x, const AnyOperator& op, const Geometry& g, const Target& to_array,
                         const char* caller, int threads) {
  const Array y = result_array(to_array, g.out(), x.type, caller);
  with_result_names(caller, [&] {
    dispatch<false>(op, x.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
      const View<const T> from = x.read<T>();
      const View<T> to = y.write<T>();
      const Unlocked unlocked(g);
      forward<T>(each, g, from, to, at_most(threads), caller);
    });
  });
  return y.owner;
}

nb::object vjp_array(nb::handle op, nb::handle windows, nb::handle x_object, const Array& gy, const Target& to_array,
                     const char* caller, int threads) {
  const AnyOperator any = to_operator({op, "op", caller});
  const Point point = read_point(x_object, any, gy, {caller, "gy"});
  const Geometry g = to_geometry({windows, "geometry", caller}, point.x.dims);
  if (is_linear(any)) return transpose_array(any, g, gy, to_array, caller, threads);
  const Array gx = result_array(to_array, g.in(), gy.type, caller);
  with_result_names(caller, [&] {
    dispatch<true>(any, gy.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
      const View<const T> at = point.x.read<T>(), gradient = gy.read<T>();
      const View<T> to = gx.write<T>();
      const Unlocked unlocked(g);
      vjp<T>(each, g, at, gradient, to, at_most(threads), caller);
    });
  });
  return gx.owner;
}

nb::object transpose_array(const AnyOperator& op, const Geometry& g, const Array& gy, const Target& to_array,
                           const char* caller, int threads) {
  const Array gx = result_array(to_array, g.in(), gy.type, caller);
  with_result_names(caller, [&] {
    dispatch<true>(op, gy.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
      if constexpr (Op::linear) {
        const View<const T> gradient = gy.read<T>();
        const View<T> to = gx.write<T>();
        const Unlocked unlocked(g);
        vjp<T>(each, g, gradient, to, at_most(threads), caller);
      }
    });
  });
  return gx.owner;
}

nb::object indexed_array(const Array& x, nb::handle op, nb::handle windows, const Target& to, nb::handle indices_out,
                         const char* caller, int threads) {
  const AnyOperator any = to_operator({op, "op", caller});
  const Geometry g = to_geometry({windows, "geometry", caller}, x.dims);
  const Array y = result_array(to, g.out(), x.type, caller);
  const Array indices = result_array(indices_out, g.out(), Type::i64, caller);
  with_result_names(caller, [&] {
    dispatch<false>(any, x.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
      if constexpr (Selecting<Op>) {
        const std::span<std::int64_t> numbers = elements<std::int64_t>(indices);
        const auto bytes = static_cast<std::size_t>(Winners::bytes_for(g));
        auto* const end = reinterpret_cast<std::uint8_t*>(numbers.data() + numbers.size());
        const Unlocked unlocked(g);
        Winners winners(g, {end - bytes, bytes});  // which the indices then replace
        forward_with_winners<T>(each, g, x.read<T>(), y.write<T>(), winners, at_most(threads), caller);
        flat_indices(g, winners, numbers);
      } else {
        raise_kind({op, "op", caller}, "Max or Min where indices are asked for");
      }
    });
  });
  return nb::make_tuple(y.owner, indices.owner);
}

Dual dual_array(const Array& x, const Array& dx, nb::handle op, nb::handle windows, const Target& to,
                const char* caller, int threads) {
  const AnyOperator any = to_operator({op, "op", caller});
  check_same_type(x, dx, {caller, "dx"}, "x");
  const Geometry g = to_geometry({windows, "geometry", caller}, x.dims);
  const Array y = result_array(to, g.out(), x.type, caller);
  const Array dy = result_array(to, g.out(), x.type, caller);
  dispatch<true>(any, x.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
    const Unlocked unlocked(g);
    forward_and_jvp<T>(each, g, x.read<T>(), dx.read<T>(), y.write<T>(), dy.write<T>(), at_most(threads), caller);
  });
  return {y.owner, dy.owner};
}

void bind_verbs(nb::module_& m) {
  m.def("forward", &forward_verb, "op"_a.none(), "geometry"_a.none(), "x"_a.none(), "out"_a = nb::none(),
        "caller"_a = "forward", "threads"_a = 0,
        nb::sig("def forward(op: object, geometry: object, x: object, out: object = None, caller: str = 'forward', "
                "threads: int = 0) "
                "-> numpy.typing.NDArray[typing.Any]"));
  m.def("forward_and_indices", &forward_and_indices_verb, "op"_a.none(), "geometry"_a.none(), "x"_a.none(),
        "out"_a = nb::none(), "caller"_a = "forward_and_indices",
        nb::sig("def forward_and_indices(op: object, geometry: object, x: object, out: object = None, "
                "caller: str = 'forward_and_indices') "
                "-> tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[numpy.int64]]"));
  m.def("jvp", &jvp_verb, "op"_a.none(), "geometry"_a.none(), "x"_a.none(), "dx"_a.none(), "out"_a = nb::none(),
        "caller"_a = "jvp", "threads"_a = 0,
        nb::sig("def jvp(op: object, geometry: object, x: object, dx: object, out: object = None, caller: str = 'jvp', "
                "threads: int = 0) "
                "-> numpy.typing.NDArray[typing.Any]"));
  m.def("forward_and_jvp", &forward_and_jvp_verb, "op"_a.none(), "geometry"_a.none(), "x"_a.none(), "dx"_a.none(),
        "out"_a, "caller"_a = "forward_and_jvp", "threads"_a = 0,
        nb::sig("def forward_and_jvp(op: object, geometry: object, x: object, dx: object, out: object, "
                "caller: str = 'forward_and_jvp', threads: int = 0) -> tuple[typing.Any, typing.Any]"),
        "Value and tangent; `out` is called for each.");
  m.def("vjp", &vjp_verb, "op"_a.none(), "geometry"_a.none(), "x"_a.none(), "gy"_a.none(), "out"_a = nb::none(),
        "caller"_a = "vjp", "threads"_a = 0,
        nb::sig("def vjp(op: object, geometry: object, x: object, gy: object, out: object = None, caller: str = 'vjp', "
                "threads: int = 0) "
                "-> numpy.typing.NDArray[typing.Any]"));
  m.def(
      "type_numbers",
      [] {
        nb::dict numbers;
        for (int i = 0; i < types; ++i) numbers[name_of(static_cast<Type>(i))] = first_type_number + i;
        return numbers;
      },
      nb::sig("def type_numbers() -> dict[str, int]"), "How (address, shape, strides, type) tuples name their types.");
}

}  // namespace cenote::python
