// Running graphs: arrays by name in, arrays by name out.
#include "program.hpp"

#include <nanobind/stl/string.h>

#include <mutex>
#include <optional>

#include "arrays.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

// What one array of a call is called, and its shape.
struct Slot {
  std::string name;
  Dims dims;
};
template <class Named>
std::vector<Slot> slots(const Named& all) {
  std::vector<Slot> out;
  out.reserve(all.size());
  for (const auto& each : all) out.push_back({each.name, each.dims});
  return out;
}
template <class T>
std::vector<Slot> wanted_slots(const Program<T>& program) {
  std::vector<Slot> out;
  for (const int i : program.core().wanted) {
    const auto& input = program.core().inputs[static_cast<std::size_t>(i)];
    out.push_back({input.name, input.dims});
  }
  return out;
}

std::string in_words(const Slot& slot) { return "`" + slot.name + "` (" + to_string(slot.dims) + ")"; }

// The arrays of a call in the library's order, and what keeps them alive.
template <class T>
struct Given {
  std::vector<Array> arrays;
  std::vector<Tensor<T>> zeros;
  std::vector<View<const T>> views;
};

template <class T>
void take(Given<T>& to, nb::handle object, const std::string& name, std::string_view caller) {
  const Array array = read_array(object, {caller, name.c_str()});
  Array expected;
  expected.type = type_of<T>;
  check_same_type(expected, array, {caller, name.c_str()}, "the graph");
  to.views.push_back(array.read<T>());
  to.arrays.push_back(array);
}

// From a dict by name, or from a sequence in order. What a dict does not name is 0 where `optional`, else an error.
template <class T>
Given<T> collect(const Argument& argument, const std::vector<Slot>& slots, bool optional) {
  Given<T> out;
  const std::string_view caller = argument.caller;
  if (nb::isinstance<nb::dict>(argument.value)) {
    const nb::dict dict = nb::borrow<nb::dict>(argument.value);
    for (const auto& [key, value] : dict) {
      const bool known = std::any_of(slots.begin(), slots.end(),
                                     [&, k = key](const Slot& s) { return nb::str(k).equal(nb::str(s.name.c_str())); });
      if (known) continue;
      std::string names;
      for (const Slot& slot : slots) names += (names.empty() ? "" : ", ") + in_words(slot);
      throw nb::value_error(
          (std::string(caller) + ": " + argument.name + " names " + nb::repr(key).c_str() + "; legal are " + names)
              .c_str());
    }
    out.zeros.reserve(slots.size());
    for (const Slot& slot : slots) {
      if (dict.contains(slot.name.c_str())) {
        take(out, dict[slot.name.c_str()], std::string(argument.name) + "['" + slot.name + "']", caller);
      } else if (optional) {
        out.views.push_back(std::as_const(out.zeros.emplace_back(slot.dims)).view());
      } else {
        raise({Rule::input_missing, "input " + in_words(slot), -1, static_cast<Index>(dict.size()),
               static_cast<Index>(slots.size())},
              caller);
      }
    }
    return out;
  }
  if (!nb::isinstance<nb::list>(argument.value) && !nb::isinstance<nb::tuple>(argument.value))
    raise_kind(argument, "a dict of arrays by name, or a sequence of arrays in order");
  int i = 0;
  for (nb::handle each : argument.value)
    take(out, each, std::string(argument.name) + "[" + std::to_string(i++) + "]", caller);
  return out;
}

// The gradients by outputs: given, or 1 where the only output is one number.
template <class T>
Given<T> collect_output_gradients(const Argument& argument, const std::vector<Slot>& outputs) {
  if (!argument.value.is_none()) return collect<T>(argument, outputs, true);
  if (outputs.size() != 1 || volume(outputs[0].dims) != 1)
    raise_kind(argument, "given, unless the only output is one number");
  Given<T> out;
  out.views.push_back(std::as_const(out.zeros.emplace_back(outputs[0].dims, T{1})).view());
  return out;
}

// Results are copied: the workspace is used again.
template <class T>
nb::dict by_name(const std::vector<Slot>& slots, Arrays<T> arrays, std::string_view caller) {
  nb::dict out;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Array array = new_array(arrays[i].dims(), type_of<T>, caller);
    std::copy_n(arrays[i].data(), arrays[i].size(), static_cast<T*>(array.data));
    out[slots[i].name.c_str()] = array.owner;
  }
  return out;
}

// Runs run(workspace) without Python's lock and give(what it returned) with it.
template <class T, class Run, class Give>
nb::object with_workspace(ProgramOf<T>& of, Run&& run, Give&& give) {
  std::unique_ptr<Workspace<T>> workspace;
  if (of.idle.empty()) {
    workspace = std::make_unique<Workspace<T>>(of.program);
  } else {
    workspace = std::move(of.idle.back());
    of.idle.pop_back();
  }
  const auto result = [&] {
    const nb::gil_scoped_release unlocked;
    return run(*workspace);
  }();
  nb::object out = give(result);
  of.idle.push_back(std::move(workspace));
  return out;
}

template <class F>
nb::object visit(PythonProgram& self, F&& use) {
  return std::visit([&]<class T>(ProgramOf<T>& of) -> nb::object { return use(of, std::type_identity<T>{}); },
                    self.any);
}

nb::object evaluate(PythonProgram& self, nb::handle inputs) {
  return visit(self, [&]<class T>(ProgramOf<T>& of, std::type_identity<T>) {
    const auto& core = of.program.core();
    const Given<T> x = collect<T>({inputs, "inputs", "evaluate"}, slots(core.inputs), false);
    return with_workspace(
        of, [&](Workspace<T>& w) { return of.program.evaluate(w, Arrays<T>(x.views)); },
        [&](const auto& values) { return by_name<T>(slots(core.outputs), values, "evaluate"); });
  });
}

nb::object jvp(PythonProgram& self, nb::handle inputs, nb::handle tangents) {
  return visit(self, [&]<class T>(ProgramOf<T>& of, std::type_identity<T>) {
    const auto& core = of.program.core();
    const Given<T> x = collect<T>({inputs, "inputs", "jvp"}, slots(core.inputs), false);
    const Given<T> dx = collect<T>({tangents, "tangents", "jvp"}, wanted_slots(of.program), true);
    return with_workspace(
        of, [&](Workspace<T>& w) { return of.program.jvp(w, Arrays<T>(x.views), Arrays<T>(dx.views)); },
        [&](const auto& both) {
          return nb::make_tuple(by_name<T>(slots(core.outputs), both.values, "jvp"),
                                by_name<T>(slots(core.outputs), both.tangents, "jvp"));
        });
  });
}

nb::object value_and_vjp(PythonProgram& self, nb::handle inputs, nb::handle output_gradients, const char* caller) {
  return visit(self, [&]<class T>(ProgramOf<T>& of, std::type_identity<T>) {
    const auto& core = of.program.core();
    const Given<T> x = collect<T>({inputs, "inputs", caller}, slots(core.inputs), false);
    const Given<T> gy =
        collect_output_gradients<T>({output_gradients, "output_gradients", caller}, slots(core.outputs));
    return with_workspace(
        of, [&](Workspace<T>& w) { return of.program.value_and_vjp(w, Arrays<T>(x.views), Arrays<T>(gy.views)); },
        [&](const auto& both) {
          return nb::make_tuple(by_name<T>(slots(core.outputs), both.values, caller),
                                by_name<T>(wanted_slots(of.program), both.gradients, caller));
        });
  });
}

nb::object vjp(PythonProgram& self, nb::handle inputs, nb::handle output_gradients) {
  return value_and_vjp(self, inputs, output_gradients, "vjp")[1];
}

// ---- one point, many derivatives ----------------------------------------------------------------------------------

// The derivative of a program at a point. Runs on several threads wait for each other: they share the workspace.
template <class T>
struct MapOf {
  Program<T> program;
  Tensors<T> inputs;  // copies, which nobody changes meanwhile
  Workspace<T> workspace;
  std::optional<cenote::LinearMap<T>> map;
  std::mutex running;
};
struct PythonMap {
  std::variant<std::unique_ptr<MapOf<float>>, std::unique_ptr<MapOf<double>>> any;
  nb::object value;
};

template <class T>
Tensors<T> copies(const Given<T>& given) {
  Tensors<T> out;
  for (const View<const T>& view : given.views) copy_elements(view, out.emplace_back(view.dims()).view());
  return out;
}

nb::object linearize(PythonProgram& self, nb::handle inputs) {
  return visit(self, [&]<class T>(ProgramOf<T>& of, std::type_identity<T>) {
    const auto& core = of.program.core();
    const Given<T> x = collect<T>({inputs, "inputs", "linearize"}, slots(core.inputs), false);
    auto out = std::unique_ptr<MapOf<T>>(new MapOf<T>{of.program, copies(x), Workspace<T>(of.program), {}, {}});
    {
      const nb::gil_scoped_release unlocked;
      out->map.emplace(out->program.linearize(out->workspace, detail::views(out->inputs)));
    }
    nb::object value = by_name<T>(slots(core.outputs), out->map->values(), "linearize");
    return nb::cast(PythonMap{std::move(out), std::move(value)});
  });
}

// Runs run(map) without Python's lock and give(what it returned) with it, while no other thread runs the map.
template <class T, class Run, class Give>
nb::object with_map(MapOf<T>& of, Run&& run, Give&& give) {
  std::unique_lock<std::mutex> alone(of.running, std::defer_lock);
  const auto result = [&] {
    const nb::gil_scoped_release unlocked;  // who waits for the map does not keep Python's lock from who has it
    alone.lock();
    return run(*of.map);
  }();
  return give(result);
}

nb::object push(PythonMap& self, nb::handle tangents) {
  return std::visit(
      [&]<class T>(std::unique_ptr<MapOf<T>>& of) {
        const Given<T> dx = collect<T>({tangents, "tangents", "push"}, wanted_slots(of->program), true);
        return with_map(
            *of, [&](const auto& map) { return map.push(Arrays<T>(dx.views)); },
            [&](const auto& dy) { return by_name<T>(slots(of->program.core().outputs), dy, "push"); });
      },
      self.any);
}

nb::object pull(PythonMap& self, nb::handle output_gradients) {
  return std::visit(
      [&]<class T>(std::unique_ptr<MapOf<T>>& of) {
        const Given<T> gy = collect_output_gradients<T>({output_gradients, "output_gradients", "pull"},
                                                        slots(of->program.core().outputs));
        return with_map(
            *of, [&](const auto& map) { return map.pull(Arrays<T>(gy.views)); },
            [&](const auto& gx) { return by_name<T>(wanted_slots(of->program), gx, "pull"); });
      },
      self.any);
}

// ---- second order -------------------------------------------------------------------------------------------------

// The gradient on dual numbers carries its own derivative in the direction.
nb::object hessian_vector_product(PythonProgram& self, nb::handle inputs, nb::handle direction,
                                  nb::handle output_gradients) {
  const char* const caller = "hessian_vector_product";
  return visit(self, [&]<class T>(ProgramOf<T>& of, std::type_identity<T>) {
    using D = Dual<T>;
    const auto& core = of.program.core();
    const Given<T> x = collect<T>({inputs, "inputs", caller}, slots(core.inputs), false);
    const Given<T> dx = collect<T>({direction, "direction", caller}, wanted_slots(of.program), true);
    const Given<T> gy =
        collect_output_gradients<T>({output_gradients, "output_gradients", caller}, slots(core.outputs));
    if (dx.views.size() != core.wanted.size())
      raise({.rule = Rule::array_count,
             .argument = "direction",
             .got = static_cast<Index>(dx.views.size()),
             .limit = static_cast<Index>(core.wanted.size()),
             .text = "one per input that derivatives are taken by"},
            caller);
    const auto dual = [](const Given<T>& values) {
      Tensors<D> out;
      for (const Tensor<T>& each : copies(values))
        out.emplace_back(each.dims(), std::vector<D>(each.data().begin(), each.data().end()));
      return out;
    };
    Tensors<D> points = dual(x);
    const Tensors<D> seeds = dual(gy);
    const Tensors<T> tangents = copies(dx);
    for (std::size_t k = 0; k < tangents.size(); ++k) {
      const auto input = static_cast<std::size_t>(core.wanted[k]);
      if (input >= points.size()) break;  // too few inputs, which the program complains of
      spec::detail::check_shape(caller, "direction", tangents[k].dims(), points[input].dims());
      for (std::size_t i = 0; i < tangents[k].data().size(); ++i)
        points[input].data()[i].tangent = tangents[k].data()[i];
    }
    Tensors<D> values, gradients;
    {
      const nb::gil_scoped_release unlocked;
      Workspace<D> workspace(of.dual);
      const auto both = of.dual.value_and_vjp(workspace, detail::views(points), detail::views(seeds));
      values = detail::owned<D>(both.values);
      gradients = detail::owned<D>(both.gradients);
    }
    const auto part = [&](const std::vector<Slot>& names, const Tensors<D>& from, T D::*which) {
      Tensors<T> out;
      for (const Tensor<D>& each : from) {
        Tensor<T>& to = out.emplace_back(each.dims());
        for (std::size_t i = 0; i < each.data().size(); ++i) to.data()[i] = each.data()[i].*which;
      }
      return by_name<T>(names, detail::views(out), caller);
    };
    return nb::object(nb::make_tuple(part(slots(core.outputs), values, &D::value),
                                     part(wanted_slots(of.program), gradients, &D::value),
                                     part(wanted_slots(of.program), gradients, &D::tangent)));
  });
}

}  // namespace

void bind_program(nb::module_& m) {
  nb::class_<PythonMap>(m, "ProgramMap",
                        "The derivative of a program at a point, to be applied as often as one likes: `value` has the\n"
                        "outputs, `push` and `pull` take and return what `jvp` and `vjp` of the program do.")
      .def_ro("value", &PythonMap::value,
              nb::for_getter(nb::sig("def value(self, /) -> "
                                     "dict[str, numpy.typing.NDArray[typing.Any]]")))
      .def("push", &push, "tangents"_a.none(), "The tangents of the outputs.",
           nb::sig("def push(self, tangents: object) -> dict[str, numpy.typing.NDArray[typing.Any]]"))
      .def("pull", &pull, "output_gradients"_a = nb::none(), "The gradients by the inputs.",
           nb::sig("def pull(self, output_gradients: object = None) "
                   "-> dict[str, numpy.typing.NDArray[typing.Any]]"));
  nb::class_<PythonProgram>(
      m, "Program",
      "A graph as it was when the program was made, planned once. Inputs, tangents and output\n"
      "gradients are dicts of arrays by name, or sequences in the order of the graph; results are\n"
      "dicts. Tangents and output gradients that a dict leaves out are 0.")
      .def("evaluate", &evaluate, "inputs"_a.none(), "The outputs.",
           nb::sig("def evaluate(self, inputs: object) -> dict[str, numpy.typing.NDArray[typing.Any]]"))
      .def("jvp", &jvp, "inputs"_a.none(), "tangents"_a.none(), "The outputs, and their tangents.",
           nb::sig(
               "def jvp(self, inputs: object, tangents: object) -> tuple[dict[str, numpy.typing.NDArray[typing.Any]], "
               "dict[str, numpy.typing.NDArray[typing.Any]]]"))
      .def("vjp", &vjp, "inputs"_a.none(), "output_gradients"_a = nb::none(),
           "The gradients by the inputs. Where the only output is one number, its gradient is by default 1.",
           nb::sig("def vjp(self, inputs: object, output_gradients: object = None) "
                   "-> dict[str, numpy.typing.NDArray[typing.Any]]"))
      .def(
          "value_and_vjp",
          [](PythonProgram& self, nb::handle inputs, nb::handle output_gradients) {
            return value_and_vjp(self, inputs, output_gradients, "value_and_vjp");
          },
          "inputs"_a.none(), "output_gradients"_a = nb::none(), "The outputs, and the gradients by the inputs.",
          nb::sig("def value_and_vjp(self, inputs: object, output_gradients: object = None) "
                  "-> tuple[dict[str, numpy.typing.NDArray[typing.Any]], "
                  "dict[str, numpy.typing.NDArray[typing.Any]]]"))
      .def("linearize", &linearize, "inputs"_a.none(),
           "The outputs, and the derivative at this point for many pushes and pulls.",
           nb::sig("def linearize(self, inputs: object) -> ProgramMap"))
      .def("hessian_vector_product", &hessian_vector_product, "inputs"_a.none(), "direction"_a.none(),
           "output_gradients"_a = nb::none(),
           "The outputs, the gradients, and the derivatives of the gradients in a direction.",
           nb::sig(
               "def hessian_vector_product(self, inputs: object, direction: object, output_gradients: object = None) "
               "-> tuple[dict[str, numpy.typing.NDArray[typing.Any]], "
               "dict[str, numpy.typing.NDArray[typing.Any]], dict[str, numpy.typing.NDArray[typing.Any]]]"))
      .def(
          "peak_memory",
          [](const PythonProgram& self) {
            const PeakMemory peak = std::visit([](const auto& of) { return of.program.peak_memory(); }, self.any);
            nb::dict out;
            out["evaluate"] = peak.evaluate;
            out["jvp"] = peak.jvp;
            out["vjp"] = peak.vjp;
            out["linearize"] = peak.linearize;
            return out;
          },
          "Bytes that a run of each kind takes.", nb::sig("def peak_memory(self) -> dict[str, int]"))
      .def("__repr__",
           [](const PythonProgram& self) {
             return std::visit([](const auto& of) { return shown(describe(of.program)); }, self.any);
           })
      .def(
          "_repr_svg_",
          [](const PythonProgram& self) {
            return std::visit([](const auto& of) { return svg(of.program); }, self.any);
          },
          "A picture, which notebooks show.");
}

}  // namespace cenote::python
