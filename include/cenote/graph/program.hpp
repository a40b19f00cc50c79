// Running: a graph compiled into a program, which is planned once and runs many times without an allocation.
#pragma once

#include <algorithm>
#include <exception>

#include "cenote/graph/workspace.hpp"

namespace cenote {

// Bytes of memory that runs of each kind take, besides the caller's arrays and the constants.
struct PeakMemory {
  std::size_t evaluate = 0, jvp = 0, vjp = 0, linearize = 0;
};

template <class T>
struct ValuesAndTangents {
  Arrays<T> values, tangents;
};
template <class T>
struct ValuesAndGradients {
  Arrays<T> values, gradients;
};

// A graph as it was when the program was made. Nodes that no output needs are not in it. Constant: one program may run
// on several threads at once, each with a workspace of its own. Copies are cheap and share everything.
//
// Arrays are given in the order of the graph's inputs; tangents and gradients in the order of ProgramOptions::by, or of
// the inputs where nothing is named; output gradients and results in the order of the outputs. Dense arrays are read
// where they are, others are copied first. A run that fails returns nothing, and the next one starts from nothing.
template <class T>
class Program {
 public:
  explicit Program(const Graph<T>& graph, const ProgramOptions& options = {})
      : core_(detail::compile(graph, options)) {}

  // y = f(x).
  Arrays<T> evaluate(Workspace<T>& workspace, Arrays<T> inputs) const {
    begin(workspace, Mode::evaluate, inputs, "evaluate");
    run_forward(workspace, Mode::evaluate, "evaluate");
    return values(workspace);
  }

  // y = f(x) and dy = J(x) dx.
  ValuesAndTangents<T> jvp(Workspace<T>& workspace, Arrays<T> inputs, Arrays<T> tangents) const {
    check_wanted(tangents, "tangents", "jvp");
    begin(workspace, Mode::jvp, inputs, "jvp");
    bind_tangents(workspace, Mode::jvp, tangents);
    run_forward(workspace, Mode::jvp, "jvp");
    return {values(workspace), output_tangents(workspace)};
  }

  // y = f(x) and gx = J(x)^T gy.
  ValuesAndGradients<T> value_and_vjp(Workspace<T>& workspace, Arrays<T> inputs, Arrays<T> output_gradients) const {
    check_outputs(output_gradients, "value_and_vjp");
    begin(workspace, Mode::vjp, inputs, "value_and_vjp");
    run_forward(workspace, Mode::vjp, "value_and_vjp");
    seed(workspace, Mode::vjp, output_gradients);
    run_backward(workspace, Mode::vjp, "value_and_vjp");
    return {values(workspace), gradients(workspace)};
  }
  Arrays<T> vjp(Workspace<T>& workspace, Arrays<T> inputs, Arrays<T> output_gradients) const {
    return value_and_vjp(workspace, inputs, output_gradients).gradients;
  }

  // y = f(x) now, and J(x) to be pushed through and pulled through as often as one likes.
  LinearMap<T> linearize(Workspace<T>& workspace, Arrays<T> inputs) const;

  // The same from lists in braces: evaluate(workspace, {x.view(), w.view()}).
  using List = std::initializer_list<View<const T>>;
  Arrays<T> evaluate(Workspace<T>& w, List inputs) const { return evaluate(w, span(inputs)); }
  ValuesAndTangents<T> jvp(Workspace<T>& w, List inputs, List tangents) const {
    return jvp(w, span(inputs), span(tangents));
  }
  ValuesAndGradients<T> value_and_vjp(Workspace<T>& w, List inputs, List output_gradients) const {
    return value_and_vjp(w, span(inputs), span(output_gradients));
  }
  Arrays<T> vjp(Workspace<T>& w, List inputs, List output_gradients) const {
    return vjp(w, span(inputs), span(output_gradients));
  }
  LinearMap<T> linearize(Workspace<T>& w, List inputs) const;

  [[nodiscard]] PeakMemory peak_memory() const {
    return {bytes(Mode::evaluate), bytes(Mode::jvp), bytes(Mode::vjp), bytes(Mode::linearize)};
  }
  [[nodiscard]] const detail::ProgramCore<T>& core() const { return *core_; }

 private:
  friend class Workspace<T>;
  friend class LinearMap<T>;
  using Mode = detail::Mode;
  using Core = detail::ProgramCore<T>;
  static Arrays<T> span(List list) { return {list.begin(), list.size()}; }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  [[nodiscard]] std::size_t bytes(Mode mode) const {
    std::size_t elements = static_cast<std::size_t>(core_->layout(mode).total) + core_->scratch;
    if (mode != Mode::evaluate) elements += core_->zeros + core_->ignored;
    return elements * sizeof(T) + (mode == Mode::evaluate ? 0 : core_->state_bytes);
  }

  // ---- what a call is given -------------------------------------------------------------------------------------

  void check_wanted(Arrays<T> arrays, const char* argument, std::string_view caller) const {
    if (arrays.size() != core_->wanted.size()) {
      std::vector<std::string> names;
      for (const int i : core_->wanted) names.push_back(in_words(core_->inputs[index(i)]));
      raise_count(arrays, argument, names, caller);
    }
    for (std::size_t k = 0; k < arrays.size(); ++k)
      check_array(arrays[k], argument, core_->inputs[index(core_->wanted[k])], caller);
  }
  void check_outputs(Arrays<T> arrays, std::string_view caller) const {
    if (arrays.size() != core_->outputs.size()) {
      std::vector<std::string> names;
      for (const auto& output : core_->outputs) names.push_back(in_words(output));
      raise_count(arrays, "output gradients", names, caller);
    }
    for (std::size_t k = 0; k < arrays.size(); ++k)
      check_array(arrays[k], "output gradients", core_->outputs[k], caller);
  }
  template <class Named>
  [[nodiscard, gnu::cold]] static std::string in_words(const Named& array) {
    return "`" + array.name + "` (" + to_string(array.dims) + ")";
  }
  [[gnu::cold, noreturn]] static void raise_count(Arrays<T> arrays, const char* argument,
                                                  const std::vector<std::string>& names, std::string_view caller) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    raise({.rule = Rule::array_count,
           .argument = argument,
           .got = static_cast<Index>(arrays.size()),
           .limit = static_cast<Index>(names.size()),
           .text = list},
          caller);
  }
  template <class Named>
  static void check_array(const View<const T>& array, const char* argument, const Named& expected,
                          std::string_view caller) {
    if (array.dims() == expected.dims) return;
    std::string name = argument;
    name.append("[").append(expected.name).append("]");
    spec::detail::check_shape(caller, name.c_str(), array.dims(), expected.dims);
  }

  // Where a dense array is; a copy of any other. `slot` numbers the arrays of a call.
  static const T* dense(Workspace<T>& workspace, const View<const T>& array, std::size_t slot) {
    if (array.strides() == row_major(array.dims()) || array.size() == 0) return array.data();
    if (workspace.staged_.size() <= slot) workspace.staged_.resize(slot + 1);
    std::vector<T>& copy = workspace.staged_[slot];
    copy.resize(detail::cells(array.dims()), T(Index{0}));
    copy_elements(array, View<T>(copy.data(), array.dims()));
    return copy.data();
  }

  // Checks everything that a forward pass is given before anything is touched.
  void begin(Workspace<T>& workspace, Mode mode, Arrays<T> inputs, std::string_view caller) const {
    if (workspace.core_ != core_) raise({Rule::workspace_foreign, "workspace"}, caller);
    const auto& expected = core_->inputs;
    if (inputs.size() < expected.size()) {
      const int missing = static_cast<int>(inputs.size());
      raise({Rule::input_missing, "input " + in_words(expected[inputs.size()]), -1, missing,
             static_cast<Index>(expected.size())},
            caller);
    }
    if (inputs.size() > expected.size()) {
      std::vector<std::string> names(expected.size());
      std::ranges::transform(expected, names.begin(), [](const auto& input) { return in_words(input); });
      raise_count(inputs, "inputs", names, caller);
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) check_array(inputs[k], "inputs", expected[k], caller);
    workspace.prepare(mode);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (expected[k].step >= 0) workspace.values_[index(expected[k].step)] = dense(workspace, inputs[k], k);
    for (std::size_t i = 0; i < core_->steps.size(); ++i)  // aliases of inputs and constants
      if (workspace.values_[i] == nullptr) workspace.values_[i] = workspace.values_[index(core_->steps[i].root)];
  }
  void bind_tangents(Workspace<T>& workspace, Mode mode, Arrays<T> tangents) const {
    for (std::size_t k = 0; k < tangents.size(); ++k) {
      const int step = core_->inputs[index(core_->wanted[k])].step;
      if (step >= 0) workspace.tangents_[index(step)] = dense(workspace, tangents[k], core_->inputs.size() + k);
    }
    for (std::size_t i = 0; i < core_->steps.size(); ++i)
      if (core_->steps[i].live && core_->steps[i].alias && core_->layout(mode).tangent[i] == detail::Layout::outside)
        workspace.tangents_[i] = workspace.tangents_[index(core_->steps[i].inputs[0])];
  }

  // ---- passes ---------------------------------------------------------------------------------------------------

  // Runs body(step, at) for the steps that do something, in order or in reverse. What a payload throws is thrown on,
  // inside an error that names the node `at`.
  template <class F>
  void each(std::string_view verb, bool reverse, F&& body) const {
    int at = 0;
    try {
      if (reverse) {
        for (auto i = core_->pulling.rbegin(); i != core_->pulling.rend(); ++i) body(*i, at = *i);
      } else {
        for (const int i : core_->computing) body(i, at = i);
      }
    } catch (const std::exception& error) {
      raise_from_payload(verb, at, error.what());
    } catch (...) {
      raise_from_payload(verb, at, "something that is no std::exception");
    }
  }
  [[gnu::cold, noreturn]] void raise_from_payload(std::string_view verb, int step, const char* what) const {
    const std::string node = core_->words(step);
    const Problem problem{.rule = Rule::payload_threw, .argument = node, .text = what};
    std::throw_with_nested(GraphError(message(problem, verb), problem.rule, node, -1, 0, 0));
  }

  // Values that a derivative may not read are empty, so that a wrong Node::reads cannot go unnoticed.
  static Values<T> read_by_derivatives(Workspace<T>& workspace, const detail::Step& step) {
    for (std::size_t k = 0; k < step.inputs.size(); ++k)
      workspace.x_[k] = step.readable[k] ? workspace.value(step.inputs[k]) : std::span<const T>();
    return {workspace.x_.data(), step.inputs.size()};
  }
  static Values<T> inputs_of(Workspace<T>& workspace, const detail::Step& step) {
    for (std::size_t k = 0; k < step.inputs.size(); ++k) workspace.x_[k] = workspace.value(step.inputs[k]);
    return {workspace.x_.data(), step.inputs.size()};
  }

  void run_forward(Workspace<T>& workspace, Mode mode, std::string_view caller) const {
    const detail::Layout& layout = core_->layout(mode);
    each(caller, false, [&](int i, int&) {
      const detail::Step& step = core_->steps[index(i)];
      const bool derives = mode != Mode::evaluate && step.live;
      core_->node(i).forward(
          {inputs_of(workspace, step), workspace.own(layout.value[index(i)], i), derives, workspace.memory(i)});
      if (mode == Mode::jvp && derives) push_one(workspace, layout, i);
    });
  }

  void push_one(Workspace<T>& workspace, const detail::Layout& layout, int i) const {
    const detail::Step& step = core_->steps[index(i)];
    const Node<T>& node = core_->node(i);
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const int from = step.inputs[k];
      const auto size = static_cast<std::size_t>(core_->steps[index(from)].size);
      if (core_->steps[index(from)].live)
        workspace.dx_[k] = workspace.tangent(from);
      else
        workspace.dx_[k] = node.selective ? std::span<const T>() : std::span<const T>(workspace.zeros_.data(), size);
    }
    node.jvp({read_by_derivatives(workspace, step),
              reads_output(node.reads) ? workspace.value(i) : std::span<const T>(),
              {workspace.dx_.data(), step.inputs.size()},
              workspace.own(layout.tangent[index(i)], i),
              workspace.memory(i)});
  }

  void seed(Workspace<T>& workspace, Mode mode, Arrays<T> output_gradients) const {
    const detail::Layout& layout = core_->layout(mode);
    std::vector<bool>& started = workspace.started_;
    std::fill(started.begin(), started.end(), false);
    for (std::size_t k = 0; k < output_gradients.size(); ++k) {
      const int i = core_->outputs[k].step;
      if (!core_->steps[index(i)].live) continue;
      const T* given = dense(workspace, output_gradients[k], core_->inputs.size() + core_->wanted.size() + k);
      if (layout.seeded[index(i)]) {
        workspace.gradients_[index(i)] = given;
        continue;
      }
      const std::span<T> to = workspace.own(layout.gradient[index(i)], i);
      if (started[index(i)])
        detail::add_into<T>({given, to.size()}, to);
      else
        detail::copy_into<T>({given, to.size()}, to);
      started[index(i)] = true;
    }
  }

  void run_backward(Workspace<T>& workspace, Mode mode, std::string_view caller) const {
    const detail::Layout& layout = core_->layout(mode);
    each(caller, true, [&](int i, int& at) {
      for (const auto& late : layout.deferred[index(i)]) pull_late(workspace, layout, i, late, at = late.step);
      at = i;
      if (!layout.contributions[index(i)].empty()) pull_one(workspace, layout, i);
    });
  }

  // One gradient of `from`, which gives them one by one.
  void pull_late(Workspace<T>& workspace, const detail::Layout& layout, int to, const detail::Layout::Deferred& late,
                 int from) const {
    const detail::Step& step = core_->steps[index(from)];
    const std::span<T> sum = workspace.own(layout.gradient[index(to)], to);
    const std::span<T> part = late.to.added ? workspace.own(late.to.offset, to) : sum;
    std::fill_n(workspace.gx_.begin(), step.inputs.size(), std::span<T>());
    workspace.gx_[late.input] = part;
    core_->node(from).vjp({read_by_derivatives(workspace, step),
                           {},
                           workspace.gradient(from),
                           {workspace.gx_.data(), step.inputs.size()},
                           workspace.memory(from)});
    if (late.to.added) detail::add_into<T>(part, sum);
  }

  void pull_one(Workspace<T>& workspace, const detail::Layout& layout, int i) const {
    const detail::Step& step = core_->steps[index(i)];
    const Node<T>& node = core_->node(i);
    const auto& contributions = layout.contributions[index(i)];
    bool wanted = false;
    std::size_t ignored = 0;
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const int from = step.inputs[k];
      const auto size = static_cast<std::size_t>(core_->steps[index(from)].size);
      if (!core_->steps[index(from)].live) {
        workspace.gx_[k] = node.selective ? std::span<T>() : std::span<T>(workspace.ignored_).subspan(ignored, size);
        ignored += size;
      } else {
        const auto& to = contributions[k];
        if (to.shared) continue;
        wanted = true;
        workspace.gx_[k] = workspace.own(to.added ? to.offset : layout.gradient[index(from)], from);
      }
    }
    if (!wanted) return;
    node.vjp({read_by_derivatives(workspace, step),
              reads_output(node.reads) ? workspace.value(i) : std::span<const T>(),
              workspace.gradient(i),
              {workspace.gx_.data(), step.inputs.size()},
              workspace.memory(i)});
    for (std::size_t k = 0; k < step.inputs.size(); ++k)
      if (core_->steps[index(step.inputs[k])].live && contributions[k].added)
        detail::add_into<T>(workspace.gx_[k], workspace.own(layout.gradient[index(step.inputs[k])], step.inputs[k]));
  }

  // ---- what a call returns --------------------------------------------------------------------------------------

  Arrays<T> values(Workspace<T>& workspace) const {
    workspace.returned_values_.clear();
    for (const auto& output : core_->outputs)
      workspace.returned_values_.emplace_back(workspace.values_[index(output.step)], output.dims);
    return workspace.returned_values_;
  }
  Arrays<T> output_tangents(Workspace<T>& workspace) const {
    workspace.returned_tangents_.clear();
    for (const auto& output : core_->outputs)
      workspace.returned_tangents_.emplace_back(
          core_->steps[index(output.step)].live ? workspace.tangents_[index(output.step)] : workspace.zeros_.data(),
          output.dims);
    return workspace.returned_tangents_;
  }
  Arrays<T> gradients(Workspace<T>& workspace) const {
    workspace.returned_gradients_.clear();
    for (const int i : core_->wanted) {
      const auto& input = core_->inputs[index(i)];
      const bool live = input.step >= 0 && core_->steps[index(input.step)].live;
      workspace.returned_gradients_.emplace_back(
          live ? workspace.gradients_[index(input.step)] : workspace.zeros_.data(), input.dims);
    }
    return workspace.returned_gradients_;
  }

  std::shared_ptr<const Core> core_;
};

// The derivative of a program at a point, in the workspace that it was evaluated in. It holds until that workspace runs
// again; what push and pull return, until the next of them.
template <class T>
class LinearMap {
 public:
  [[nodiscard]] Arrays<T> values() const { return values_; }

  // dy = J dx.
  [[nodiscard]] Arrays<T> push(Arrays<T> tangents) const {
    program_.check_wanted(tangents, "tangents", "push");
    check("push");
    program_.bind_tangents(*workspace_, detail::Mode::linearize, tangents);
    const auto& layout = program_.core().layout(detail::Mode::linearize);
    program_.each("push", false, [&](int i, int&) {
      if (program_.core().steps[static_cast<std::size_t>(i)].live) program_.push_one(*workspace_, layout, i);
    });
    return program_.output_tangents(*workspace_);
  }
  [[nodiscard]] Arrays<T> push(std::initializer_list<View<const T>> tangents) const {
    return push(Program<T>::span(tangents));
  }

  // gx = J^T gy.
  [[nodiscard]] Arrays<T> pull(Arrays<T> output_gradients) const {
    program_.check_outputs(output_gradients, "pull");
    check("pull");
    program_.seed(*workspace_, detail::Mode::linearize, output_gradients);
    program_.run_backward(*workspace_, detail::Mode::linearize, "pull");
    return program_.gradients(*workspace_);
  }
  [[nodiscard]] Arrays<T> pull(std::initializer_list<View<const T>> gradients) const {
    return pull(Program<T>::span(gradients));
  }

 private:
  friend class Program<T>;
  LinearMap(Program<T> program, Workspace<T>& workspace, Arrays<T> values)
      : program_(std::move(program)), workspace_(&workspace), values_(values), run_(workspace.run_) {}
  void check(std::string_view caller) const {
    if (workspace_->run_ != run_) raise({Rule::map_stale, "this linear map"}, caller);
  }

  Program<T> program_;
  Workspace<T>* workspace_;
  Arrays<T> values_;
  std::uint64_t run_;
};

template <class T>
LinearMap<T> Program<T>::linearize(Workspace<T>& workspace, Arrays<T> inputs) const {
  begin(workspace, Mode::linearize, inputs, "linearize");
  run_forward(workspace, Mode::linearize, "linearize");
  return LinearMap<T>(*this, workspace, values(workspace));
}
template <class T>
LinearMap<T> Program<T>::linearize(Workspace<T>& workspace, List inputs) const {
  return linearize(workspace, span(inputs));
}

template <class T>
Workspace<T>::Workspace(const Program<T>& program) : core_(program.core_) {
  const std::size_t steps = core_->steps.size();
  values_.resize(steps);
  tangents_.resize(steps);
  gradients_.resize(steps);
  started_.resize(steps);
  x_.resize(core_->most_inputs);
  dx_.resize(core_->most_inputs);
  gx_.resize(core_->most_inputs);
  returned_values_.reserve(core_->outputs.size());
  returned_tangents_.reserve(core_->outputs.size());
  returned_gradients_.reserve(core_->wanted.size());
}

}  // namespace cenote
