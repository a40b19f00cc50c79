// Sums of planes of which one window holds everything (global pooling). Running sums take the cells in turn and are
// added in pairs at the end: in this order in every layout, be the cells of a plane neighbours or the lanes.
#if defined(CENOTE_KERNELS_TOTALS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_TOTALS_INL_HPP
#undef CENOTE_KERNELS_TOTALS_INL_HPP
#else
#define CENOTE_KERNELS_TOTALS_INL_HPP
#endif

#include <cstring>

#include "kernels/finish-inl.hpp"
#include "kernels/task-inl.hpp"
#include "kernels/winners-inl.hpp"
#include "plan/scratch.hpp"
#include "plan/tiny.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

template <class S>
class Totals {
 public:
  static Index Tasks(const plan::Plan& plan) { return (plan.lanes.count + plan.together - 1) / plan.together; }
  static void Run(const plan::Plan& plan, Index task) {
    Totals totals(plan);
    const Index first = task * plan.together;
    const auto l = static_cast<std::size_t>(plan.lanes.rank - 1);
    EachRunOfLanes(plan, first, HWY_MIN(plan.lanes.count, first + plan.together),
                   [&](const LanePlaces& places, Index, Index count) {
                     totals.Lanes(static_cast<const Raw*>(plan.inputs[0].data) + places.in, plan.inputs[0].lanes[l],
                                  count, static_cast<Raw*>(plan.outputs[0].data) + places.out,
                                  plan.outputs[0].lanes[l]);
                   });
  }

 private:
  using T = typename S::Scalar;
  using Raw = typename S::Raw;
  using D = typename S::D;
  using V = typename S::V;
  static constexpr Index n = vector_lanes<double>;
  static constexpr Index running = plan::running_totals;
  static constexpr int parts = static_cast<int>(running / n);  // vectors of the running sums of a plane
  static constexpr int planes = 4;                             // added side by side
  static constexpr Index chunk = 512;                          // lanes
  static_assert(running % n == 0 && chunk % planes == 0);

  explicit Totals(const plan::Plan& plan) : plan_(plan), rank_(static_cast<std::size_t>(plan.rank)) {
    for (std::size_t a = 0; a < rank_; ++a) cells_ *= plan.axes[a].in;
    columns_ = plan.axes[rank_ - 1].in;
    Index behind = 1;
    for (std::size_t a = rank_; a-- > 0; behind *= plan.axes[a].in)
      dense_ = dense_ && (plan.inputs[0].pooled[a] == behind || plan.axes[a].in == 1);
    const auto offsets = scratch_.Ask<Index>(dense_ ? 0 : cells_);
    const auto buffer = scratch_.Ask<Raw>(dense_ ? 0 : planes * cells_);
    const auto sums = scratch_.Ask<double>(dense_ ? 0 : running * chunk);
    const auto numbers = scratch_.Ask<double>(Finish<S>::Numbers(1));
    scratch_.Take();
    buffer_ = scratch_.At(buffer);
    sums_ = scratch_.At(sums);
    if (!dense_) {
      Index* offset = offsets_ = scratch_.At(offsets);
      std::array<Index, max_rank> at{};
      do {
        *offset = 0;
        for (std::size_t a = 0; a < rank_; ++a) *offset += at[a] * plan.inputs[0].pooled[a];
        ++offset;
      } while (Next(at, rank_, [&](std::size_t a) { return plan.axes[a].in; }));
    }
    Index real = 1, padded = 1;
    for (std::size_t a = 0; a + 1 < rank_; ++a) {
      real *= plan.axes[a].taps[0].count;
      padded *= plan.axes[a].taps[0].padded;
    }
    finish_.Begin({&plan, 0, 1, real, padded, 1, n}, scratch_.At(numbers));
  }

  // Neighbouring lanes, `step` apart, to results that are `out_step` apart.
  HWY_NOINLINE void Lanes(const Raw* from, Index step, Index count, Raw* out, Index out_step) const {
    HWY_ALIGN double sums[chunk + n];
    HWY_ALIGN Raw results[chunk];
    const bool by_lanes = step == 1 && !dense_ && count >= n;
    for (Index begin = 0; begin < count; begin += chunk) {
      const Index now = HWY_MIN(chunk, count - begin);
      if (by_lanes && now >= n) {
        OfLanes(from + begin, now, sums);
      } else {
        OfPlanes(from + begin * step, step, now, sums);
      }
      Raw* const to = out + begin * out_step;
      const RowTarget<Raw> target{{out_step == 1 ? to : results, nullptr}, nullptr};
      for (Index l = 0; l < now; l += n) {
        const V sum[1] = {hn::LoadU(D(), sums + l)};
        finish_.Put(plan_, sum, l, 0, now, target);
      }
      for (Index l = 0; out_step != 1 && l < now; ++l) to[l * out_step] = results[l];
    }
  }

  // Lanes that are neighbours: one running sum after the other, so that rows of lanes are read as they lie.
  HWY_NOINLINE void OfLanes(const Raw* from, Index lanes, double* to) const {
    const D d;
    for (Index i = 0; i < running; ++i) {
      double* const sums = sums_ + i * chunk;
      Index l = 0;
      for (; l + 4 * n <= lanes; l += 4 * n) AddLanes<4>(from + l, i, sums + l);
      for (; l < lanes; l += n) {
        l = HWY_MIN(l, lanes - n);  // the last ones may begin inside those before
        AddLanes<1>(from + l, i, sums + l);
      }
    }
    for (Index l = 0; l < lanes; l += n) {
      const double* const at = sums_ + l;
      const auto pair = [&](Index i) HWY_ATTR {
        return hn::Add(hn::LoadU(d, at + i * chunk), hn::LoadU(d, at + (i + running / 2) * chunk));
      };
      hn::StoreU(hn::Add(hn::Add(pair(0), pair(2)), hn::Add(pair(1), pair(3))), d, to + l);
    }
  }
  template <int vectors>
  HWY_INLINE void AddLanes(const Raw* from, Index cell, double* to) const {
    const D d;
    V sums[vectors];
    HWY_UNROLL(4)
    for (int v = 0; v < vectors; ++v) sums[v] = hn::Zero(d);
    for (; cell < cells_; cell += running) {
      const Raw* const p = from + offsets_[cell];
      HWY_UNROLL(4)
      for (int v = 0; v < vectors; ++v) sums[v] = hn::Add(sums[v], LoadWide<T>(d, p + v * n));
    }
    HWY_UNROLL(4)
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[v], d, to + v * n);
  }

  // One plane after the other.
  void OfPlanes(const Raw* from, Index step, Index count, double* sums) const {
    for (Index l = 0; l < count; l += planes) {
      const Raw* p[planes];
      for (int i = 0; i < planes; ++i) {
        const Raw* const plane = from + HWY_MIN(l + i, count - 1) * step;
        // Small planes are read faster than the hardware looks ahead.
        if (cells_ * Index{sizeof(Raw)} <= 512)
          for (Index c = 0; c < cells_; c += 64 / Index{sizeof(Raw)})
            hwy::Prefetch(plane + 3072 / Index{sizeof(Raw)} + c);
        p[i] = dense_ ? plane : Gathered(plane, buffer_ + i * cells_);
      }
      AddPlanes(p, sums + l);
    }
  }
  // The cells of a plane side by side.
  const Raw* Gathered(const Raw* plane, Raw* to) const {
    if (plan_.inputs[0].pooled[rank_ - 1] == 1)
      for (Index c = 0; c < cells_; c += columns_)
        std::memcpy(to + c, plane + offsets_[c], static_cast<std::size_t>(columns_) * sizeof(Raw));
    else
      for (Index c = 0; c < cells_; ++c) to[c] = plane[offsets_[c]];
    return to;
  }
  HWY_INLINE void AddPlanes(const Raw* const (&from)[planes], double* to) const {
    const D d;
    const Index cells = cells_;
    V sums[planes][parts];
    HWY_UNROLL(4)
    for (int i = 0; i < planes; ++i) {
      HWY_UNROLL(4)
      for (int v = 0; v < parts; ++v) sums[i][v] = hn::Zero(d);
    }
    const auto add = [&](int i, const Raw* p) HWY_ATTR {
      HWY_UNROLL(4)
      for (int v = 0; v < parts; ++v) sums[i][v] = hn::Add(sums[i][v], LoadWide<T>(d, p + v * n));
    };
    Index cell = 0;
    for (; cell + running <= cells; cell += running) {
      HWY_UNROLL(4)
      for (int i = 0; i < planes; ++i) add(i, from[i] + cell);
    }
    if (cell == cells) {
    } else if constexpr (HWY_TARGET <= HWY_AVX3 && std::is_same_v<T, float>) {
      const hn::Rebind<float, D> df;
      const auto there = hn::FirstN(df, static_cast<std::size_t>(cells - cell));
      HWY_UNROLL(4)
      for (int i = 0; i < planes; ++i)
        sums[i][0] = hn::Add(sums[i][0], hn::PromoteTo(d, hn::MaskedLoad(there, df, from[i] + cell)));
    } else {
      HWY_ALIGN Raw rest[planes][running] = {};
      for (Index c = cell; c < cells; ++c) {
        HWY_UNROLL(4)
        for (int i = 0; i < planes; ++i) rest[i][c - cell] = from[i][c];
      }
      HWY_UNROLL(4)
      for (int i = 0; i < planes; ++i) add(i, rest[i]);
    }
    HWY_UNROLL(4)
    for (int i = 0; i < planes; ++i) to[i] = Folded(sums[i]);
  }
  // The running sums of one plane in pairs: those half of them apart first.
  static HWY_INLINE double Folded(const V (&sums)[parts]) {
    const D d;
    if constexpr (parts == 4)
      return Halves(d, hn::Add(hn::Add(sums[0], sums[2]), hn::Add(sums[1], sums[3])));
    else if constexpr (parts == 2)
      return Halves(d, hn::Add(sums[0], sums[1]));
    else
      return Halves(d, sums[0]);
  }
  template <class DV>
  static HWY_INLINE double Halves(DV d, hn::VFromD<DV> v) {
    if constexpr (hn::MaxLanes(DV()) == 2) {
      return hn::GetLane(v) + hn::GetLane(hn::UpperHalf(hn::Half<DV>(), v));
    } else {
      const hn::Half<DV> half;
      return Halves(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  }

  const plan::Plan& plan_;
  std::size_t rank_;
  Index cells_ = 1, columns_ = 1;
  bool dense_ = true;  // the cells of a plane follow each other
  plan::Scratch scratch_;
  Raw* buffer_ = nullptr;
  double* sums_ = nullptr;
  Index* offsets_ = nullptr;  // of every cell
  Finish<S> finish_{};
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
