// A graph as text, one line a node, and as a picture (SVG). Reads programs and graphs, and computes nothing.
#pragma once

#include <array>

#include "cenote/graph/picture.hpp"
#include "cenote/graph/program.hpp"

namespace cenote {

namespace detail {

template <class T>
DrawnNode drawn(const NodeRecord<T>& record, int number) {
  constexpr std::array kinds{DrawnNode::Kind::input, DrawnNode::Kind::constant, DrawnNode::Kind::operation,
                             DrawnNode::Kind::operation};
  DrawnNode out{.number = number, .name = record.node.name, .shape = record.node.shape, .inputs = record.inputs};
  out.kind = kinds[static_cast<std::size_t>(record.kind)];
  out.parameters = record.node.parameters;
  if (out.kind == DrawnNode::Kind::operation && out.name.find("pool") != std::string::npos)
    out.kind = DrawnNode::Kind::pooling;
  return out;
}

// The nodes of a program; what they keep is kept for a VJP.
template <class T>
std::vector<DrawnNode> drawn(const Program<T>& program) {
  const ProgramCore<T>& core = program.core();
  const Layout& layout = core.layout(Mode::vjp);
  std::vector<DrawnNode> out;
  for (std::size_t i = 0; i < core.steps.size(); ++i) {
    DrawnNode& node = out.emplace_back(drawn(*core.records[i], core.nodes[i]));
    if (core.steps[i].live) node.kept = core.records[i]->node.state_bytes;
    if (layout.retained[i]) node.kept += static_cast<std::size_t>(core.steps[i].size) * sizeof(T);
  }
  for (const auto& output : core.outputs) out[static_cast<std::size_t>(output.step)].outputs.push_back(output.name);
  return out;
}

// The nodes of a graph; those that no output needs keep nothing.
template <class T>
std::vector<DrawnNode> drawn(const Graph<T>& graph) {
  std::vector<DrawnNode> out;
  out.reserve(static_cast<std::size_t>(graph.size()));
  for (int i = 0; i < graph.size(); ++i) out.push_back(drawn(graph.record(i), i));
  if (graph.outputs().empty()) return out;
  for (DrawnNode& node : out) node.used = false;
  for (DrawnNode& node : drawn(Program<T>(graph))) out[static_cast<std::size_t>(node.number)] = std::move(node);
  return out;
}

inline std::string memory_in_words(const PeakMemory& peak) {
  return "memory: evaluate " + bytes_in_words(peak.evaluate) + ", jvp " + bytes_in_words(peak.jvp) + ", vjp " +
         bytes_in_words(peak.vjp) + ", linearize " + bytes_in_words(peak.linearize);
}

}  // namespace detail

// One line a node: number, name, shape, inputs, parameters, and the bytes that it keeps for a VJP.
template <class T>
std::string describe(const Graph<T>& graph) {
  return detail::table_of(detail::drawn(graph));
}
// The same for what is left of the graph in a program, and the memory that its runs take.
template <class T>
std::string describe(const Program<T>& program) {
  return detail::table_of(detail::drawn(program)) + detail::memory_in_words(program.peak_memory()) + "\n";
}

// A picture: data flows from top to bottom.
template <class T>
std::string svg(const Graph<T>& graph) {
  return detail::picture_of(detail::drawn(graph), "");
}
template <class T>
std::string svg(const Program<T>& program) {
  return detail::picture_of(detail::drawn(program), detail::memory_in_words(program.peak_memory()));
}

}  // namespace cenote
