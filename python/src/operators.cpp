// Max, Min, Average, Sum, SmoothMax and Lp as Python objects: immutable, comparable, picklable.
#include "arguments.hpp"
#include "bind.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

template <class Op>
struct Bound : Operator {
  const Op& get() const { return std::get<Op>(value); }
};

const char* name_of(Ties ties) { return ties == Ties::first ? "first" : (ties == Ties::all ? "all" : "split"); }
const char* name_of(Padding padding) { return padding == Padding::zeros ? "zeros" : "ignore"; }

nb::object divisor_override(const Average& op) {
  return op.divisor.kind == Divisor::Kind::fixed ? nb::cast(op.divisor.number) : nb::none();
}

// The keyword arguments that make the operator again.
nb::dict parameters(const AnyOperator& any) {
  nb::dict out;
  std::visit(
      [&]<class Op>(const Op& op) {
        if constexpr (std::is_same_v<Op, Max> || std::is_same_v<Op, Min>) {
          out["ties"] = name_of(op.ties);
        } else if constexpr (std::is_same_v<Op, Average>) {
          out["count_include_pad"] = op.divisor.kind != Divisor::Kind::real;
          out["divisor_override"] = divisor_override(op);
        } else if constexpr (std::is_same_v<Op, SmoothMax>) {
          out["beta"] = op.beta;
          out["padding_mode"] = name_of(op.padding);
        } else if constexpr (std::is_same_v<Op, Lp>) {
          out["p"] = op.p;
        }
      },
      any);
  return out;
}

nb::str printed(nb::handle self) {
  std::string out = std::string(nb::str(self.type().attr("__name__")).c_str()) + "(";
  bool first = true;
  for (const auto& [key, value] : parameters(nb::cast<const Operator&>(self).value)) {
    out += (first ? "" : ", ") + std::string(nb::str(key).c_str()) + "=" + nb::repr(value).c_str();
    first = false;
  }
  return nb::str((out + ")").c_str());
}

nb::object identity(nb::handle self) {
  const nb::object items = parameters(nb::cast<const Operator&>(self).value).attr("items")();
  return nb::make_tuple(self.type(), nb::tuple(items));
}

}  // namespace

nb::object to_object(const AnyOperator& any) {
  return std::visit([]<class Op>(const Op& op) { return nb::cast(Bound<Op>{{op}}); }, any);
}

void bind_operators(nb::module_& m) {
  nb::class_<Operator>(m, "Operator", "How a window becomes a number: Max, Min, Average, Sum, SmoothMax or Lp.")
      .def("__repr__", &printed)
      .def(
          "__eq__",
          [](nb::handle self, nb::handle other) {
            return nb::isinstance<Operator>(other) && identity(self).equal(identity(other));
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](nb::handle self) { return nb::hash(identity(self)); })
      .def(
          "__reduce__",
          [](nb::handle self) {
            nb::list positional;  // in the order of the classes' signatures
            for (const auto& [key, value] : parameters(nb::cast<const Operator&>(self).value)) positional.append(value);
            return nb::make_tuple(self.type(), nb::tuple(positional));
          },
          nb::sig("def __reduce__(self) -> tuple[object, ...]"));

  nb::class_<Bound<Max>, Operator>(m, "Max", "The largest real tap. `ties` is 'first', 'all' or 'split'.")
      .def(
          "__init__", [](Bound<Max>* self, nb::handle ties) { new (self) Bound<Max>{{make_max(ties, "Max")}}; },
          "ties"_a = "first", nb::sig("def __init__(self, ties: str = 'first') -> None"))
      .def_prop_ro("ties", [](const Bound<Max>& self) { return name_of(self.get().ties); });
  nb::class_<Bound<Min>, Operator>(m, "Min", "The smallest real tap. `ties` is 'first', 'all' or 'split'.")
      .def(
          "__init__", [](Bound<Min>* self, nb::handle ties) { new (self) Bound<Min>{{make_min(ties, "Min")}}; },
          "ties"_a = "first", nb::sig("def __init__(self, ties: str = 'first') -> None"))
      .def_prop_ro("ties", [](const Bound<Min>& self) { return name_of(self.get().ties); });
  nb::class_<Bound<Average>, Operator>(
      m, "Average",
      "The sum of the real taps over the taps in the padded input, over the real taps, "
      "or over `divisor_override`.")
      .def(
          "__init__",
          [](Bound<Average>* self, nb::handle include, nb::handle divisor) {
            new (self) Bound<Average>{{make_average(include, divisor, "Average")}};
          },
          "count_include_pad"_a = true, "divisor_override"_a = nb::none(),
          nb::sig("def __init__(self, count_include_pad: bool = True, divisor_override: int | None = None) -> None"))
      .def_prop_ro("count_include_pad",
                   [](const Bound<Average>& self) { return self.get().divisor.kind != Divisor::Kind::real; })
      .def_prop_ro(
          "divisor_override", [](const Bound<Average>& self) { return divisor_override(self.get()); },
          nb::for_getter(nb::sig("def divisor_override(self, /) -> int | None")));
  nb::class_<Bound<Sum>, Operator>(m, "Sum", "The sum of the real taps.").def("__init__", [](Bound<Sum>* self) {
    new (self) Bound<Sum>{{Sum{}}};
  });
  nb::class_<Bound<SmoothMax>, Operator>(m, "SmoothMax",
                                         "log(sum(exp(beta * taps))) / beta. `padding_mode` is 'zeros' or 'ignore'.")
      .def(
          "__init__",
          [](Bound<SmoothMax>* self, nb::handle beta, nb::handle padding_mode) {
            new (self) Bound<SmoothMax>{{make_smooth_max(beta, padding_mode, "SmoothMax")}};
          },
          "beta"_a.none(), "padding_mode"_a = "zeros",
          nb::sig("def __init__(self, beta: float, padding_mode: str = 'zeros') -> None"))
      .def_prop_ro("beta", [](const Bound<SmoothMax>& self) { return self.get().beta; })
      .def_prop_ro("padding_mode", [](const Bound<SmoothMax>& self) { return name_of(self.get().padding); });
  nb::class_<Bound<Lp>, Operator>(m, "Lp", "The p-norm of the real taps, p at least 1.")
      .def(
          "__init__", [](Bound<Lp>* self, nb::handle p) { new (self) Bound<Lp>{{make_lp(p, "Lp")}}; }, "p"_a.none(),
          nb::sig("def __init__(self, p: float) -> None"))
      .def_prop_ro("p", [](const Bound<Lp>& self) { return self.get().p; });
}

}  // namespace cenote::python
