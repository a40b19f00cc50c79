// Threads and instruction sets.
#include "cenote/execution.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>

#include "arguments.hpp"
#include "bind.hpp"

namespace cenote::python {

using namespace nb::literals;

void bind_execution(nb::module_& m) {
  m.def(
      "set_num_threads",
      [](nb::handle threads) {
        const Argument argument{threads, "threads", "set_num_threads"};
        const Index number = to_index(argument);
        if (number > std::numeric_limits<int>::max()) raise_value(argument, "a number of threads");
        set_num_threads(static_cast<int>(std::max<Index>(number, std::numeric_limits<int>::min())));
      },
      "threads"_a.none(), nb::sig("def set_num_threads(threads: int) -> None"),
      "How many threads a call may use; 0 returns to the initial number. No result depends on it.");
  m.def("get_num_threads", &num_threads, "How many threads a call may use.");
  m.def("target", &target, "The instruction set in use.");
  m.def("targets", &targets, "The instruction sets that this machine has, best first.");
  m.def(
      "limit_target",
      [](nb::handle name) {
        if (!nb::isinstance<nb::str>(name)) raise_kind({name, "name", "limit_target"}, "a name of targets(), or empty");
        limit_target(nb::str(name).c_str());
      },
      "name"_a.none(), nb::sig("def limit_target(name: str) -> None"),
      "Lets kernels use this instruction set at most; an empty name lifts the limit.");
}

}  // namespace cenote::python
