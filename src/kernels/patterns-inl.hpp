// Gradients of small dense planes, by a pattern that is the same for every group of them (plan/pattern.hpp): cells
// gather in vectors that hold the end of a row or plane and the beginning of the next.
#if defined(CENOTE_KERNELS_PATTERNS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_PATTERNS_INL_HPP
#undef CENOTE_KERNELS_PATTERNS_INL_HPP
#else
#define CENOTE_KERNELS_PATTERNS_INL_HPP
#endif

#include <algorithm>

#include "kernels/gather-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// `selects`: cells take gradients where they won; otherwise they take all of them.
template <class T, bool selects>
class Patterned {
  using C = Chooser<T>;
  using D = typename C::D;
  using D8 = typename C::D8;
  using V = hn::VFromD<D>;
  static constexpr Index n = C::n;

 public:
  static Index Tasks(const plan::Plan& plan) {
    return (plan.lanes.count / plan.pattern->lanes_of_group + plan.together - 1) / plan.together;
  }
  // before(gradients of a group) gives where to read them.
  template <class F>
  static void Run(const plan::Plan& plan, Index task, F&& before) {
    const plan::Pattern& pattern = *plan.pattern;
    const auto* gy = static_cast<const T*>(plan.inputs[0].data);
    auto* gx = static_cast<T*>(plan.outputs[0].data);
    const auto run = [&](Index plane) {
      const Index output = plane * plan.inputs[0].lanes[0];
      const std::uint8_t* won = selects ? plan.winners + output : nullptr;
      T* to = gx + plane * plan.outputs[0].lanes[0];
      if (pattern.bases.size() == pattern.ends.size())
        Group<true>(pattern, before(gy + output), won, to);
      else
        Group<false>(pattern, before(gy + output), won, to);
    };
    const Index groups = plan.lanes.count / pattern.lanes_of_group;
    const Index end = std::min(groups, (task + 1) * plan.together);
    for (Index group = task * plan.together; group < end; ++group) run(group * pattern.planes);
    // The planes that make no group are the end of one that begins inside the last.
    const Index planes = plan.lanes.count / (pattern.lanes_of_group / pattern.planes);
    if (end == groups && groups * pattern.planes < planes) run(planes - pattern.planes);
  }

 private:
  // `one`: every vector has one term.
  template <bool one>
  static HWY_NOINLINE void Group(const plan::Pattern& pattern, const T* HWY_RESTRICT gy,
                                 const std::uint8_t* HWY_RESTRICT won, T* HWY_RESTRICT gx) {
    const D d;
    const std::int32_t* const bases = pattern.bases.data();
    const std::int32_t* const ends = pattern.ends.data();
    const std::uint8_t* const lanes = pattern.lanes.data();
    const std::uint8_t* const numbers = pattern.numbers.data();
    const auto vectors = static_cast<Index>(pattern.ends.size());
    const Index last = pattern.cells - n;
    Index t = 0;
    for (Index v = 0; v < vectors; ++v) {
      V sum = hn::Zero(d);
      const auto add = [&]() HWY_ATTR {
        sum = Add(sum, gy + bases[t], won + (selects ? bases[t] : 0), lanes + t * n, numbers + t * n);
        ++t;
      };
      if constexpr (one) {
        add();
      } else {
        for (const Index end = ends[v]; t < end;) add();
      }
      hn::StoreU(sum, d, gx + HWY_MIN(v * n, last));
    }
  }

  static HWY_INLINE V Add(V sum, const T* gy, const std::uint8_t* won, const std::uint8_t* lanes,
                          const std::uint8_t* numbers) {
    const D d;
    const D8 d8;
    const auto lane = hn::LoadU(d8, lanes);
    const V gradient = hn::TableLookupLanes(hn::LoadU(d, gy), hn::IndicesFromVec(d, C::Widened(lane)));
    auto winner = hn::Zero(d8);
    if constexpr (selects) winner = hn::TableLookupBytes(hn::LoadU(d8, won), lane);
    return C::Add(sum, gradient, C::Numbers(winner), C::Winners(numbers));
  }
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
