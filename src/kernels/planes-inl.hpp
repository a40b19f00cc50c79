// Extremes of planes of which one window holds everything (global pooling), one after the other, where the cells of a
// row are neighbours: vectors stand along rows. Without NaN and -0 the order of cells is of no consequence; planes with
// one of those are left to the plainest loop there is.
#if defined(CENOTE_KERNELS_PLANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_PLANES_INL_HPP
#undef CENOTE_KERNELS_PLANES_INL_HPP
#else
#define CENOTE_KERNELS_PLANES_INL_HPP
#endif

#include "kernels/states-inl.hpp"
#include "kernels/task-inl.hpp"
#include "plan/tiny.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

template <class S>
class WholePlanes {
 public:
  static Index Tasks(const plan::Plan& plan) { return (plan.lanes.count + plan.together - 1) / plan.together; }
  static void Run(const plan::Plan& plan, Index task) {
    const Index first = task * plan.together;
    const Index stop = HWY_MIN(plan.lanes.count, first + plan.together);
    const WholePlanes planes(plan);
    for (Index lane = first; lane < stop; lane += n) planes.Group(lane, HWY_MIN(n, stop - lane));
  }

 private:
  using Raw = typename S::Raw;
  using D = hn::ScalableTag<Raw>;
  static constexpr Index n = vector_lanes<Raw>;
  static constexpr Index side_by_side = 4;

  explicit WholePlanes(const plan::Plan& plan) : plan_(plan), rank_(static_cast<std::size_t>(plan.rank)) {
    for (std::size_t a = rank_; a-- > 0; dense_ *= plan.axes[a].in)
      if (plan.inputs[0].pooled[a] != dense_ && plan.axes[a].in != 1) dense_ = 0;
    if (dense_ < n) dense_ = 0;
    columns_ = plan.axes[rank_ - 1].in;
    if (rank_ == 1) return;
    rows_ = plan.axes[rank_ - 2].in;
    pitch_ = plan.inputs[0].pooled[rank_ - 2];
  }

  // Some planes, found together: to find each by itself would take longer than to read it.
  HWY_NOINLINE void Group(Index lane, Index count) const {
    Index from[n];
    Index to[n];
    const plan::LaneBox& box = plan_.lanes;
    Lanes lanes;
    lanes.count = count;
    lanes.width = count;
    for (auto a = static_cast<std::size_t>(box.rank); a-- > 1; lane /= box.sizes[a])
      lanes.first[a] = lane % box.sizes[a];
    lanes.first[0] = lane;
    lanes.Offsets(box, plan_.inputs[0], from);
    lanes.Offsets(box, plan_.outputs[0], to);
    const Raw* const x = static_cast<const Raw*>(plan_.inputs[0].data);
    Raw* const y = static_cast<Raw*>(plan_.outputs[0].data);
    Index l = 0;
    for (; dense_ > 0 && l + side_by_side <= count; l += side_by_side) {
      const Raw* planes[side_by_side];
      Raw best[side_by_side];
      for (Index i = 0; i < side_by_side; ++i) Foresee(planes[i] = x + from[l + i]);
      if (HWY_UNLIKELY(!OfDense(planes, best)))
        for (Index i = 0; i < side_by_side; ++i) best[i] = OfAxes(planes[i], 0);
      for (Index i = 0; i < side_by_side; ++i) y[to[l + i]] = best[i];
    }
    for (; l < count; ++l) {
      const Raw* const p = x + from[l];
      Foresee(p);
      y[to[l]] = OfAxes(p, 0);
    }
  }
  // Small planes are read faster than the hardware looks ahead.
  static HWY_INLINE void Foresee(const Raw* p) {
    constexpr Index line = 64 / Index{sizeof(Raw)};
    for (Index ahead = 32; ahead < 36; ++ahead) hwy::Prefetch(p + ahead * line);
  }

  // Some planes whose cells follow each other. False: one of them holds what has an order.
  HWY_INLINE bool OfDense(const Raw* const (&planes)[side_by_side], Raw (&out)[side_by_side]) const {
    const D d;
    hn::VFromD<D> best[side_by_side];
    HWY_UNROLL(4)
    for (Index i = 0; i < side_by_side; ++i) best[i] = hn::LoadU(d, planes[i]);
    auto odd = MaskOf<D>{};
    for (Index c = 0; c < dense_; c += n) {
      const Index at = HWY_MIN(c, dense_ - n);
      HWY_UNROLL(4)
      for (Index i = 0; i < side_by_side; ++i) {
        const auto cells = hn::LoadU(d, planes[i] + at);
        odd = hn::Or(odd, TellsOrder(d, cells));
        best[i] = S::is_largest ? hn::Max(cells, best[i]) : hn::Min(cells, best[i]);
      }
    }
    HWY_UNROLL(4)
    for (Index i = 0; i < side_by_side; ++i)
      out[i] = hn::GetLane(S::is_largest ? hn::MaxOfLanes(d, best[i]) : hn::MinOfLanes(d, best[i]));
    return hn::AllFalse(d, odd);
  }

  // Of the axes from `a` on. As everywhere, the last NaN and the first of equal cells are chosen.
  Raw OfAxes(const Raw* p, std::size_t a) const {
    if (a + 2 >= rank_) return OfPlane(p);
    Raw best = OfAxes(p, a + 1);
    for (Index i = 1; i < plan_.axes[a].in; ++i) {
      const Raw later = OfAxes(p + i * plan_.inputs[0].pooled[a], a + 1);
      if (later != later || best == best) best = later != later ? later : plan::tiny_better<S::is_largest>(best, later);
    }
    return best;
  }
  HWY_INLINE Raw OfPlane(const Raw* p) const {
    const D d;
    const auto one_by_one = [&] { return plan::tiny_extreme<S::is_largest>(p, {rows_, columns_, pitch_, 1}); };
    // Rows that follow each other are one.
    const bool one = pitch_ == columns_;
    const Index rows = one ? 1 : rows_, columns = one ? rows_ * columns_ : columns_, pitch = pitch_;
    if (columns < n) return one_by_one();
    hn::VFromD<D> best = hn::LoadU(d, p);
    auto odd = MaskOf<D>{};
    for (Index r = 0; r < rows; ++r) {
      const Raw* const row = p + r * pitch;
      for (Index c = 0; c < columns; c += n) {
        const auto cells = hn::LoadU(d, row + HWY_MIN(c, columns - n));
        odd = hn::Or(odd, TellsOrder(d, cells));
        best = S::is_largest ? hn::Max(cells, best) : hn::Min(cells, best);
      }
    }
    if (HWY_UNLIKELY(!hn::AllFalse(d, odd))) return one_by_one();
    return hn::GetLane(S::is_largest ? hn::MaxOfLanes(d, best) : hn::MinOfLanes(d, best));
  }

  const plan::Plan& plan_;
  std::size_t rank_;
  Index dense_ = 1;  // cells of a plane, if they follow each other and fill a vector, or 0
  Index rows_ = 1, columns_ = 1, pitch_ = 0;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
