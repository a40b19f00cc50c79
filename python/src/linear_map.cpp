// linearize: an operator's derivative at a point, kept to be applied many times.
#include <memory>

#include "bind.hpp"
#include "verbs.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

// The library's Linearization of some operator and some scalar.
class Derivative {
 public:
  Derivative() = default;
  Derivative(const Derivative&) = delete;
  Derivative& operator=(const Derivative&) = delete;
  virtual ~Derivative() = default;
  virtual void push(const Array& dx, const Array& dy) const = 0;
  virtual void pull(const Array& gy, const Array& gx) const = 0;
  [[nodiscard]] virtual std::optional<Winners> winners() const = 0;
  [[nodiscard]] virtual std::size_t bytes_kept() const = 0;
};

template <class Linearization, class T>
class DerivativeOf : public Derivative {
 public:
  explicit DerivativeOf(Linearization map) : map_(std::move(map)) {}
  void push(const Array& dx, const Array& dy) const override { map_.push(dx.read<T>(), dy.write<T>()); }
  void pull(const Array& gy, const Array& gx) const override { map_.pull(gy.read<T>(), gx.write<T>()); }
  [[nodiscard]] std::optional<Winners> winners() const override {
    if constexpr (requires { map_.winners(); }) return map_.winners();
    return {};
  }
  [[nodiscard]] std::size_t bytes_kept() const override { return map_.bytes_kept(); }

 private:
  Linearization map_;
};

struct LinearMap {
  Geometry geometry;
  Type type{};
  nb::object value;
  std::unique_ptr<const Derivative> derivative;
};

LinearMap linearize_verb(nb::handle op, nb::handle windows, nb::handle x_object) {
  static constexpr const char* caller = "linearize";
  const Array x = read_array(x_object, {caller, "x"});
  const AnyOperator any = to_operator({op, "op", caller});
  LinearMap out{to_geometry({windows, "geometry", caller}, x.dims), x.type, {}, {}};
  const Array y = new_array(out.geometry.out(), x.type, caller);
  dispatch<true>(any, x.type, {caller, "x"}, [&]<class Op, class T>(const Op& each, std::type_identity<T>) {
    const View<const T> from = x.read<T>();
    const View<T> to = y.write<T>();
    const Unlocked unlocked(out.geometry);
    auto map = linearize<T>(each, out.geometry, from, to, {}, caller);
    out.derivative = std::make_unique<DerivativeOf<decltype(map), T>>(std::move(map));
  });
  out.value = y.owner;
  return out;
}

// TypeError unless the array has the type of the point.
void check_type(const LinearMap& map, const Array& array, const Place& place) {
  Array point;
  point.type = map.type;
  check_same_type(point, array, place, "the point of linearization");
}

nb::object push(const LinearMap& map, nb::handle dx_object, nb::handle out) {
  const Array dx = read_array(dx_object, {"push", "dx"});
  check_type(map, dx, {"push", "dx"});
  const Array dy = result_array(out, map.geometry.out(), map.type, "push");
  with_names("push", {{"dy", "out"}, {"x", "dx"}}, [&] {
    spec::detail::check_shape("push", "dx", dx.dims, map.geometry.in());
    const Unlocked unlocked(map.geometry);
    map.derivative->push(dx, dy);
  });
  return dy.owner;
}

nb::object pull(const LinearMap& map, nb::handle gy_object, nb::handle out) {
  const Array gy = read_array(gy_object, {"pull", "gy"});
  check_type(map, gy, {"pull", "gy"});
  const Array gx = result_array(out, map.geometry.in(), map.type, "pull");
  with_names("pull", {{"gx", "out"}}, [&] {
    const Unlocked unlocked(map.geometry);
    map.derivative->pull(gy, gx);
  });
  return gx.owner;
}

Winners winners_of(const LinearMap& map, const char* caller) {
  std::optional<Winners> winners = map.derivative->winners();
  if (!winners) throw nb::type_error((std::string(caller) + ": only Max and Min have winners").c_str());
  return std::move(*winners);
}

Type unsigned_type(int bytes) {
  switch (bytes) {
    case 1: return Type::u8;
    case 2: return Type::u16;
    case 4: return Type::u32;
    default: return Type::u64;
  }
}

}  // namespace

void bind_linear_map(nb::module_& m) {
  nb::class_<LinearMap>(
      m, "LinearMap",
      "A derivative at a point. It keeps what it needs: one byte an output for a maximum, nothing for an\n"
      "average, the input for everything else.")
      .def_prop_ro(
          "value", [](const LinearMap& self) { return self.value; },
          nb::for_getter(nb::sig("def value(self, /) -> numpy.typing.NDArray[typing.Any]")))
      .def("push", &push, "dx"_a.none(), "out"_a = nb::none(), "J dx, of the output's shape.",
           nb::sig("def push(self, dx: object, out: object = None) -> numpy.typing.NDArray[typing.Any]"))
      .def("pull", &pull, "gy"_a.none(), "out"_a = nb::none(), "J^T gy, of the input's shape.",
           nb::sig("def pull(self, gy: object, out: object = None) -> numpy.typing.NDArray[typing.Any]"))
      .def(
          "winners",
          [](const LinearMap& self) {
            auto* kept = new Winners(winners_of(self, "winners"));
            const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Winners*>(p); });
            return borrowed(kept->bytes().data(), kept->dims(), unsigned_type(kept->bytes_each()), owner);
          },
          "The winning tap of each output as its offset inside the window, in the smallest unsigned type that holds "
          "it;\n"
          "the type's largest number where a window has no real tap.",
          nb::sig("def winners(self) -> numpy.typing.NDArray[typing.Any]"))
      .def(
          "indices",
          [](const LinearMap& self) { return indices_array(self.geometry, winners_of(self, "indices"), "indices"); },
          "The winning cell of each output as PyTorch numbers it: flat in the pooled axes, or -1.",
          nb::sig("def indices(self) -> numpy.typing.NDArray[numpy.int64]"))
      .def_prop_ro("bytes_kept", [](const LinearMap& self) { return self.derivative->bytes_kept(); })
      .def("__repr__",
           [](const LinearMap& self) { return nb::str(("LinearMap of " + describe(self.geometry)).c_str()); });
  m.def("linearize", &linearize_verb, "op"_a.none(), "geometry"_a.none(), "x"_a.none(),
        nb::sig("def linearize(op: object, geometry: object, x: object) -> LinearMap"));
}

}  // namespace cenote::python
