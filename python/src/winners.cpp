// Winners in arrays of the caller's, for frameworks that keep them between forward and backward themselves.
#include <utility>

#include "bind.hpp"
#include "verbs.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

// Winners travel as bytes, bytes_each * outputs of them, and are read and written where they lie.
Winners winners_on(const Array& array, const Geometry& g, const Place& place) {
  const Index expected = Winners::bytes_for(g);
  if (array.type != Type::u8 || array.strides != row_major(array.dims))
    throw nb::type_error((std::string(place.caller) + ": " + place.argument + " must be contiguous bytes").c_str());
  if (volume(array.dims) != expected)
    raise({Rule::element_count, place.argument, -1, volume(array.dims), expected}, place.caller);
  return {g, {static_cast<std::uint8_t*>(array.data), static_cast<std::size_t>(expected)}};
}

// Where winners go: bytes of the caller's, or what a marked function makes of a shape, which has an axis more where a
// winner takes several bytes.
Array bytes_array(nb::handle object, const Geometry& g, const Place& place) {
  Dims shape = g.out();
  if (const int each = Winners::bytes_each(g); each > 1) shape.push_back(each);
  return given_or_made(object, shape, place);
}

nb::object forward_with_winners_into(nb::handle op, nb::handle windows, nb::handle x, nb::handle out,
                                     nb::handle winners, const char* caller, int threads) {
  const Array from = read_array(x, {caller, "x"});
  const AnyOperator any = to_operator({op, "op", caller});
  const Geometry g = to_geometry({windows, "geometry", caller}, from.dims);
  const auto made = select_array(from, any, g, out, winners, caller, threads);
  return nb::make_tuple(made.y, made.winners);
}

Geometry geometry_of(nb::handle windows, nb::handle shape, const char* caller) {
  return to_geometry({windows, "geometry", caller}, to_dims({shape, "shape", caller}));
}

template <bool pull>
nb::object apply_array(const Geometry& g, const Array& bytes, const Array& from, const Target& target,
                       const char* caller, int threads) {
  const char* name = pull ? "gy" : "dx";
  const Winners winners = winners_on(bytes, g, {caller, "winners"});
  const Array to = result_array(target, pull ? g.in() : g.out(), from.type, caller);
  spec::detail::check_shape(caller, name, from.dims, pull ? g.out() : g.in());
  spec::detail::check_shape(caller, "out", to.dims, pull ? g.in() : g.out());
  with_scalar(from.type, [&]<class T>(std::type_identity<T>) {
    if constexpr (Field<T>) {
      spec::detail::check_output(caller, "out", to.write<T>(), from.read<T>());
      const Unlocked unlocked(g);
      if constexpr (pull)
        compiled::pull<T>(g, winners, from.read<T>(), to.write<T>(), at_most(threads));
      else
        compiled::push<T>(g, winners, from.read<T>(), to.write<T>(), at_most(threads));
    } else {
      raise_unsupported("max", {caller, name}, from.type, true);
    }
  });
  return to.owner;
}

template <bool pull>
nb::object apply(nb::handle windows, nb::handle shape, nb::handle winners, nb::handle from, nb::handle out,
                 const char* caller, int threads) {
  const Array bytes = read_array(winners, {caller, "winners"});
  const Array given = read_array(from, {caller, pull ? "gy" : "dx"});
  return apply_array<pull>(geometry_of(windows, shape, caller), bytes, given, out, caller, threads);
}

}  // namespace

Selected select_array(const Array& x, const AnyOperator& op, const Geometry& g, const Target& to,
                      nb::handle winners_object, const char* caller, int threads) {
  const Array y = result_array(to, g.out(), x.type, caller);
  const Place place{caller, "winners"};
  const Array bytes = bytes_array(winners_object, g, place);
  Winners winners = winners_on(bytes, g, place);
  dispatch<false>(op, x.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
    if constexpr (Selecting<Op>) {
      const Unlocked unlocked(g);
      forward_with_winners<T>(each, g, x.read<T>(), y.write<T>(), winners, at_most(threads), caller);
    } else {
      throw nb::type_error("only Max and Min have winners");
    }
  });
  return {y.owner, bytes.owner};
}

nb::object pull_array(const Geometry& g, const Array& winners, const Array& gy, const Target& to, const char* caller,
                      int threads) {
  return apply_array<true>(g, winners, gy, to, caller, threads);
}

void bind_winners(nb::module_& m) {
  m.def(
      "winner_bytes",
      [](nb::handle windows, nb::handle shape) {
        return Winners::bytes_each(geometry_of(windows, shape, "winner_bytes"));
      },
      "geometry"_a.none(), "shape"_a.none(), nb::sig("def winner_bytes(geometry: object, shape: object) -> int"),
      "How many bytes the winner of one output takes.");
  m.def("forward_with_winners", &forward_with_winners_into, "op"_a.none(), "geometry"_a.none(), "x"_a.none(),
        "out"_a.none(), "winners"_a.none(), "caller"_a = "forward_with_winners", "threads"_a = 0,
        nb::sig("def forward_with_winners(op: object, geometry: object, x: object, out: object, winners: object, "
                "caller: str = 'forward_with_winners', threads: int = 0) -> tuple[typing.Any, typing.Any]"));
  m.def("push_winners", &apply<false>, "geometry"_a.none(), "shape"_a.none(), "winners"_a.none(), "dx"_a.none(),
        "out"_a = nb::none(), "caller"_a = "push_winners", "threads"_a = 0,
        nb::sig("def push_winners(geometry: object, shape: object, winners: object, dx: object, out: object = None, "
                "caller: str = 'push_winners', threads: int = 0) -> numpy.typing.NDArray[typing.Any]"));
  m.def("pull_winners", &apply<true>, "geometry"_a.none(), "shape"_a.none(), "winners"_a.none(), "gy"_a.none(),
        "out"_a = nb::none(), "caller"_a = "pull_winners", "threads"_a = 0,
        nb::sig("def pull_winners(geometry: object, shape: object, winners: object, gy: object, out: object = None, "
                "caller: str = 'pull_winners', threads: int = 0) -> numpy.typing.NDArray[typing.Any]"));
  m.def(
      "flat_indices",
      [](nb::handle windows, nb::handle shape, nb::handle winners, nb::handle out) {
        const Array bytes = read_array(winners, {"flat_indices", "winners"});
        const Geometry g = geometry_of(windows, shape, "flat_indices");
        return indices_array(g, winners_on(bytes, g, {"flat_indices", "winners"}), "flat_indices", out);
      },
      "geometry"_a.none(), "shape"_a.none(), "winners"_a.none(), "out"_a = nb::none(),
      nb::sig("def flat_indices(geometry: object, shape: object, winners: object, out: object = None) "
              "-> numpy.typing.NDArray[numpy.int64]"));
}

}  // namespace cenote::python
