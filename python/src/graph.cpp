// Building graphs: a graph of f32 or f64, and handles to its nodes.
#include "cenote/graph.hpp"

#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "bind.hpp"
#include "program.hpp"

namespace cenote::python {
namespace {

using namespace nb::literals;

// A graph, and the same nodes on dual numbers for second derivatives.
template <class T>
struct GraphOf {
  Graph<T> graph;
  Graph<Dual<T>> dual;
};
struct PythonGraph {
  std::variant<GraphOf<float>, GraphOf<double>> any;
};

// A node in both.
struct Twin {
  Handle plain, dual;
  template <class T>
  [[nodiscard]] const Handle& in(const Graph<T>&) const {
    if constexpr (std::is_floating_point_v<T>)
      return plain;
    else
      return dual;
  }
};

// A node, and the graph object that it keeps alive.
struct PythonNode {
  nb::object graph;
  Twin handle;
};

PythonGraph& graph_of(nb::handle self) { return nb::cast<PythonGraph&>(self); }

Twin handle_of(const Argument& argument) {
  const PythonNode* node = nullptr;
  if (!nb::try_cast<const PythonNode*>(argument.value, node, false) || node == nullptr)
    raise_kind(argument, "a node of this graph");
  return node->handle;
}

// Adds what build(graph) adds. What is wrong with it is found before anything is added.
template <class F>
PythonNode add_node(nb::handle self, F&& build) {
  return {nb::borrow(self), std::visit(
                                [&](auto& of) {
                                  const Handle plain = build(of.graph);
                                  return Twin{plain, build(of.dual)};
                                },
                                graph_of(self).any)};
}

Dims shape_of(const PythonNode& node) {
  return std::visit([&](const auto& of) { return of.graph.dims(node.handle.plain, "shape", "node"); },
                    graph_of(node.graph).any);
}

PythonGraph make_graph(nb::handle dtype) {
  const Argument argument{dtype, "dtype", "Graph"};
  const std::string name = nb::str(nb::module_::import_("numpy").attr("dtype")(dtype).attr("name")).c_str();
  PythonGraph out;
  if (name == "float64")
    out.any.emplace<GraphOf<double>>();
  else if (name != "float32")
    raise_kind(argument, "float32 or float64");
  return out;
}

PythonNode constant(nb::handle self, nb::handle value, const std::string& name) {
  const Array array = read_array(value, {"constant", "value"});
  return std::visit(
      [&]<class T>(GraphOf<T>& of) -> PythonNode {
        Array expected;
        expected.type = type_of<T>;
        check_same_type(expected, array, {"constant", "value"}, "the graph");
        Tensor<T> copy(array.dims);
        copy_elements(array.read<T>(), copy.view());
        Tensor<Dual<T>> dual(array.dims, std::vector<Dual<T>>(copy.data().begin(), copy.data().end()));
        const Handle plain = of.graph.constant(std::move(copy), name);
        return {nb::borrow(self), {plain, of.dual.constant(std::move(dual), name)}};
      },
      graph_of(self).any);
}

PythonNode pool(nb::handle self, nb::handle x, nb::handle op, nb::handle windows, const char* caller) {
  const Twin from = handle_of({x, "x", caller});
  const AnyOperator any = to_operator({op, "op", caller});
  return add_node(self, [&](auto& g) {
    const Geometry geometry = to_geometry({windows, "geometry", caller}, g.dims(from.in(g), caller, "x"));
    return std::visit([&](const auto& each) { return detail::add_pooling(g, caller, from.in(g), each, geometry); },
                      any);
  });
}

// sum and mean; by default over all axes.
template <class Op>
PythonNode reduce(nb::handle self, nb::handle x, nb::handle axes, nb::handle keepdims, const char* caller) {
  const Twin from = handle_of({x, "x", caller});
  const bool keep = to_bool({keepdims, "keepdims", caller});
  return add_node(self, [&](auto& g) {
    const Dims in = g.dims(from.in(g), caller, "x");
    Dims named = axes.is_none() ? Dims{} : to_dims({axes, "axes", caller});
    if (axes.is_none())
      for (int a = 0; a < in.rank; ++a) named.push_back(a);
    return detail::add_pooling(g, caller, from.in(g), Op{}, resolve(in, Global{.axes = named, .keep = keep}, caller));
  });
}

PythonNode conv(nb::handle self, nb::handle x, nb::handle weights, nb::handle bias, nb::handle stride,
                nb::handle padding, nb::handle dilation) {
  const Twin from = handle_of({x, "x", "conv"});
  const Twin by = handle_of({weights, "weights", "conv"});
  const Convolution options = make_convolution(stride, padding, dilation, "conv");
  return add_node(self, [&](auto& g) {
    if (bias.is_none()) return cenote::conv(g, from.in(g), by.in(g), options);
    return cenote::conv(g, from.in(g), by.in(g), handle_of({bias, "bias", "conv"}).in(g), options);
  });
}

PythonNode linear(nb::handle self, nb::handle x, nb::handle weights, nb::handle bias) {
  const Twin from = handle_of({x, "x", "linear"});
  const Twin by = handle_of({weights, "weights", "linear"});
  return add_node(self, [&](auto& g) {
    if (bias.is_none()) return cenote::linear(g, from.in(g), by.in(g));
    return cenote::linear(g, from.in(g), by.in(g), handle_of({bias, "bias", "linear"}).in(g));
  });
}

PythonNode concatenate(nb::handle self, nb::handle nodes, nb::handle axis) {
  const Argument argument{nodes, "xs", "concatenate"};
  if (!nb::isinstance<nb::list>(nodes) && !nb::isinstance<nb::tuple>(nodes))
    raise_kind(argument, "a sequence of nodes");
  std::vector<Twin> all;
  for (nb::handle node : nodes) all.push_back(handle_of({node, "xs", "concatenate"}));
  const auto along = static_cast<int>(to_index({axis, "axis", "concatenate"}));
  return add_node(self, [&](auto& g) {
    std::vector<Handle> here;
    here.reserve(all.size());
    for (const Twin& each : all) here.push_back(each.in(g));
    return cenote::concatenate(g, here, along);
  });
}

nb::object program(nb::handle self, nb::handle by) {
  ProgramOptions options, dual;
  if (!by.is_none()) {
    const Argument argument{by, "by", "program"};
    if (!nb::isinstance<nb::list>(by) && !nb::isinstance<nb::tuple>(by)) raise_kind(argument, "a sequence of inputs");
    for (nb::handle node : by) {
      const Twin each = handle_of({node, "by", "program"});
      options.by.push_back(each.plain);
      dual.by.push_back(each.dual);
    }
  }
  return std::visit(
      [&]<class T>(const GraphOf<T>& of) {
        return nb::cast(PythonProgram(Program<T>(of.graph, options), Program<Dual<T>>(of.dual, dual)));
      },
      graph_of(self).any);
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<PythonNode> node(m, "Node", "A node of a graph.");
  node.def_prop_ro(
          "shape", [](const PythonNode& self) { return to_tuple(shape_of(self)); },
          nb::for_getter(nb::sig("def shape(self, /) -> tuple[int, ...]")))
      .def_prop_ro("number", [](const PythonNode& self) { return self.handle.plain.index(); })
      .def("__repr__", [](const PythonNode& self) {
        return "node " + std::to_string(self.handle.plain.index()) + " (" + to_string(shape_of(self)) + ")";
      });
  const auto binary = [&](const char* name, auto build) {
    node.def(
        name,
        [build](const PythonNode& a, const PythonNode& b) {
          return add_node(a.graph, [&](auto& g) { return build(g, a.handle.in(g), b.handle.in(g)); });
        },
        nb::is_operator());
  };
  binary("__add__", [](auto& g, const Handle& a, const Handle& b) { return add(g, a, b); });
  binary("__sub__", [](auto& g, const Handle& a, const Handle& b) { return sub(g, a, b); });
  binary("__mul__", [](auto& g, const Handle& a, const Handle& b) { return mul(g, a, b); });
  binary("__matmul__", [](auto& g, const Handle& a, const Handle& b) { return matmul(g, a, b); });
  const auto scaled = [](const PythonNode& a, double by) {
    return add_node(a.graph, [&]<class T>(Graph<T>& g) { return scale(g, a.handle.in(g), static_cast<T>(by)); });
  };
  node.def("__mul__", scaled, nb::is_operator()).def("__rmul__", scaled, nb::is_operator());
  node.def("__neg__",
           [](const PythonNode& a) { return add_node(a.graph, [&](auto& g) { return neg(g, a.handle.in(g)); }); });

  nb::class_<PythonGraph> graph(m, "GraphBase", "What cenote.Graph is made of.");
  graph
      .def(
          "__init__", [](PythonGraph* self, nb::handle dtype) { new (self) PythonGraph(make_graph(dtype)); },
          "dtype"_a.none(), nb::sig("def __init__(self, dtype: object) -> None"))
      .def(
          "input",
          [](nb::handle self, const std::string& name, nb::handle shape) {
            return add_node(self, [&](auto& g) { return g.input(name, to_dims({shape, "shape", "input"})); });
          },
          "name"_a, "shape"_a.none(), "An array that every run is given.",
          nb::sig("def input(self, name: str, shape: collections.abc.Sequence[int]) -> Node"))
      .def("constant", &constant, "value"_a.none(), "name"_a = "constant", "An array that is part of the graph.",
           nb::sig("def constant(self, value: object, name: str = 'constant') -> Node"))
      .def(
          "detach",
          [](nb::handle self, nb::handle x) {
            const Twin from = handle_of({x, "x", "detach"});
            return add_node(self, [&](auto& g) { return g.detach(from.in(g)); });
          },
          "x"_a.none(), "The same values, through which no derivative passes.",
          nb::sig("def detach(self, x: Node) -> Node"))
      .def(
          "output",
          [](nb::handle self, const std::string& name, nb::handle of) {
            const Twin node_of = handle_of({of, "of", "output"});
            std::visit(
                [&](auto& graphs) {
                  graphs.graph.output(name, node_of.plain);
                  graphs.dual.output(name, node_of.dual);
                },
                graph_of(self).any);
          },
          "name"_a, "of"_a.none(), "Names what a program returns.",
          nb::sig("def output(self, name: str, of: Node) -> None"))
      .def("pool", &pool, "x"_a.none(), "op"_a.none(), "geometry"_a.none(), "caller"_a = "pool",
           "Any operator on any windows.",
           nb::sig("def pool(self, x: Node, op: object, geometry: object, caller: str = 'pool') -> Node"))
      .def("conv", &conv, "x"_a.none(), "weights"_a.none(), "bias"_a = nb::none(), nb::kw_only(), "stride"_a = 1,
           "padding"_a = 0, "dilation"_a = 1,
           "A convolution in any number of dimensions: x is (batch,) channels, space; weights are outputs, channels, "
           "window.",
           nb::sig("def conv(self, x: Node, weights: Node, bias: Node | None = None, *, stride: object = 1, "
                   "padding: object = 0, dilation: object = 1) -> Node"))
      .def("linear", &linear, "x"_a.none(), "weights"_a.none(), "bias"_a = nb::none(),
           "x weights^T + bias over the last axis of x; weights are outputs, inputs.",
           nb::sig("def linear(self, x: Node, weights: Node, bias: Node | None = None) -> Node"))
      .def("concatenate", &concatenate, "xs"_a.none(), "axis"_a.none(), "Arrays one after the other along an axis.",
           nb::sig("def concatenate(self, xs: collections.abc.Sequence[Node], axis: int) -> Node"))
      .def(
          "reshape",
          [](nb::handle self, nb::handle x, nb::handle shape) {
            const Twin from = handle_of({x, "x", "reshape"});
            return add_node(self, [&](auto& g) {
              return reshape(g, from.in(g), to_dims({shape, "shape", "reshape"}));
            });
          },
          "x"_a.none(), "shape"_a.none(), "The same elements as another shape; nothing is copied.",
          nb::sig("def reshape(self, x: Node, shape: collections.abc.Sequence[int]) -> Node"))
      .def(
          "flatten",
          [](nb::handle self, nb::handle x, nb::handle first) {
            const Twin from = handle_of({x, "x", "flatten"});
            const auto axis = static_cast<int>(to_index({first, "start_axis", "flatten"}));
            return add_node(self, [&](auto& g) {
              return with_names("flatten", {{"from", "start_axis"}}, [&] { return flatten(g, from.in(g), axis); });
            });
          },
          "x"_a.none(), "start_axis"_a = 1, "The axes from `start_axis` on as one; nothing is copied.",
          nb::sig("def flatten(self, x: Node, start_axis: int = 1) -> Node"))
      .def(
          "sum",
          [](nb::handle self, nb::handle x, nb::handle axes, nb::handle keepdims) {
            return reduce<Sum>(self, x, axes, keepdims, "sum");
          },
          "x"_a.none(), "axes"_a = nb::none(), "keepdims"_a = false, "The sum over axes, by default over all of them.",
          nb::sig("def sum(self, x: Node, axes: int | collections.abc.Sequence[int] | None = None, "
                  "keepdims: bool = False) -> Node"))
      .def(
          "mean",
          [](nb::handle self, nb::handle x, nb::handle axes, nb::handle keepdims) {
            return reduce<Average>(self, x, axes, keepdims, "mean");
          },
          "x"_a.none(), "axes"_a = nb::none(), "keepdims"_a = false, "The mean over axes, by default over all of them.",
          nb::sig("def mean(self, x: Node, axes: int | collections.abc.Sequence[int] | None = None, "
                  "keepdims: bool = False) -> Node"))
      .def("program", &program, "by"_a = nb::none(),
           "What is left of the graph once everything that no output needs is gone, with its memory planned. `by` "
           "names the\n"
           "inputs that derivatives are taken by; by default all.",
           nb::sig("def program(self, by: collections.abc.Sequence[Node] | None = None) -> Program"))
      .def("__len__",
           [](const PythonGraph& self) { return std::visit([](const auto& of) { return of.graph.size(); }, self.any); })
      .def("__repr__",
           [](const PythonGraph& self) {
             return std::visit([](const auto& of) { return shown(describe(of.graph)); }, self.any);
           })
      .def(
          "_repr_svg_",
          [](const PythonGraph& self) { return std::visit([](const auto& of) { return svg(of.graph); }, self.any); },
          "A picture, which notebooks show.");

  // Nodes of one input, and of two.
  const auto one = [&](const char* name, const char* signature, const char* doc, auto build) {
    graph.def(
        name,
        [name, build](nb::handle self, nb::handle x) {
          const Twin from = handle_of({x, "x", name});
          return add_node(self, [&](auto& g) { return build(g, from.in(g)); });
        },
        "x"_a.none(), doc, nb::sig(signature));
  };
  one("relu", "def relu(self, x: Node) -> Node", "The larger of x and 0.",
      [](auto& g, Handle x) { return relu(g, x); });
  one("tanh", "def tanh(self, x: Node) -> Node", "The hyperbolic tangent.",
      [](auto& g, Handle x) { return tanh(g, x); });
  one("exp", "def exp(self, x: Node) -> Node", "The exponential.", [](auto& g, Handle x) { return exp(g, x); });
  one("log", "def log(self, x: Node) -> Node", "The natural logarithm.", [](auto& g, Handle x) { return log(g, x); });
  const auto two = [&](const char* name, const char* first, const char* second, const char* signature, const char* doc,
                       auto build) {
    graph.def(
        name,
        [=](nb::handle self, nb::handle a, nb::handle b) {
          const Twin left = handle_of({a, first, name});
          const Twin right = handle_of({b, second, name});
          return add_node(self, [&](auto& g) { return build(g, left.in(g), right.in(g)); });
        },
        nb::arg(first).none(), nb::arg(second).none(), doc, nb::sig(signature));
  };
  two("matmul", "a", "b", "def matmul(self, a: Node, b: Node) -> Node", "The product of two matrices; also a @ b.",
      [](auto& g, Handle a, Handle b) { return matmul(g, a, b); });
  two("softmax_cross_entropy", "logits", "targets",
      "def softmax_cross_entropy(self, logits: Node, targets: Node) -> Node",
      "The mean over rows of -sum(targets * log(softmax(logits))).",
      [](auto& g, Handle a, Handle b) { return softmax_cross_entropy(g, a, b); });
  two("mean_squared_error", "a", "b", "def mean_squared_error(self, a: Node, b: Node) -> Node",
      "The mean of (a - b)**2.", [](auto& g, Handle a, Handle b) { return mean_squared_error(g, a, b); });

  bind_program(m);
}

}  // namespace cenote::python
