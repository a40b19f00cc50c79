// Memory overlap of strided views, decided exactly: do two index vectors exist that name one address?
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include "cenote/view.hpp"

namespace cenote::detail {

__extension__ using Address = __int128;  // sums of stride * size never overflow here

// Solves sum(step[i] * n[i]) == target with 0 <= n[i] <= most[i] by choosing the largest step first: what remains must
// be within reach of the smaller steps, which leaves one or two choices a level for every sane layout.
class AddressEquation {
 public:
  constexpr void add(Address step, Address most) {
    if (step != 0 && most > 0) terms_[count_++] = {step < 0 ? -step : step, most};
  }

  constexpr bool solvable(Address target) {
    std::sort(terms_.begin(), terms_.begin() + static_cast<std::ptrdiff_t>(count_),
              [](const Term& a, const Term& b) { return a.step > b.step; });
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
template <class T>
constexpr bool has_distinct_elements(const View<T>& view) {
  if (view.size() == 0 || view.strides() == row_major(view.dims())) return true;
  std::array<std::pair<Index, Index>, max_rank> axes{};  // |stride| and size, ascending
  std::size_t count = 0;
  for (int a = 0; a < view.rank(); ++a) {
    const Index stride = view.strides()[a];
    if (view.dims()[a] > 1) axes[count++] = {stride < 0 ? -stride : stride, view.dims()[a]};
  }
  std::sort(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(count));
  Address span = 0;  // of the axes with smaller strides
  bool nested = true;
  for (std::size_t i = 0; i < count && nested; ++i) {
    nested = axes[i].first > span;
    span += static_cast<Address>(axes[i].first) * (axes[i].second - 1);
  }
  if (nested) return true;
  // Two indices meet: let i be the largest axis on which they differ, by 1 or more; smaller axes make up for it.
  for (std::size_t i = 0; i < count; ++i) {
    if (axes[i].first == 0) return false;
    AddressEquation equation;
    Address target = -static_cast<Address>(axes[i].first);
    equation.add(axes[i].first, axes[i].second - 2);
    for (std::size_t j = 0; j < i; ++j) {  // a difference of -(size-1) to size-1
      equation.add(axes[j].first, 2 * static_cast<Address>(axes[j].second - 1));
      target += static_cast<Address>(axes[j].first) * (axes[j].second - 1);
    }
    if (equation.solvable(target)) return false;
  }
  return true;
}

// Two views touch a common byte.
template <class A, class B>
bool overlaps(const View<A>& a, const View<B>& b) {
  if (a.size() == 0 || b.size() == 0) return false;
  struct Range {
    Address low, high;
  };
  AddressEquation equation;
  const auto cover = [&equation](const auto& view, Address bytes) {
    const auto start = static_cast<Address>(reinterpret_cast<std::intptr_t>(view.data()));
    Range range{start, start + bytes - 1};
    for (int axis = 0; axis < view.rank(); ++axis) {
      const Address step = static_cast<Address>(view.strides()[axis]) * bytes;
      const Address most = view.dims()[axis] - 1;
      (step < 0 ? range.low : range.high) += step * most;
      equation.add(step, most);
    }
    equation.add(1, bytes - 1);
    return range;
  };
  const Range ra = cover(a, sizeof(A));
  const Range rb = cover(b, sizeof(B));
  if (ra.high < rb.low || rb.high < ra.low) return false;
  return equation.solvable(rb.high - ra.low);  // a counted from its low end, b from its high end
}

}  // namespace cenote::detail
