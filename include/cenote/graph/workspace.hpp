// The memory of runs: a program is shared and constant, a workspace belongs to one thread at a time.
#pragma once

#include "cenote/graph/plan.hpp"

namespace cenote {

template <class T>
class Program;
template <class T>
class LinearMap;

// What a run is given and gives back: views, in the order of the graph's inputs or outputs.
template <class T>
using Arrays = std::span<const View<const T>>;

namespace detail {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}
  static constexpr std::align_val_t alignment{std::max(cache_line, alignof(T))};
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, alignment); }
  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace detail

// Memory for the runs of one program. Taken at the first run of each kind, then used again; views that a run returned
// are valid until the workspace runs again. Not to be shared by threads that run at the same time.
template <class T>
class Workspace {
 public:
  explicit Workspace(const Program<T>& program);

  // Bytes taken so far.
  [[nodiscard]] std::size_t bytes() const {
    std::size_t total = (arena_.size() + scratch_.size() + zeros_.size() + ignored_.size()) * sizeof(T);
    for (const auto& staged : staged_) total += staged.size() * sizeof(T);
    return total + (states_.empty() ? 0 : core_->state_bytes);
  }

 private:
  friend class Program<T>;
  friend class LinearMap<T>;
  using Mode = detail::Mode;

  [[nodiscard]] std::span<const T> value(int step) const {
    return {values_[index(step)], static_cast<std::size_t>(core_->steps[index(step)].size)};
  }
  [[nodiscard]] std::span<const T> tangent(int step) const {
    return {tangents_[index(step)], static_cast<std::size_t>(core_->steps[index(step)].size)};
  }
  [[nodiscard]] std::span<const T> gradient(int step) const {
    return {gradients_[index(step)], static_cast<std::size_t>(core_->steps[index(step)].size)};
  }
  // An array of the workspace's own, to be written.
  [[nodiscard]] std::span<T> own(Index offset, int step) {
    return {arena_.data() + offset, static_cast<std::size_t>(core_->steps[index(step)].size)};
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  // The memory of a mode, and pointers into it. Allocates at the first run of the mode only.
  void prepare(Mode mode) {
    const detail::ProgramCore<T>& core = *core_;
    const detail::Layout& layout = core.layout(mode);
    ++run_;
    if (arena_.size() < static_cast<std::size_t>(layout.total)) {
      arena_ = {};  // before the new one is taken
      arena_.resize(static_cast<std::size_t>(layout.total), T(Index{0}));
    }
    if (scratch_.size() < core.scratch) scratch_.resize(core.scratch, T(Index{0}));
    if (mode != Mode::evaluate) {
      if (zeros_.size() < core.zeros) zeros_.resize(core.zeros, T(Index{0}));
      if (ignored_.size() < core.ignored) ignored_.resize(core.ignored, T(Index{0}));
      if (states_.empty()) {
        std::vector<std::shared_ptr<void>> states(core.steps.size());
        for (const int i : core.computing)
          if (core.steps[index(i)].live && core.node(i).state) states[index(i)] = core.node(i).state();
        states_ = std::move(states);
      }
    }
    for (std::size_t i = 0; i < core.steps.size(); ++i) {
      const auto at = [&](const std::vector<Index>& offsets) {
        return offsets[i] == detail::Layout::outside ? nullptr : arena_.data() + offsets[i];
      };
      values_[i] =
          core.steps[i].kind == detail::NodeKind::constant ? core.records[i]->constant.data().data() : at(layout.value);
      tangents_[i] = at(layout.tangent);
      gradients_[i] = at(layout.gradient);
    }
  }

  [[nodiscard]] NodeMemory<T> memory(int step) {
    return {states_.empty() ? nullptr : states_[index(step)].get(), scratch_, &core_->exec};
  }

  std::shared_ptr<const detail::ProgramCore<T>> core_;
  detail::AlignedVector<T> arena_, scratch_, zeros_, ignored_;
  std::vector<std::vector<T>> staged_;         // copies of arrays that were given with gaps or in another order
  std::vector<std::shared_ptr<void>> states_;  // of the nodes that keep one
  std::vector<const T*> values_, tangents_, gradients_;  // by step
  std::vector<std::span<const T>> x_, dx_;               // of the payload that runs
  std::vector<std::span<T>> gx_;
  std::vector<bool> started_;  // gradients that have a first summand
  std::vector<View<const T>> returned_values_, returned_tangents_, returned_gradients_;
  std::uint64_t run_ = 0;
};

}  // namespace cenote
