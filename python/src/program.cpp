// Running graphs: arrays by name in, arrays by name out.
#include "program.hpp"

#include <nanobind/stl/string.h>

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
    const Argument argument{output_gradients, "output_gradients", caller};
    const Given<T> x = collect<T>({inputs, "inputs", caller}, slots(core.inputs), false);
    Given<T> gy;
    if (!output_gradients.is_none()) {
      gy = collect<T>(argument, slots(core.outputs), true);
    } else {
      if (core.outputs.size() != 1 || volume(core.outputs[0].dims) != 1)
        raise_kind(argument, "given, unless the only output is one number");
      gy.views.push_back(std::as_const(gy.zeros.emplace_back(core.outputs[0].dims, T{1})).view());
    }
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

}  // namespace

void bind_program(nb::module_& m) {
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
