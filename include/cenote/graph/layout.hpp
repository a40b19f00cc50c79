// Where the arrays of a program lie: which steps need which values, and one piece of memory that arrays share when they
// are not needed at the same time. Integers only: no element is touched here.
#pragma once

#include <algorithm>
#include <numeric>

#include "cenote/graph/build.hpp"

namespace cenote::detail {

// What a program does: each mode keeps different things for different times.
enum class Mode : std::uint8_t { evaluate, jvp, vjp, linearize };
inline constexpr int modes = 4;
constexpr bool keeps(Mode mode) { return mode == Mode::vjp || mode == Mode::linearize; }
constexpr bool pushes(Mode mode) { return mode == Mode::jvp || mode == Mode::linearize; }

// One node of a program, without its scalar.
struct Step {
  NodeKind kind = NodeKind::operation;
  std::vector<int> inputs{};  // steps before this one
  Index size = 0;             // elements of its value
  Reads reads = Reads::nothing;
  bool alias = false;
  bool separable = false;  // its gradient by one input can be had alone, and from the output's gradient alone
  bool wanted = false;     // an input by which derivatives are taken
  int outputs = 0;         // how often the program returns it

  int root = 0;                  // the step whose array holds the value: another one of an alias
  bool live = false;             // a derivative passes through: from a wanted input, to an output
  std::vector<bool> readable{};  // the inputs whose values the derivatives read
  [[nodiscard]] bool computes() const { return kind == NodeKind::operation && !alias; }
  [[nodiscard]] bool passes_derivatives() const { return kind == NodeKind::operation; }
};

// Fills in root, live and readable.
inline void analyse(std::vector<Step>& steps) {
  const auto at = [&](int i) -> Step& { return steps[static_cast<std::size_t>(i)]; };
  const int n = static_cast<int>(steps.size());
  std::vector<bool> reached(steps.size());  // by gradients of the outputs
  for (int i = n - 1; i >= 0; --i) {
    if (at(i).outputs > 0) reached[static_cast<std::size_t>(i)] = true;
    if (reached[static_cast<std::size_t>(i)] && at(i).passes_derivatives())
      for (const int from : at(i).inputs) reached[static_cast<std::size_t>(from)] = true;
  }
  std::vector<bool> moves(steps.size());  // with the wanted inputs
  for (int i = 0; i < n; ++i) {
    Step& step = at(i);
    step.root = step.alias ? at(step.inputs[0]).root : i;
    bool moved = step.wanted;
    if (step.passes_derivatives())
      for (const int from : step.inputs) moved = moved || moves[static_cast<std::size_t>(from)];
    moves[static_cast<std::size_t>(i)] = moved;
    step.live = moved && reached[static_cast<std::size_t>(i)];
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      bool others = false;
      for (std::size_t other = 0; other < step.inputs.size(); ++other)
        others = others || (other != k && moves[static_cast<std::size_t>(step.inputs[other])]);
      step.readable.push_back(reads_inputs(step.reads) || (step.reads == Reads::others && others));
    }
  }
}

// An array and the first and last moment it is needed.
struct Lifetime {
  Index size = 0;
  int first = 0, last = 0;
};

// Offsets for arrays such that no two that are needed at one moment overlap: largest first, each into the lowest gap
// that holds it. Offsets are multiples of `unit`. Returns the total.
inline Index place(const std::vector<Lifetime>& arrays, Index unit, std::vector<Index>& offsets) {
  std::vector<std::size_t> order(arrays.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return arrays[a].size > arrays[b].size; });
  offsets.assign(arrays.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  Index total = 0;
  for (const std::size_t i : order) {
    Index offset = 0;
    for (const std::size_t other : placed) {
      if (arrays[other].last < arrays[i].first || arrays[i].last < arrays[other].first) continue;
      if (offsets[other] >= offset + arrays[i].size) break;
      offset = std::max(offset, ceil_div(offsets[other] + arrays[other].size, unit) * unit);
    }
    offsets[i] = offset;
    total = std::max(total, offset + arrays[i].size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; }),
                  i);
  }
  return total;
}

// One mode's arrays. An offset of `outside` is an array of the caller's or of the graph's, or none.
struct Layout {
  static constexpr Index outside = -1;
  // How a step's gradient for input k arrives: written where it is collected, or written apart and added to it.
  struct Contribution {
    bool added = false;
    bool shared = false;  // an alias hands its own gradient on: nothing is done
    Index offset = outside;
  };
  // A contribution of a step to the gradient of another that is put off until that one is needed.
  struct Deferred {
    int step = 0;
    std::size_t input = 0;
    Contribution to{};
  };
  std::vector<Index> value, tangent, gradient;
  std::vector<std::vector<Contribution>> contributions;
  std::vector<std::vector<Deferred>> deferred;  // by the step that receives them
  std::vector<bool> seeded;                     // the caller's gradient is the gradient: nothing is added to it
  std::vector<bool> retained;                   // the value outlives the forward pass
  Index total = 0;
};

class LayoutBuilder {
 public:
  LayoutBuilder(const std::vector<Step>& steps, Mode mode, Index unit)
      : steps_(steps), n_(static_cast<int>(steps.size())), mode_(mode), unit_(unit) {}

  // Time runs forward through the steps once; then, backward (vjp), or forward for pushes and backward for pulls.
  Layout build() {
    const std::size_t count = steps_.size();
    layout_.value = layout_.tangent = layout_.gradient = std::vector<Index>(count, Layout::outside);
    layout_.contributions.resize(count);
    layout_.deferred.resize(count);
    layout_.seeded.assign(count, false);
    layout_.retained.assign(count, false);
    values();
    if (pushes(mode_)) tangents();
    if (keeps(mode_)) gradients();
    std::vector<Index> offsets;
    layout_.total = place(arrays_, unit_, offsets);
    for (auto* list : {&layout_.value, &layout_.tangent, &layout_.gradient})
      for (Index& offset : *list)
        offset = offset == Layout::outside ? offset : offsets[static_cast<std::size_t>(offset)];
    for (auto& list : layout_.contributions)
      for (auto& one : list)
        if (one.offset != Layout::outside) one.offset = offsets[static_cast<std::size_t>(one.offset)];
    for (auto& list : layout_.deferred)
      for (auto& [step, input, to] : list)
        if (to.offset != Layout::outside) to.offset = offsets[static_cast<std::size_t>(to.offset)];
    return std::move(layout_);
  }

 private:
  [[nodiscard]] const Step& at(int i) const { return steps_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int end() const { return 3 * n_; }
  [[nodiscard]] int pushed(int i) const { return mode_ == Mode::jvp ? i : n_ + i; }
  [[nodiscard]] int pulled(int i) const { return (mode_ == Mode::vjp ? 2 : 3) * n_ - 1 - i; }
  [[nodiscard]] int seeds() const { return mode_ == Mode::vjp ? n_ : 2 * n_; }

  // A number that becomes an offset when everything is known.
  Index array(Index size, int first, int last) {
    arrays_.push_back({size, first, last});
    return static_cast<Index>(arrays_.size()) - 1;
  }
  void prolong(Index id, int until) {
    int& last = arrays_[static_cast<std::size_t>(id)].last;
    last = std::max(last, until);
  }

  void values() {
    std::vector<int> last(steps_.size());
    const auto until = [&](int i, int time) {
      int& of = last[static_cast<std::size_t>(at(i).root)];
      of = std::max(of, time);
    };
    for (int i = 0; i < n_; ++i) {
      const Step& step = at(i);
      until(i, i);
      if (step.outputs > 0) until(i, end());
      if (!step.computes()) continue;
      for (const int from : step.inputs) until(from, i);
      if (!keeps(mode_) || !step.live) continue;
      const int needed = mode_ == Mode::vjp ? pulled(i) : end();
      if (reads_output(step.reads)) until(i, needed);
      for (std::size_t k = 0; k < step.inputs.size(); ++k)
        if (step.readable[k]) until(step.inputs[k], needed);
    }
    for (int i = 0; i < n_; ++i) {
      if (at(at(i).root).kind != NodeKind::operation) continue;  // an input or a constant
      const auto here = static_cast<std::size_t>(i);
      const auto root = static_cast<std::size_t>(at(i).root);
      layout_.value[here] = at(i).root == i ? array(at(i).size, i, last[here]) : layout_.value[root];
      layout_.retained[here] = at(i).root == i && at(i).outputs == 0 && last[here] >= n_;
    }
  }

  void tangents() {
    std::vector<Index>& ids = layout_.tangent;
    for (int i = 0; i < n_; ++i) {
      const Step& step = at(i);
      if (!step.live || step.kind == NodeKind::input) continue;
      Index& id = ids[static_cast<std::size_t>(i)];
      if (step.alias) {
        id = ids[static_cast<std::size_t>(step.inputs[0])];
      } else {
        id = array(step.size, pushed(i), pushed(i));
        for (const int from : step.inputs)
          if (const Index used = ids[static_cast<std::size_t>(from)]; used != Layout::outside) prolong(used, pushed(i));
      }
      if (step.outputs > 0 && id != Layout::outside) prolong(id, end());
    }
  }

  void gradients() {
    std::vector<Index>& ids = layout_.gradient;
    std::vector<bool> consumed(steps_.size()), started(steps_.size());
    for (const Step& step : steps_)
      if (step.live && step.passes_derivatives())
        for (const int from : step.inputs) consumed[static_cast<std::size_t>(from)] = true;
    for (int i = 0; i < n_; ++i) {
      if (at(i).outputs == 0 || !at(i).live) continue;
      const auto here = static_cast<std::size_t>(i);
      layout_.seeded[here] = at(i).outputs == 1 && !consumed[here] && !at(i).wanted;
      if (!layout_.seeded[here]) ids[here] = array(at(i).size, seeds(), pulled(i));
      started[here] = true;
    }
    for (int i = n_ - 1; i >= 0; --i) {
      const Step& step = at(i);
      if (!step.live) continue;
      for (auto& late : layout_.deferred[static_cast<std::size_t>(i)]) {
        Index& id = ids[static_cast<std::size_t>(i)];
        const Index fresh = array(step.size, pulled(i), pulled(i));
        if (started[static_cast<std::size_t>(i)])
          late.to = {.added = true, .offset = fresh};
        else
          id = fresh;
        started[static_cast<std::size_t>(i)] = true;
      }
      if (step.wanted) prolong(ids[static_cast<std::size_t>(i)], end());
      if (!step.passes_derivatives()) continue;
      // The caller holds this gradient anyway: its parts are taken from it one by one, as they are needed.
      if (step.separable && layout_.seeded[static_cast<std::size_t>(i)]) {
        for (std::size_t k = 0; k < step.inputs.size(); ++k)
          if (at(step.inputs[k]).live) layout_.deferred[static_cast<std::size_t>(step.inputs[k])].push_back({i, k});
        continue;
      }
      auto& contributions = layout_.contributions[static_cast<std::size_t>(i)];
      for (const int from : step.inputs) {
        auto& contribution = contributions.emplace_back();
        const auto to = static_cast<std::size_t>(from);
        if (!at(from).live) continue;
        if (started[to]) {
          contribution = {.added = true, .offset = array(step_size(from), pulled(i), pulled(i))};
        } else if (step.alias && ids[static_cast<std::size_t>(i)] != Layout::outside) {
          contribution.shared = true;
          ids[to] = ids[static_cast<std::size_t>(i)];
          prolong(ids[to], pulled(from));
        } else {
          ids[to] = array(step_size(from), pulled(i), pulled(from));
        }
        started[to] = true;
      }
    }
  }
  [[nodiscard]] Index step_size(int i) const { return at(i).size; }

  const std::vector<Step>& steps_;
  int n_;
  Mode mode_;
  Index unit_;
  std::vector<Lifetime> arrays_;
  Layout layout_;
};

}  // namespace cenote::detail
