// Planes of which one window holds everything (global pooling), where the cells of a plane are neighbours: a vector of
// planes side by side, transposed and reduced in registers.
#if defined(CENOTE_KERNELS_WHOLE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_WHOLE_INL_HPP
#undef CENOTE_KERNELS_WHOLE_INL_HPP
#else
#define CENOTE_KERNELS_WHOLE_INL_HPP
#endif

#include "kernels/finish-inl.hpp"
#include "kernels/task-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// to[cell * n + row]: the cells of as many rows as fill a vector, `pitch` apart, side by side. There are at least 16
// bytes of them.
template <class Raw>
HWY_INLINE void TransposeCells(const Raw* rows, Index pitch, Index cells, Raw* to) {
  const hn::ScalableTag<Bits<Raw>> d;
  constexpr Index n = vector_lanes<Raw>;
  constexpr int side = square_side<Raw>;
  for (Index c = 0; c < cells; c += side) {
    const Index begin = HWY_MIN(c, cells - side);  // the last square overlaps the one before
    ForeseeRows(rows, pitch, c);
    Square<Raw> square;
    LoadSquare(rows + begin, pitch, square);
    HWY_UNROLL(16)
    for (int r = 0; r < side; ++r) hn::StoreU(square[r], d, reinterpret_cast<Bits<Raw>*>(to) + (begin + r) * n);
  }
}

// So few that loading the next ones goes on while these are added up.
inline constexpr Index cells_at_once = 64;

template <class S>
class Whole {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;
  static constexpr Index n = vector_lanes<Raw>;

  // The last task takes what is less than a task too: its last group may begin inside the one before, and no two tasks
  // may write the same cell.
  static Index Tasks(const plan::Plan& plan) { return HWY_MAX(Index{1}, plan.lanes.count / plan.together); }
  static void Run(const plan::Plan& plan, Index task) {
    const Index first = task * plan.together;
    const Index stop = task + 1 == Tasks(plan) ? plan.lanes.count : first + plan.together;
    Whole whole(plan);
    for (Index lane = first; lane < stop; lane += n) whole.Group(HWY_MIN(lane, stop - n));
  }

 private:
  static constexpr int groups = static_cast<int>(n / vector_lanes<Lane>);
  using Piece = typename S::V[groups][S::parts];

  explicit Whole(const plan::Plan& plan)
      : plan_(plan), rank_(static_cast<std::size_t>(plan.rank)), multiplier_(MultipliersOf(plan)) {
    for (std::size_t a = 0; a < rank_; ++a) cells_ *= plan.axes[a].in;
    const Index columns = plan.axes[rank_ - 1].in;
    chunk_ = HWY_MAX(Index{1}, cells_at_once / columns) * columns;
    buffer_ = scratch_.Ask<Raw>((chunk_ + 16 / Index{sizeof(Raw)}) * n);
    numbers_ = scratch_.Ask<double>(Finish<S>::Numbers(1));
    scratch_.Take();
    Index real = 1, padded = 1;
    for (std::size_t a = 0; a + 1 < rank_; ++a) {
      real *= plan.axes[a].taps[0].count;
      padded *= plan.axes[a].taps[0].padded;
    }
    finish_.Begin({&plan, 0, 1, real, padded, 1, n}, scratch_.At(numbers_));
  }

  static HWY_INLINE void Assign(Piece& to, const Piece& from) {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) {
      HWY_UNROLL(16)
      for (int part = 0; part < S::parts; ++part) to[g][part] = from[g][part];
    }
  }

  HWY_NOINLINE void Group(Index lane) {
    const Index pitch = plan_.inputs[0].lanes[0];
    const std::size_t last = rank_ - 1;
    const Index columns = plan_.axes[last].in;
    const Index first = plan_.axes[last].taps[0].first;
    Piece plane;
    Index line = 0;
    const std::size_t outer = rank_ > 1 ? rank_ - 2 : 0;
    const Index lines = rank_ > 1 ? plan_.axes[outer].in : 1;
    const Index line_first = rank_ > 1 ? plan_.axes[outer].taps[0].first : 0;
    const Index multiplier = rank_ > 1 ? multiplier_[outer] : 0;
    plane_ = 0;
    const Raw* const rows = static_cast<const Raw*>(plan_.inputs[0].data) + lane * pitch;
    Raw* const buffer = scratch_.At(buffer_);
    for (Index begin = 0; begin < cells_; begin += chunk_) {
      const Index stop = HWY_MIN(cells_, begin + chunk_);
      const Index from = HWY_MIN(begin, cells_ - 16 / Index{sizeof(Raw)});  // squares are whole
      TransposeCells(rows + from, pitch, stop - from, buffer);
      const Raw* cell = buffer + (begin - from) * n;
      for (const Raw* const end = buffer + (stop - from) * n; cell != end;) {
        Piece row;
        HWY_UNROLL(16)
        for (int g = 0; g < groups; ++g) S::First(row[g], cell + g * vector_lanes<Lane>, 0, first, 1);
        cell += n;
        for (Index column = 1; column < columns; ++column, cell += n) {
          HWY_UNROLL(16)
          for (int g = 0; g < groups; ++g) {
            typename S::V tap[S::parts];
            S::First(tap, cell + g * vector_lanes<Lane>, 0, first + column, 1);
            S::Merge(row[g], tap);
          }
        }
        JoinAll(row, line, (line_first + line) * multiplier, plane);
        if (++line < lines) continue;
        line = 0;
        if (rank_ > 2) EndPlane(plane);
      }
    }
    if (rank_ > 2) Assign(plane, planes_[0]);
    Put(plane, lane);
  }
  // The piece at `position` of an axis joins those before it.
  static HWY_INLINE void JoinAll(const Piece& piece, Index position, Index number, Piece& to) {
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) {
      typename S::V later[S::parts];
      HWY_UNROLL(16)
      for (int part = 0; part < S::parts; ++part) later[part] = piece[g][part];
      S::Shift(later, number);
      Join<S>(later, position == 0, to[g]);
    }
  }
  // A plane of the last two axes is complete: it joins those before it, as do the pieces of the axes that end with it.
  HWY_NOINLINE void EndPlane(const Piece& plane) {
    Index at = plane_++;
    const Piece* piece = &plane;
    for (std::size_t a = rank_ - 2; a-- > 0;) {
      const plan::PooledAxis& axis = plan_.axes[a];
      JoinAll(*piece, at % axis.in, (axis.taps[0].first + at % axis.in) * multiplier_[a], planes_[a]);
      if ((at + 1) % axis.in != 0) return;
      piece = &planes_[a];
      at /= axis.in;
    }
  }
  HWY_INLINE void Put(const Piece& plane, Index lane) const {
    RowTarget<Raw> target;
    for (std::size_t i = 0; i < 2; ++i)
      if (plan_.outputs[i].data != nullptr) target.out[i] = static_cast<Raw*>(plan_.outputs[i].data) + lane;
    if (plan_.winners != nullptr) target.winners = plan_.winners + lane * plan_.winner_bytes;
    HWY_UNROLL(16)
    for (int g = 0; g < groups; ++g) finish_.Put(plan_, plane[g], g * vector_lanes<Lane>, 0, n, target);
  }

  const plan::Plan& plan_;
  std::size_t rank_;
  std::array<Index, max_rank> multiplier_;
  Index cells_ = 1, chunk_ = 1, plane_ = 0;
  plan::Scratch scratch_;
  plan::Scratch::Array<Raw> buffer_{};
  plan::Scratch::Array<double> numbers_{};
  Finish<S> finish_{};
  Piece planes_[max_rank];  // what the axes from each on have come to
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
