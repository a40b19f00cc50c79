// Small planes whose windows lie apart, taken in groups: the cells of a group are one long row, and which outputs a
// vector of them hears from, and in which lanes, is the same for every group. `kernels/patterns` goes by it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace cenote::plan {

class PatternMaker {
 public:
  using Found = std::shared_ptr<const Pattern>;

  // Of an adjoint's plan, for vectors of n cells. Null: windows share cells, planes are not dense, or it would not pay,
  // for instance because there is a rival for long rows.
  static Found find(const Plan& plan, Index n, bool winners, bool rival) {
    PatternMaker maker(plan, n, winners);
    return maker.pays(rival) ? Known::find(maker) : nullptr;
  }

 private:
  static constexpr Index most_cells = Index{1} << 15;  // of a group
  static constexpr Index longest_row = 96;             // of cells, that a rival does not read faster
  static constexpr Index least_groups = 8;
  static constexpr std::uint8_t nobody = 254;  // a number that no winner has
  static constexpr std::int32_t none = std::numeric_limits<std::int32_t>::max();

  // What a pattern depends on.
  struct Key {
    std::array<Index, 8 * max_rank + 3> entries{};
    std::size_t count = 0;
    void add(Index entry) { entries[count++] = entry; }
    bool operator==(const Key& other) const {
      return count == other.count && std::equal(entries.begin(), entries.begin() + count, other.entries.begin());
    }
  };

  // Those that the thread has made most recently: a program calls with the same few shapes again and again.
  class Known {
   public:
    Known() = default;
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;
    ~Known() { gone = true; }
    static Found find(PatternMaker& maker) {
      if (gone) return maker.make();
      thread_local Known known;
      auto& all = known.all_;
      const Key key = maker.key();
      const auto at = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == key; });
      if (at != all.end()) {
        std::rotate(all.begin(), at, at + 1);
      } else {
        Found made = maker.make();
        if (all.size() == most) all.pop_back();
        all.insert(all.begin(), {key, std::move(made)});
      }
      return all.front().second;
    }

   private:
    static constexpr std::size_t most = 16;
    static inline thread_local bool gone = false;  // a thread's last plans may outlive what it knows
    std::vector<std::pair<Key, Found>> all_;
  };

  PatternMaker(const Plan& plan, Index n, bool winners) : plan_(plan), n_(n), winners_(winners) {
    for (int a = 0; a < plan.rank; ++a) {
      const PooledAxis& axis = plan.axes[static_cast<std::size_t>(a)];
      cells_ *= axis.out;
      outputs_ *= axis.source.out;
      apart_ = apart_ && axis.kernel == 1;
    }
    // Lanes that are neighbours in memory, fewer than make good vectors, are a last axis of planes.
    if (plan.lanes.rank == 2) inner_ = plan.lanes.sizes[1];
    cells_ *= inner_;
    outputs_ *= inner_;
  }

  [[nodiscard]] bool is_dense() const {
    const auto lies = [&](const Operand& operand, auto&& size_of) {
      Index size = 1;
      if (plan_.lanes.rank == 2) {
        if (operand.lanes[1] != 1) return false;
        size = inner_;
      }
      for (auto a = static_cast<std::size_t>(plan_.rank); a-- > 0;) {
        if (operand.pooled[a] != size) return false;
        size *= size_of(plan_.axes[a]);
      }
      return operand.lanes[0] == size;
    };
    const auto outputs = [](const PooledAxis& axis) { return axis.source.out; };
    return lies(plan_.inputs[0], outputs) && (!winners_ || lies(plan_.winner, outputs)) &&
           lies(plan_.outputs[0], [](const PooledAxis& axis) { return axis.out; });
  }

  bool pays(bool rival) {
    if (plan_.rank == 0 || plan_.lanes.rank > 2 || !apart_) return false;
    if (cells_ == 0 || outputs_ == 0 || cells_ > most_cells || outputs_ > most_cells) return false;
    const Index row = plan_.lanes.rank == 2 ? inner_ : plan_.axes[static_cast<std::size_t>(plan_.rank - 1)].out;
    if (rival && (row > longest_row || (plan_.lanes.rank == 2 && row % n_ == 0))) return false;
    // In units of some 10 ps: what a vector of cells costs, and what it costs to clear cells and send each output to
    // one.
    if (56 * cells_ / n_ > 2 * cells_ + 60 * outputs_) return false;
    if (!is_dense()) return false;
    // As many planes as make at least a vector of outputs, and whole vectors of cells but for a small rest.
    const auto rest = [&](Index planes) { return (n_ - planes * cells_ % n_) % n_; };
    const Index least = std::min(outputs_, cells_);
    planes_ = (n_ + least - 1) / least;
    for (Index more = planes_; more <= 2 * planes_ + 6 && rest(planes_) * 16 > planes_ * cells_; ++more)
      if (rest(more) * planes_ < rest(planes_) * more) planes_ = more;
    return planes_ * cells_ <= most_cells && plan_.lanes.count / inner_ >= least_groups * planes_;
  }

  [[nodiscard]] Key key() const {
    Key key;
    for (const Index entry : {n_, Index{winners_}, inner_}) key.add(entry);
    for (int a = 0; a < plan_.rank; ++a) {
      const Axis& axis = plan_.axes[static_cast<std::size_t>(a)].source;
      for (const Index entry : {static_cast<Index>(axis.kind), axis.in, axis.out, axis.kernel, axis.stride,
                                axis.dilation, axis.padding.low, axis.padding.high})
        key.add(entry);
    }
    return key;
  }

  // The window that a cell lies in: its output, and the number that names the cell in it.
  struct Heard {
    std::int32_t output = none, number = 0;
  };

  // The windows of all cells of a group.
  [[nodiscard]] std::vector<Heard> windows() const {
    std::vector<Heard> all{{0, 0}};
    std::vector<Heard> before;
    Index output_scale = outputs_, number_scale = 1;
    for (int a = 0; a < plan_.rank; ++a) number_scale *= plan_.axes[static_cast<std::size_t>(a)].source.kernel;
    for (int a = 0; a < plan_.rank; ++a) {
      const PooledAxis& axis = plan_.axes[static_cast<std::size_t>(a)];
      output_scale /= axis.source.out;
      number_scale /= axis.source.kernel;
      before.swap(all);
      all.clear();
      for (const Heard& outer : before)
        for (Index i = 0; i < axis.out; ++i) {
          const Taps& taps = axis.taps[i];
          if (taps.count == 0 || outer.output == none) {
            all.push_back({});
            continue;
          }
          const Index number = (i - axis.source.position(taps.start, 0)) / axis.source.dilation;
          all.push_back({outer.output + static_cast<std::int32_t>(taps.start * output_scale),
                         outer.number + static_cast<std::int32_t>(number * number_scale)});
        }
    }
    before.swap(all);
    all.clear();
    all.reserve(static_cast<std::size_t>(planes_ * cells_));
    for (Index plane = 0; plane < planes_; ++plane)
      for (const Heard& heard : before)
        for (Index lane = 0; lane < inner_; ++lane) {
          all.push_back(heard);
          if (heard.output != none) all.back().output += static_cast<std::int32_t>(plane * outputs_ + lane);
        }
    return all;
  }

  Found make() const {
    auto out = std::make_shared<Pattern>();
    out->planes = planes_;
    out->lanes_of_group = planes_ * inner_;
    out->cells = planes_ * cells_;
    out->outputs = planes_ * outputs_;
    const std::vector<Heard> all = windows();
    for (Index first = 0; first < out->cells; first += n_) {
      add_vector(all.data() + std::min(first, out->cells - n_), *out);
      out->ends.push_back(static_cast<std::int32_t>(out->bases.size()));
    }
    return out;
  }

  // The terms of n cells. A term reads n outputs from a base on; cells whose outputs are not among them follow in
  // another one.
  void add_vector(const Heard* cells, Pattern& to) const {
    const auto count = static_cast<std::size_t>(n_);
    const auto width = static_cast<std::int32_t>(n_);
    std::array<Heard, 64> left;
    std::copy_n(cells, count, left.begin());
    for (bool more = true; more;) {
      auto base = static_cast<std::int32_t>(to.outputs - n_);
      for (std::size_t l = 0; l < count; ++l) base = std::min(base, left[l].output);
      to.bases.push_back(base);
      more = false;
      for (std::size_t l = 0; l < count; ++l) {
        Heard& heard = left[l];
        const bool here = heard.output != none && heard.output - base < width;
        to.lanes.push_back(here ? static_cast<std::uint8_t>(heard.output - base) : std::uint8_t{0});
        to.numbers.push_back(!here ? nobody : winners_ ? static_cast<std::uint8_t>(heard.number) : std::uint8_t{0});
        if (here) heard.output = none;
        more = more || heard.output != none;
      }
    }
  }

  const Plan& plan_;
  Index n_;
  bool winners_;
  bool apart_ = true;              // no windows share a cell
  Index cells_ = 1, outputs_ = 1;  // of a plane
  Index inner_ = 1;                // lanes that belong to planes
  Index planes_ = 1;               // of a group
};

}  // namespace cenote::plan
