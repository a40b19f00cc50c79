// Sliding, Adaptive, Global, and Geometry (one of them with a shape) as Python objects, and what they say of a shape.
#include <nanobind/stl/string.h>

#include <array>
#include <span>
#include <utility>

#include "arguments.hpp"
#include "bind.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

// A class of Python keeps what its caller wrote, for repr and pickle, beside what the library made of it.
struct Described : Windows {
  std::span<const char* const> names;  // in the order of the signature
  nb::tuple arguments;
};
constexpr std::array sliding_names{"kernel", "stride", "padding", "dilation", "ceil_mode", "axes"};
constexpr std::array adaptive_names{"output_size", "axes"};
constexpr std::array global_names{"spatial_dims", "axes", "keepdims"};
struct BoundSliding : Described {};
struct BoundAdaptive : Described {};
struct BoundGlobal : Described {};
struct BoundGeometry : Windows {
  [[nodiscard]] const Geometry& get() const { return std::get<Geometry>(value); }
};

nb::object plain(nb::handle object) {  // lists are not hashable, and may change
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    nb::list out;
    for (nb::handle entry : object) out.append(plain(entry));
    return nb::tuple(out);
  }
  return nb::borrow(object);
}

template <class... H>
nb::tuple kept(const H&... arguments) {
  return nb::make_tuple(plain(arguments)...);
}

const nb::tuple& arguments_of(nb::handle self) { return nb::cast<const Described&>(self).arguments; }

// Each argument is a property.
template <class Class, std::size_t n, std::size_t... i>
void add_properties(Class& to, const std::array<const char*, n>& names, std::index_sequence<i...>) {
  (to.def_prop_ro(names[i], [](const Described& self) -> nb::object { return self.arguments[i]; }), ...);
}
template <class Class, std::size_t n>
void add_properties(Class&& to, const std::array<const char*, n>& names) {
  add_properties(to, names, std::make_index_sequence<n>{});
}

nb::object make_geometry(const Geometry& g) { return nb::cast(BoundGeometry{{g}}); }

// A shape may be left out where the geometry has one.
Geometry geometry_of(nb::handle geometry, nb::handle shape, std::string_view caller) {
  const Argument argument{geometry, "geometry", caller};
  const BoundGeometry* resolved = nullptr;
  if (shape.is_none() && nb::try_cast<const BoundGeometry*>(geometry, resolved, false) && resolved != nullptr)
    return resolved->get();
  const Argument sizes{shape, "shape", caller};
  if (shape.is_none()) raise_kind(sizes, "given: this geometry has none of its own");
  const Dims in = to_dims(sizes);
  // Where another function asks, the shape is that of its input.
  if (caller != "resolve" && caller != "output_shape" && caller != "windows") return to_geometry(argument, in);
  return with_names(caller, {{"x", "shape"}, {"input", "shape"}}, [&] { return to_geometry(argument, in); });
}

}  // namespace

void bind_windows(nb::module_& m) {
  const nb::class_<Windows> base(m, "Windows", "Which cells feed which output: Sliding, Adaptive, Global or Geometry.");

  nb::class_<Described, Windows>(m, "ShapelessWindows", "Sliding, Adaptive or Global.")
      .def("__repr__",
           [](nb::handle self) {
             const auto& windows = nb::cast<const Described&>(self);
             std::string out = std::string(nb::str(self.type().attr("__name__")).c_str()) + "(";
             for (std::size_t i = 0; i < windows.names.size(); ++i)
               out +=
                   (i == 0 ? "" : ", ") + std::string(windows.names[i]) + "=" + nb::repr(windows.arguments[i]).c_str();
             return out + ")";
           })
      .def(
          "__eq__",
          [](nb::handle self, nb::handle other) {
            return self.type().is(other.type()) && arguments_of(self).equal(arguments_of(other));
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](nb::handle self) { return nb::hash(nb::make_tuple(self.type(), arguments_of(self))); })
      .def(
          "__reduce__", [](nb::handle self) { return nb::make_tuple(self.type(), arguments_of(self)); },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"));

  add_properties(
      nb::class_<BoundSliding, Described>(m, "Sliding",
                                          "Windows that slide. The stride is by default the kernel; the pooled axes "
                                          "are by default the last ones, as many "
                                          "as\n"
                                          "the kernel has entries. `padding` is an int, one per axis, (low, high) "
                                          "pairs, 'same', 'same_lower' or 'valid'.")
          .def(
              "__init__",
              [](BoundSliding* self, nb::handle kernel, nb::handle stride, nb::handle padding, nb::handle dilation,
                 nb::handle ceil_mode, nb::handle axes) {
                new (self) BoundSliding{{{make_sliding(kernel, stride, padding, dilation, ceil_mode, axes, "Sliding")},
                                         sliding_names,
                                         kept(kernel, stride, padding, dilation, ceil_mode, axes)}};
              },
              "kernel"_a.none(), "stride"_a = nb::none(), "padding"_a = 0, "dilation"_a = 1, "ceil_mode"_a = false,
              "axes"_a = nb::none(),
              nb::sig("def __init__(self, kernel: int | collections.abc.Sequence[int], "
                      "stride: int | collections.abc.Sequence[int] | None = None, "
                      "padding: int | str | collections.abc.Sequence[int | tuple[int, int]] = 0, "
                      "dilation: int | collections.abc.Sequence[int] = 1, ceil_mode: bool = False, "
                      "axes: int | collections.abc.Sequence[int] | None = None) -> None")),
      sliding_names);
  add_properties(
      nb::class_<BoundAdaptive, Described>(
          m, "Adaptive", "Windows that divide each pooled axis into `output_size` nearly equal parts.")
          .def(
              "__init__",
              [](BoundAdaptive* self, nb::handle output_size, nb::handle axes) {
                new (self) BoundAdaptive{
                    {{make_adaptive(output_size, axes, "Adaptive")}, adaptive_names, kept(output_size, axes)}};
              },
              "output_size"_a.none(), "axes"_a = nb::none(),
              nb::sig("def __init__(self, output_size: int | collections.abc.Sequence[int], "
                      "axes: int | collections.abc.Sequence[int] | None = None) -> None")),
      adaptive_names);
  add_properties(
      nb::class_<BoundGlobal, Described>(
          m, "Global",
          "One window over the last `spatial_dims` axes, or over the ones named. They stay "
          "behind with size 1, or are dropped.")
          .def(
              "__init__",
              [](BoundGlobal* self, nb::handle spatial_dims, nb::handle axes, nb::handle keepdims) {
                new (self) BoundGlobal{{{make_global(spatial_dims, axes, keepdims, "Global")},
                                        global_names,
                                        kept(spatial_dims, axes, keepdims)}};
              },
              "spatial_dims"_a = nb::none(), "axes"_a = nb::none(), "keepdims"_a = true,
              nb::sig("def __init__(self, spatial_dims: int | None = None, "
                      "axes: int | collections.abc.Sequence[int] | None = None, keepdims: bool = True) -> None")),
      global_names);
  nb::class_<BoundGeometry, Windows>(m, "Geometry", "Windows on an input of one shape, checked. `resolve` makes them.")
      .def("__repr__", [](const BoundGeometry& self) { return describe(self.get()); })
      .def(
          "__eq__",
          [](const BoundGeometry& self, nb::handle other) {
            const BoundGeometry* that = nullptr;
            return nb::try_cast<const BoundGeometry*>(other, that, false) && that != nullptr &&
                   describe(self.get()) == describe(that->get());
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const BoundGeometry& self) { return std::hash<std::string>{}(describe(self.get())); })
      .def_prop_ro(
          "input_shape", [](const BoundGeometry& self) { return to_tuple(self.get().in()); },
          nb::for_getter(nb::sig("def input_shape(self, /) -> tuple[int, ...]")))
      .def_prop_ro(
          "output_shape", [](const BoundGeometry& self) { return to_tuple(self.get().out()); },
          nb::for_getter(nb::sig("def output_shape(self, /) -> tuple[int, ...]")));

  m.def(
      "resolve",
      [](nb::handle geometry, nb::handle shape, const char* caller) {
        return make_geometry(geometry_of(geometry, shape, caller));
      },
      "geometry"_a.none(), "shape"_a.none(), "caller"_a = "resolve",
      nb::sig("def resolve(geometry: object, shape: object, caller: str = 'resolve') -> Geometry"));
  m.def(
      "output_shape",
      [](nb::handle geometry, nb::handle shape, const char* caller) {
        return to_tuple(geometry_of(geometry, shape, caller).out());
      },
      "geometry"_a.none(), "shape"_a.none(), "caller"_a = "output_shape",
      nb::sig("def output_shape(geometry: object, shape: object, caller: str = 'output_shape') -> tuple[int, ...]"));
  m.def(
      "windows",
      [](nb::handle geometry, nb::handle shape, nb::handle index) {
        const Geometry g = geometry_of(geometry, shape, "windows");
        const Dims at = to_dims({index, "index", "windows"});
        nb::list out;
        try {
          for (const TapPlace& tap : taps(g, at)) out.append(nb::make_tuple(to_tuple(tap.position), tap.real));
        } catch (const Error& error) {  // the library's sentence opens with the name of its own function
          const std::string text = error.what();
          throw nb::value_error(("windows" + text.substr(text.find(':'))).c_str());
        }
        return out;
      },
      "geometry"_a.none(), "shape"_a.none(), "index"_a.none(),
      nb::sig("def windows(geometry: object, shape: object, index: object) -> list[tuple[tuple[int, ...], bool]]"));
}

}  // namespace cenote::python
