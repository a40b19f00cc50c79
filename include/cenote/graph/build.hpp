// Building: a graph of nodes. It checks handles and shapes as nodes are added and evaluates nothing; program.hpp does.
#pragma once

#include <atomic>
#include <optional>

#include "cenote/graph/node.hpp"
#include "cenote/spec.hpp"

namespace cenote {

namespace detail {

enum class NodeKind : std::uint8_t { input, constant, detach, operation };

// A node as a graph stores it. Programs share the records, so a graph may grow or go away while they run.
template <class T>
struct NodeRecord {
  NodeKind kind = NodeKind::operation;
  Node<T> node{};
  std::vector<int> inputs{};   // numbers of nodes that stand before it
  std::vector<Dims> shapes{};  // of the inputs
  Tensor<T> constant{};
};

struct NamedOutput {
  std::string name;
  int node;
};

inline std::uint64_t next_graph() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Opens messages about a node: "node 3 (max_pool: 1x4x4 -> 1x2x2)".
template <class T>
[[gnu::cold]] std::string node_in_words(const NodeRecord<T>& record, int index) {
  std::string out = "node " + std::to_string(index) + " (" + record.node.name;
  if (!record.shapes.empty()) out += ": " + shapes_in_words(record.shapes) + " ->";
  return out + " " + to_string(record.node.shape) + ")";
}

}  // namespace detail

// Nodes in the order they were added. An operation that fails leaves the graph as it was. Handles stay valid when the
// graph is moved; a copy would be another graph, so there is none.
template <class T>
class Graph {
  static_assert(Field<T>, "a graph differentiates: its scalar needs a division (f32, f64, Dual, Interval, Rational)");

 public:
  using value_type = T;

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph(Graph&& other) noexcept { *this = std::move(other); }
  Graph& operator=(Graph&& other) noexcept {
    id_ = std::exchange(other.id_, detail::next_graph());  // what is left behind is a new, empty graph
    records_ = std::exchange(other.records_, {});
    inputs_ = std::exchange(other.inputs_, {});
    outputs_ = std::exchange(other.outputs_, {});
    return *this;
  }
  ~Graph() = default;

  // An array that every run is given, in the order of these calls.
  Handle input(const std::string& name, const Dims& dims) {
    for (const int i : inputs_)
      if (record(i).node.name == name) raise({.rule = Rule::name_unique, .argument = "name", .text = name}, "input");
    check_sizes(dims, "input");
    inputs_.reserve(inputs_.size() + 1);
    const Handle out = append({.kind = detail::NodeKind::input, .node = leaf(name, dims)});
    inputs_.push_back(out.index());
    return out;
  }
  template <StaticShape S>
  Var<S> input(const std::string& name) {
    return Var<S>(input(name, S::dims));
  }

  // An array that is part of the graph. Nothing is differentiated by it.
  Handle constant(Tensor<T> value, const std::string& name = "constant") {
    Node<T> node = leaf(name, value.dims());
    return append({.kind = detail::NodeKind::constant, .node = std::move(node), .constant = std::move(value)});
  }
  template <StaticShape S>
  Var<S> constant(const Tensor<T, S>& value, const std::string& name = "constant") {
    const auto data = value.data();
    return Var<S>(constant(Tensor<T>(S::dims, std::vector<T>(data.begin(), data.end())), name));
  }

  // The same values, through which no derivative passes.
  template <AnyHandle H>
  H detach(const H& x) {
    Node<T> node = leaf("detach", dims(x, "detach", "x"));
    node.inputs = {x};
    node.alias = true;
    return H(append({.kind = detail::NodeKind::detach, .node = std::move(node)}));
  }

  // Any node: what every builder ends in.
  Handle add(Node<T> node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      (void)dims(node.inputs[i], node.name, "input " + std::to_string(i));
    const auto given = [&](bool there, const char* field) {
      if (!there) raise({Rule::node_incomplete, field}, node.name.empty() ? "add" : node.name);
    };
    given(!node.name.empty(), "name");
    given(node.forward != nullptr, "forward");
    given(node.jvp != nullptr, "jvp");
    given(node.vjp != nullptr, "vjp");
    if (node.alias && (node.inputs.size() != 1 || volume(dims(node.inputs[0])) != volume(node.shape)))
      raise({Rule::element_count, "shape", -1, volume(node.shape),
             node.inputs.empty() ? 0 : volume(dims(node.inputs[0]))},
            node.name);
    check_sizes(node.shape, node.name);
    return append({.node = std::move(node)});
  }
  // ... whose shape is known to the compiler.
  template <StaticShape S>
  Var<S> add(Node<T> node) {
    node.shape = S::dims;
    return Var<S>(add(std::move(node)));
  }

  // What a program returns, in the order of these calls.
  void output(const std::string& name, const Handle& of) {
    (void)dims(of, "output", "`" + name + "`");
    for (const auto& taken : outputs_)
      if (taken.name == name) raise({.rule = Rule::name_unique, .argument = "name", .text = name}, "output");
    outputs_.push_back({name, of.index()});
  }

  // The shape of a node. `caller` and `argument` open the message if the handle is not one of this graph's.
  [[nodiscard]] const Dims& dims(const Handle& x, std::string_view caller = "dims",
                                 std::string_view argument = "handle") const {
    if (x.index() < 0 || (x.graph() == id_ && x.index() >= size())) raise({Rule::handle_unknown, argument}, caller);
    if (x.graph() != id_) raise({Rule::handle_foreign, argument}, caller);
    return record(x.index()).node.shape;
  }
  // The same node with its shape in the type, which is checked here.
  template <StaticShape S>
  [[nodiscard]] Var<S> as(const Handle& x) const {
    spec::detail::check_shape("as", "x", dims(x, "as", "x"), S::dims);
    return Var<S>(x);
  }

  [[nodiscard]] int size() const { return static_cast<int>(records_.size()); }
  [[nodiscard]] const std::vector<int>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<detail::NamedOutput>& outputs() const { return outputs_; }
  [[nodiscard]] const detail::NodeRecord<T>& record(int i) const { return *records_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] std::shared_ptr<const detail::NodeRecord<T>> shared(int i) const {
    return records_[static_cast<std::size_t>(i)];
  }

 private:
  using Record = detail::NodeRecord<T>;

  static Node<T> leaf(const std::string& name, const Dims& dims) {
    Node<T> node;
    node.name = name;
    node.shape = dims;
    node.reads = Reads::nothing;
    return node;
  }
  static void check_sizes(const Dims& dims, std::string_view caller) {
    if (const auto problem = size_problem(dims, "shape")) raise(*problem, caller);
  }
  Handle append(Record record) {
    for (const Handle& x : record.node.inputs) {
      record.inputs.push_back(x.index());
      record.shapes.push_back(dims(x));
    }
    records_.push_back(std::make_shared<const Record>(std::move(record)));
    return Handle(id_, size() - 1);
  }

  std::uint64_t id_ = detail::next_graph();
  std::vector<std::shared_ptr<const Record>> records_;
  std::vector<int> inputs_;
  std::vector<detail::NamedOutput> outputs_;
};

}  // namespace cenote
