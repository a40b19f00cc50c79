// Gradients of small dense planes, by a pattern that is the same for every group of them (plan/pattern.hpp): cells
// gather in vectors that hold the end of a row or plane and the beginning of the next.
#if defined(CENOTE_KERNELS_PATTERNS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_PATTERNS_INL_HPP
#undef CENOTE_KERNELS_PATTERNS_INL_HPP
#else
#define CENOTE_KERNELS_PATTERNS_INL_HPP
#endif

#include <algorithm>

#include "kernels/states-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// `selects`: cells take gradients where they won; otherwise they take all of them.
template <class T, bool selects>
class Patterned {
  using D = hn::ScalableTag<T>;
  using D8 = hn::Rebind<std::uint8_t, D>;
  using V = hn::VFromD<D>;
  static constexpr Index n = vector_lanes<T>;

 public:
  static Index Tasks(const plan::Plan& plan) {
    return (plan.lanes.count / plan.pattern->lanes_of_group + plan.together - 1) / plan.together;
  }
  // before(gradients of a group) gives where to read them.
  template <class F>
  static void Run(const plan::Plan& plan, Index task, F&& before) {
    const plan::Pattern pattern = *plan.pattern;
    const auto* gy = static_cast<const T*>(plan.inputs[0].data);
    auto* gx = static_cast<T*>(plan.outputs[0].data);
    const auto run = [&](Index plane) {
      const Index output = plane * plan.inputs[0].lanes[0];
      const std::uint8_t* won = selects ? plan.winners + output : nullptr;
      T* to = gx + plane * plan.outputs[0].lanes[0];
      if (pattern.each == 1)
        Group<1>(pattern, before(gy + output), won, to);
      else
        Group<0>(pattern, before(gy + output), won, to);
    };
    const Index groups = plan.lanes.count / pattern.lanes_of_group;
    const Index end = std::min(groups, (task + 1) * plan.together);
    for (Index group = task * plan.together; group < end; ++group) run(group * pattern.planes);
    // The planes that make no group are the end of one that begins inside the last.
    const Index planes = plan.lanes.count / (pattern.lanes_of_group / pattern.planes);
    if (end == groups && groups * pattern.planes < planes) run(planes - pattern.planes);
  }

 private:
  template <int each>
  static HWY_NOINLINE void Group(const plan::Pattern& pattern, const T* HWY_RESTRICT gy,
                                 const std::uint8_t* HWY_RESTRICT won, T* HWY_RESTRICT gx) {
    const D d;
    const std::int32_t* const bases = pattern.bases;
    const std::int32_t* const ends = pattern.ends;
    const std::uint8_t* const lanes = pattern.lanes;
    const std::uint8_t* const numbers = pattern.numbers;
    const Index vectors = pattern.vectors, last = pattern.cells - n;
    Index t = 0;
    for (Index v = 0; v < vectors; ++v) {
      V sum = hn::Zero(d);
      const auto add = [&]() HWY_ATTR {
        sum = Add(sum, gy + bases[t], won + (selects ? bases[t] : 0), lanes + t * n, numbers + t * n);
        ++t;
      };
      if constexpr (each == 1) {
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
    const V gradient = hn::TableLookupLanes(hn::LoadU(d, gy), hn::IndicesFromVec(d, Widened(lane)));
    auto winner = hn::Zero(d8);
    if constexpr (selects) winner = hn::TableLookupBytes(hn::LoadU(d8, won), lane);
    const auto equal = hn::Eq(winner, hn::LoadU(d8, numbers));
#if HWY_TARGET <= HWY_AVX3
    const hn::Mask<D> chosen{static_cast<decltype(hn::Mask<D>::raw)>(equal.raw)};
    return hn::IfThenElse(chosen, hn::Add(sum, gradient), sum);  // one masked addition
#else
    const hn::RebindToSigned<D8> signed_bytes;
    const auto chosen = hn::BitCast(d, Widened(hn::BitCast(signed_bytes, hn::VecFromMask(d8, equal))));
    return hn::Add(sum, hn::And(chosen, gradient));  // a sum that begins at +0 is never -0
#endif
  }

  // Bytes in lanes as wide as T, with or without a sign.
  template <class VB>
  static HWY_INLINE auto Widened(VB bytes) {
    using B = hn::TFromV<VB>;
    using Four = std::conditional_t<std::is_signed_v<B>, std::int32_t, std::uint32_t>;
    const auto four = hn::PromoteTo(hn::Rebind<Four, D>(), bytes);
    if constexpr (sizeof(T) == 4)
      return four;
    else
      return hn::PromoteTo(hn::Rebind<std::conditional_t<std::is_signed_v<B>, std::int64_t, std::uint64_t>, D>(), four);
  }
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
