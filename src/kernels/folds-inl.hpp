// Long rows of windows that are whole and consist of the same blocks: `plan.folds` has split their axis into blocks of
// neighbouring cells (the last axis) and rows of blocks (the one before it). A vector of blocks side by side is
// transposed and reduced in registers; windows merge the few pieces that come of it.
#if defined(CENOTE_KERNELS_FOLDS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_FOLDS_INL_HPP
#undef CENOTE_KERNELS_FOLDS_INL_HPP
#else
#define CENOTE_KERNELS_FOLDS_INL_HPP
#endif

#include "kernels/finish-inl.hpp"
#include "kernels/task-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// Hands over the cells of as many rows as fill a vector side by side, `pitch` apart, in their order: use(cell, number).
template <class Raw, int inputs, class F>
HWY_INLINE void EachCell(const Raw* const (&rows)[inputs], Index pitch, Index cells, F&& use) {
  constexpr int side = square_side<Raw>;
  for (Index c = 0; c < cells;) {
    const Index begin = HWY_MIN(c, cells - side);  // the last square overlaps the one before
    Square<Raw> square[inputs];
    HWY_UNROLL(16)
    for (int i = 0; i < inputs; ++i) {
      ForeseeRows(rows[i], pitch, c);
      LoadSquare(rows[i] + begin, pitch, square[i]);
    }
    HWY_UNROLL(16)
    for (int r = 0; r < side; ++r) {
      if (begin + r < c) continue;
      hn::VFromD<hn::ScalableTag<Raw>> raw[inputs];
      HWY_UNROLL(16)
      for (int i = 0; i < inputs; ++i) raw[i] = hn::BitCast(hn::ScalableTag<Raw>(), square[i][r]);
      use(raw, begin + r);
    }
    c = begin + side;
  }
}

template <class S>
class Folds {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;
  static constexpr Index n = vector_lanes<Raw>, step = vector_lanes<Lane>;

  static Index Tasks(const plan::Plan& plan) { return TasksOfLanes(plan); }
  static void Run(const plan::Plan& plan, Index task) {
    Folds folds(plan, BlockOf(plan, task % BlocksOf(plan)));
    EachLane(plan, task, [&](const Lanes& lanes) { folds.Row(lanes); });
  }

 private:
  Folds(const plan::Plan& plan, const Block& block)
      : plan_(plan), axis_(plan.axes[0]), begin_(block.begin[0]), end_(block.end[0]), limit_(block.limit[0]) {
    // A vector of blocks may begin before the first that is needed, and never ends behind the last there is.
    origin_ = HWY_MIN(block.origin[0], axis_.in - n);
    width_ = (limit_ - origin_ + n - 1) / n * n;
    auto pieces = scratch_.Ask<Lane>(S::parts * width_);
    auto numbers = scratch_.Ask<double>(Finish<S>::Numbers(1));
    scratch_.Take();
    pieces_ = scratch_.At(pieces);
    finish_.Begin({&plan, 0, 1, axis_.kernel, axis_.kernel, 1, 1}, scratch_.At(numbers));
  }

  void Row(const Lanes& lanes) {
    const Raw* rows[S::inputs];
    for (int i = 0; i < S::inputs; ++i) {
      const plan::Operand& operand = plan_.inputs[static_cast<std::size_t>(i)];
      rows[i] = static_cast<const Raw*>(operand.data) + lanes.First(plan_.lanes, operand);
    }
    for (Index block = origin_; block < limit_; block += n) Blocks(rows, HWY_MIN(block, axis_.in - n));
    RowTarget<Raw> target;
    for (std::size_t i = 0; i < 2; ++i)
      if (plan_.outputs[i].data != nullptr)
        target.out[i] = static_cast<Raw*>(plan_.outputs[i].data) + lanes.First(plan_.lanes, plan_.outputs[i]) + begin_;
    if (plan_.winners != nullptr)
      target.winners = plan_.winners + (lanes.First(plan_.lanes, plan_.winner) + begin_) * plan_.winner_bytes;
    for (Index o = begin_; o < end_; o += step) Windows(o, target);
  }

  HWY_NOINLINE void Blocks(const Raw* const (&rows)[S::inputs], Index block) {
    constexpr int groups = static_cast<int>(n / step);
    const Index cells = plan_.axes[1].in;
    const Raw* from[S::inputs];
    for (int i = 0; i < S::inputs; ++i) from[i] = rows[i] + block * cells;
    typename S::V acc[groups][S::parts];
    EachCell<Raw>(from, cells, cells, [&](const auto& raw, Index cell) HWY_ATTR {
      HWY_UNROLL(16)
      for (int g = 0; g < groups; ++g) {
        typename S::V tap[S::parts];
        S::Tap(tap, raw, cell, g);
        Join<S>(tap, cell == 0, acc[g]);
      }
    });
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) S::Store(acc[g], pieces_ + (block - origin_) + g * step, width_);
  }

  // Windows from o on, as many as fill a vector.
  HWY_INLINE void Windows(Index o, const RowTarget<Raw>& target) const {
    typename S::V acc[S::parts];
    for (Index tap = 0; tap < axis_.kernel; ++tap) {
      HWY_ALIGN Lane taps[S::parts * step];
      for (Index l = 0; l < step; ++l) {
        const Index block = HWY_MIN(o + l, end_ - 1) * axis_.stride + tap - origin_;
        for (int part = 0; part < S::parts; ++part) taps[part * step + l] = pieces_[part * width_ + block];
      }
      typename S::V later[S::parts];
      S::Load(later, taps, step, tap * plan_.axes[1].kernel, 1);
      Join<S>(later, tap == 0, acc);
    }
    finish_.Put(plan_, acc, o - begin_, 0, end_ - begin_, target);
  }

  const plan::Plan& plan_;
  const PooledAxis& axis_;
  Index begin_, end_;         // outputs
  Index limit_, origin_ = 0;  // blocks: where they end, and begin
  Index width_ = 0;
  plan::Scratch scratch_;
  Lane* pieces_ = nullptr;
  Finish<S> finish_{};
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
