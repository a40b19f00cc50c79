// cenote._core: the compiled part of the Python package. It is private; the package's own modules say what is public.
#include "arrays.hpp"
#include "bind.hpp"

NB_MODULE(_core, m) {
  using namespace cenote::python;
  start_numpy();
  m.doc() = "The compiled part of cenote.";
  m.def("version", [] { return CENOTE_VERSION; });
  bind_operators(m);
  bind_windows(m);
  bind_verbs(m);
  bind_linear_map(m);
  bind_winners(m);
  bind_graph(m);
  bind_execution(m);
  bind_xla(m);
  bind_torch(m);
}
