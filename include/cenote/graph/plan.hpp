// Planning: from a graph to everything about a program that does not change from run to run.
#pragma once

#include <array>

#include "cenote/graph/layout.hpp"

namespace cenote {

struct ProgramOptions {
  std::vector<Handle> by{};  // the inputs by which derivatives are taken; none named: all
  Execution exec{};
};

namespace detail {

inline constexpr std::size_t cache_line = 64;

// Arrays that begin at multiples of this many elements begin at a cache line, where elements divide one.
template <class T>
inline constexpr Index arena_unit = cache_line % sizeof(T) == 0 ? static_cast<Index>(cache_line / sizeof(T)) : 1;

// Everything about a program that does not change from run to run.
template <class T>
struct ProgramCore {
  struct Input {
    std::string name;
    Dims dims;
    int node = 0;   // in the graph
    int step = -1;  // -1: no output needs it
    bool wanted = false;
  };
  struct Output {
    std::string name;
    Dims dims;
    int step = 0;
  };
  std::vector<std::shared_ptr<const NodeRecord<T>>> records;  // one per step
  std::vector<int> nodes;                                     // their numbers in the graph
  std::vector<Step> steps;
  std::vector<int> computing;  // the steps that do something, in order
  std::vector<int> pulling;    // those that gradients pass through or end in, in order
  std::vector<Input> inputs;
  std::vector<int> wanted;  // places in `inputs` by which derivatives are taken
  std::vector<Output> outputs;
  std::array<Layout, modes> layouts;
  std::size_t most_inputs = 0;  // of a node
  std::size_t scratch = 0;      // elements
  std::size_t zeros = 0;        // elements of the largest array that is 0 because no derivative passes
  std::size_t ignored = 0;      // elements of the gradients that a node writes and nobody asked for
  std::size_t state_bytes = 0;
  Execution exec;

  [[nodiscard]] const Layout& layout(Mode mode) const { return layouts[static_cast<std::size_t>(mode)]; }
  [[nodiscard]] const Node<T>& node(int step) const { return records[static_cast<std::size_t>(step)]->node; }
  [[nodiscard]] std::string words(int step) const {
    return node_in_words(*records[static_cast<std::size_t>(step)], nodes[static_cast<std::size_t>(step)]);
  }
};

// The steps that the outputs need, with where their arrays lie in each mode.
template <class T>
std::shared_ptr<const ProgramCore<T>> compile(const Graph<T>& graph, const ProgramOptions& options) {
  constexpr std::string_view caller = "Program";
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  if (graph.outputs().empty()) raise({Rule::outputs_missing, "outputs"}, caller);
  auto core = std::make_shared<ProgramCore<T>>();
  core->exec = options.exec;

  std::vector<bool> wanted(static_cast<std::size_t>(graph.size()), options.by.empty());
  for (const Handle& by : options.by) {
    (void)graph.dims(by, caller, "by");
    const auto& record = graph.record(by.index());
    if (record.kind != NodeKind::input)
      raise({.rule = Rule::input_expected, .argument = "by", .text = node_in_words(record, by.index())}, caller);
    if (wanted[index(by.index())])
      raise({.rule = Rule::input_expected, .argument = "by", .text = "`" + record.node.name + "` twice"}, caller);
    wanted[index(by.index())] = true;
  }

  std::vector<bool> needed(static_cast<std::size_t>(graph.size()));
  for (const auto& output : graph.outputs()) needed[index(output.node)] = true;
  for (int i = graph.size() - 1; i >= 0; --i)
    if (needed[index(i)])
      for (const int from : graph.record(i).inputs) needed[index(from)] = true;

  std::vector<int> step_of(static_cast<std::size_t>(graph.size()), -1);
  for (int i = 0; i < graph.size(); ++i) {
    if (!needed[index(i)]) continue;
    const auto& record = graph.record(i);
    step_of[index(i)] = static_cast<int>(core->steps.size());
    Step step;
    step.kind = record.kind;
    step.size = volume(record.node.shape);
    step.reads = record.node.reads;
    step.alias = record.node.alias;
    step.separable = record.node.selective && record.node.reads == Reads::nothing && !record.node.state;
    step.wanted = record.kind == NodeKind::input && wanted[index(i)];
    for (const int from : record.inputs) step.inputs.push_back(step_of[index(from)]);
    if (step.computes()) core->computing.push_back(step_of[index(i)]);
    core->most_inputs = std::max(core->most_inputs, step.inputs.size());
    core->scratch = std::max(core->scratch, record.node.scratch);
    core->steps.push_back(std::move(step));
    core->records.push_back(graph.shared(i));
    core->nodes.push_back(i);
  }
  for (const auto& output : graph.outputs()) {
    const int step = step_of[index(output.node)];
    ++core->steps[index(step)].outputs;
    core->outputs.push_back({output.name, graph.record(output.node).node.shape, step});
  }
  for (const int i : graph.inputs()) {
    const Node<T>& node = graph.record(i).node;
    core->inputs.push_back({node.name, node.shape, i, step_of[index(i)], wanted[index(i)]});
  }
  const auto place_of = [&](int node) {
    return static_cast<int>(std::find(graph.inputs().begin(), graph.inputs().end(), node) - graph.inputs().begin());
  };
  for (const Handle& by : options.by) core->wanted.push_back(place_of(by.index()));
  if (options.by.empty())
    for (const int i : graph.inputs()) core->wanted.push_back(place_of(i));

  analyse(core->steps);
  for (std::size_t i = 0; i < core->steps.size(); ++i)
    if (core->steps[i].live) core->pulling.push_back(static_cast<int>(i));
  for (int mode = 0; mode < modes; ++mode)
    core->layouts[index(mode)] = LayoutBuilder(core->steps, static_cast<Mode>(mode), arena_unit<T>).build();

  // Zeros stand for tangents and gradients that no derivative reaches; what nobody asked for is written somewhere.
  const auto need_zeros = [&](const Dims& dims) { core->zeros = std::max(core->zeros, cells(dims)); };
  for (const auto& output : core->outputs)
    if (!core->steps[index(output.step)].live) need_zeros(output.dims);
  for (const int i : core->wanted)
    if (const auto& input = core->inputs[index(i)]; input.step < 0 || !core->steps[index(input.step)].live)
      need_zeros(input.dims);
  for (const int i : core->computing) {
    const Step& step = core->steps[index(i)];
    if (!step.live) continue;
    core->state_bytes += core->node(i).state_bytes;
    if (core->node(i).selective) continue;
    std::size_t ignored = 0;
    for (const int from : step.inputs)
      if (!core->steps[index(from)].live) {
        need_zeros(core->node(from).shape);
        ignored += cells(core->node(from).shape);
      }
    core->ignored = std::max(core->ignored, ignored);
  }
  return core;
}

}  // namespace detail
}  // namespace cenote
