// What each file adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace cenote::python {

void bind_operators(nanobind::module_& m);
void bind_windows(nanobind::module_& m);
void bind_verbs(nanobind::module_& m);
void bind_linear_map(nanobind::module_& m);
void bind_winners(nanobind::module_& m);
void bind_graph(nanobind::module_& m);
void bind_execution(nanobind::module_& m);
void bind_xla(nanobind::module_& m);
void bind_torch(nanobind::module_& m);

}  // namespace cenote::python
