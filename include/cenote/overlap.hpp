// Memory overlap of strided views, decided exactly: do two index vectors exist that name one address?
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "cenote/view.hpp"

namespace cenote::detail {

__extension__ using Address = __int128;  // sums of stride * size never overflow here

// For a few dozen entries, in a fraction of the code of std::sort.
template <class T, class Before>
constexpr void sort(T* entries, std::size_t count, Before before) {
  for (std::size_t i = 1; i < count; ++i)
    for (std::size_t j = i; j > 0 && before(entries[j], entries[j - 1]); --j) std::swap(entries[j], entries[j - 1]);
}

// Solves sum(step[i] * n[i]) == target with 0 <= n[i] <= most[i] by choosing the largest step first: what remains must
// be within reach of the smaller steps, which leaves one or two choices a level for every sane layout.
class AddressEquation {
 public:
  constexpr void add(Address step, Address most) {
    if (step != 0 && most > 0) terms_[count_++] = {step < 0 ? -step : step, most};
  }

  constexpr bool solvable(Address target) {
    sort(terms_.data(), count_, [](const Term& x, const Term& y) { return x.step > y.step; });
    for (std::size_t i = count_; i-- > 0;) terms_[i].reach = terms_[i + 1].reach + terms_[i].step * terms_[i].most;
    return search(0, target);
  }

 private:
  struct Term {
    Address step = 0, most = 0;
    Address reach = 0;  // the most that this term and the smaller ones can add up to
  };

  constexpr bool search(std::size_t i, Address target) {
    if (target == 0) return true;
    const auto [step, most, reach] = terms_[i];
    if (target < 0 || target > reach) return false;
    if (--budget_ < 0) return true;
    const Address rest = target - terms_[i + 1].reach;
    const Address least = rest > 0 ? (rest + step - 1) / step : 0;
    for (Address n = std::min(most, target / step); n >= least; --n)
      if (search(i + 1, target - n * step)) return true;
    return false;
  }

  std::array<Term, 2 * max_rank + 3> terms_{};  // the last one stays zero: nothing is left to add
  std::size_t count_ = 0;
  int budget_ = 100'000;  // an adversarial layout counts as overlapping rather than taking forever
};

// Every index names an element of its own: what an output must offer.
constexpr bool has_distinct_elements(const Dims& dims, const Dims& strides) {
  if (volume(dims) == 0 || strides == row_major(dims)) return true;
  struct Extent {
    Index stride, size;
  };
  std::array<Extent, max_rank> axes{};  // ascending
  std::size_t count = 0;
  for (int a = 0; a < dims.rank; ++a)
    if (dims[a] > 1) axes[count++] = {strides[a] < 0 ? -strides[a] : strides[a], dims[a]};
  sort(axes.data(), count, [](const Extent& x, const Extent& y) { return x.stride < y.stride; });
  Address span = 0;  // of the axes with smaller strides
  bool nested = true;
  for (std::size_t i = 0; i < count && nested; ++i) {
    nested = axes[i].stride > span;
    span += static_cast<Address>(axes[i].stride) * (axes[i].size - 1);
  }
  if (nested) return true;
  // Two indices meet: let i be the largest axis on which they differ, by 1 or more; smaller axes make up for it.
  for (std::size_t i = 0; i < count; ++i) {
    if (axes[i].stride == 0) return false;
    AddressEquation equation;
    Address target = -static_cast<Address>(axes[i].stride);
    equation.add(axes[i].stride, axes[i].size - 2);
    for (std::size_t j = 0; j < i; ++j) {  // a difference of -(size-1) to size-1
      equation.add(axes[j].stride, 2 * static_cast<Address>(axes[j].size - 1));
      target += static_cast<Address>(axes[j].stride) * (axes[j].size - 1);
    }
    if (equation.solvable(target)) return false;
  }
  return true;
}

// The memory that a view covers.
struct Memory {
  std::intptr_t start;
  Dims dims, strides;
  Index bytes;  // of an element
};
template <class T>
Memory memory_of(const View<T>& view) {
  return {reinterpret_cast<std::intptr_t>(view.data()), view.dims(), view.strides(), sizeof(T)};
}

// Two pieces of memory share a byte.
inline bool overlaps(const Memory& a, const Memory& b) {
  if (volume(a.dims) == 0 || volume(b.dims) == 0) return false;
  struct Range {
    Address low, high;
  };
  AddressEquation equation;
  const auto cover = [&equation](const Memory& memory) {
    Range range{memory.start, static_cast<Address>(memory.start) + memory.bytes - 1};
    for (int axis = 0; axis < memory.dims.rank; ++axis) {
      const Address step = static_cast<Address>(memory.strides[axis]) * memory.bytes;
      const Address most = memory.dims[axis] - 1;
      (step < 0 ? range.low : range.high) += step * most;
      equation.add(step, most);
    }
    equation.add(1, memory.bytes - 1);
    return range;
  };
  const Range ra = cover(a);
  const Range rb = cover(b);
  if (ra.high < rb.low || rb.high < ra.low) return false;
  return equation.solvable(rb.high - ra.low);  // a counted from its low end, b from its high end
}

}  // namespace cenote::detail
