// Sums of large windows one cell apart along rows, at a cost that hardly depends on their size. Across rows a window is
// a suffix of one block of rows and a prefix of the next; along a row it consists of runs of 4, 16, 64 .. cells, each
// of which is four of the length before. Nothing is subtracted, so that NaN, infinities and large values stay inside
// their windows (A5), and nothing is transposed: lanes that are neighbours are a wider cell. The order of additions
// depends on the geometry alone: blocks begin at multiples of a window's length.
#if defined(CENOTE_KERNELS_RUNS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_RUNS_INL_HPP
#undef CENOTE_KERNELS_RUNS_INL_HPP
#else
#define CENOTE_KERNELS_RUNS_INL_HPP
#endif

#include "kernels/finish-inl.hpp"
#include "kernels/task-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

template <class S>
class Runs {
 public:
  using Raw = typename S::Raw;
  using Lane = typename S::Lane;

  static Index Tasks(const plan::Plan& plan) {
    return plan.rows ? TasksOfLanes(plan) : plan.lanes.count / Inner(plan) * BlocksOf(plan);
  }
  static void Run(const plan::Plan& plan, Index task) {
    Runs runs(plan, BlockOf(plan, task % BlocksOf(plan)));
    if (plan.rows) return EachLane(plan, task, [&](const Lanes& lanes) { runs.Plane(lanes); });
    // Lanes that are neighbours are a task together: the last group of them may begin inside the one before.
    const Index groups = (Inner(plan) + plan.together - 1) / plan.together;
    const Index first = task / BlocksOf(plan) * groups;
    for (Index group = first; group < first + groups; ++group) runs.Plane(Lanes::OfGroup(plan, plan.together, group));
  }

 private:
  using D = typename S::D;
  using V = typename S::V;
  static constexpr Index n = vector_lanes<Lane>;
  static constexpr int most_levels = 12, most_terms = 3 * most_levels;

  static Index Inner(const plan::Plan& plan) {
    return HWY_MAX(Index{1}, plan.lanes.sizes[static_cast<std::size_t>(plan.lanes.rank - 1)]);
  }

  Runs(const plan::Plan& plan, const Block& block)
      : plan_(plan), last_(static_cast<std::size_t>(plan.rank - 1)), block_(block), axis_(plan.axes[last_]),
        width_(plan.rows ? 1 : plan.together), columns_(block.end[last_] - block.begin[last_]),
        cells_(block.limit[last_] - block.origin[last_]), count_((columns_ + axis_.kernel - 1) * width_) {
    lead_ = (block.origin[last_] - (block.begin[last_] - axis_.low)) * width_;
    size_ = cells_ * width_;
    while (levels_ + 1 < most_levels && Index{4} << (2 * levels_) <= axis_.kernel) ++levels_;
    plan::Scratch::Array<Lane> asked[most_levels + 1];
    for (int l = 0; l <= levels_; ++l) asked[l] = scratch_.Ask<Lane>(count_ + 8 * n);
    const auto raw = scratch_.Ask<Raw>(size_);
    const auto finished = scratch_.Ask<Raw>(columns_);
    const auto numbers = scratch_.Ask<double>(Finish<S>::Numbers(columns_));
    const auto prefix = scratch_.Ask<Lane>(last_ > 0 ? size_ + n : 0);
    pitch_ = (size_ + n - 1) / n * n;
    const auto suffixes = scratch_.Ask<Lane>(last_ > 0 ? plan.axes[0].kernel * pitch_ : 0);
    scratch_.Take();
    for (int l = 0; l <= levels_; ++l) level_[l] = scratch_.At(asked[l]);
    raw_ = scratch_.At(raw);
    finished_ = scratch_.At(finished);
    numbers_ = scratch_.At(numbers);
    prefix_ = scratch_.At(prefix);
    suffixes_ = scratch_.At(suffixes);
    // A window is as many of the longest runs as fit, then of the next shorter ones, and so on.
    Index at = 0;
    for (int l = levels_; l >= 0; --l)
      for (; axis_.kernel - at >= Index{1} << (2 * l); at += Index{1} << (2 * l))
        terms_[term_count_++] = level_[l] + at * width_;
    std::fill_n(level_[0], count_ + 8 * n, Lane{});  // margins stay as they are
  }

  void Plane(const Lanes& lanes) {
    const plan::Operand& x = plan_.inputs[0];
    const plan::Operand& y = plan_.outputs[0];
    in_ = static_cast<const Raw*>(x.data) + lanes.First(plan_.lanes, x) + block_.origin[last_] * x.pooled[last_];
    out_ = static_cast<Raw*>(y.data) + lanes.First(plan_.lanes, y) + block_.begin[last_] * y.pooled[last_];
    if (last_ == 0) {
      Read(0);
      Lane* to = level_[0] + lead_;
      for (Index i = 0; i < size_; i += n) hn::StoreU(LoadWide<typename S::Scalar>(D(), raw_ + i), D(), to + i);
      Clear(to + size_);
      return Along(0, 1, 1);
    }
    base_ = -1;
    for (Index o = block_.begin[0]; o < block_.end[0]; ++o) {
      const Taps& window = plan_.axes[0].taps[o];
      Across(window.start, window.start + window.count - 1);
      Along(o * y.pooled[0], window.count, window.padded);
    }
  }

  // A row of the input: its cells, side by side.
  void Read(Index row) {
    const plan::Operand& x = plan_.inputs[0];
    const Raw* from = in_ + (last_ > 0 ? row * x.pooled[0] : 0);
    const Index stride = x.pooled[last_];
    if (stride == width_) {
      std::memcpy(raw_, from, static_cast<std::size_t>(size_) * sizeof(Raw));
    } else if (width_ > 1) {
      for (Index c = 0; c < cells_; ++c)
        std::memcpy(raw_ + c * width_, from + c * stride, static_cast<std::size_t>(width_) * sizeof(Raw));
    } else {
      for (Index c = 0; c < cells_; ++c) raw_[c] = from[c * stride];
    }
  }
  // What a last vector has written behind the cells.
  static HWY_INLINE void Clear(Lane* behind) { hn::StoreU(hn::Zero(D()), D(), behind); }

  // The sums of rows first .. last, cell by cell, to the first level.
  void Across(Index first, Index last) {
    const D d;
    const Index kernel = plan_.axes[0].kernel;
    const Index base = (first + kernel - 1) / kernel * kernel;
    if (base != base_) {
      base_ = base;
      next_ = base;
      Suffixes(first, HWY_MIN(base, plan_.axes[0].in));
      std::fill_n(prefix_, size_ + n, Lane{});
    }
    Lane* const to = level_[0] + lead_;
    Lane* const prefix = prefix_;
    const Raw* const raw = raw_;
    const Index size = size_;
    for (; next_ < last; ++next_) {
      Read(next_);
      for (Index i = 0; i < size; i += n) hn::StoreU(Plus(raw + i, prefix + i), d, prefix + i);
    }
    const bool adds = next_ == last;
    if (adds) {
      Read(last);
      ++next_;
    }
    const Lane* suffix = suffixes_ + (first + kernel - base) * pitch_;
    if (first == base) {
      for (Index i = 0; i < size; i += n) {
        const V sum = adds ? Plus(raw + i, prefix + i) : hn::LoadU(d, prefix + i);
        hn::StoreU(sum, d, prefix + i);
        hn::StoreU(sum, d, to + i);
      }
    } else if (adds) {
      for (Index i = 0; i < size; i += n) {
        const V sum = Plus(raw + i, prefix + i);
        hn::StoreU(sum, d, prefix + i);
        hn::StoreU(hn::Add(hn::LoadU(d, suffix + i), sum), d, to + i);
      }
    } else if (base <= last) {
      for (Index i = 0; i < size; i += n)
        hn::StoreU(hn::Add(hn::LoadU(d, suffix + i), hn::LoadU(d, prefix + i)), d, to + i);
    } else {  // where the rows end before the block does
      for (Index i = 0; i < size; i += n) hn::StoreU(hn::LoadU(d, suffix + i), d, to + i);
    }
    Clear(to + size);
  }
  // Of the block that ends with row end-1: the sums from each row on, back to `first`.
  void Suffixes(Index first, Index end) {
    const D d;
    const Index kernel = plan_.axes[0].kernel, size = size_, pitch = pitch_;
    const Raw* const raw = raw_;
    Lane* to = suffixes_ + (end - 1 + kernel - base_) * pitch;
    for (Index row = end; row-- > first; to -= pitch) {
      Read(row);
      if (row == end - 1)
        for (Index i = 0; i < size; i += n) hn::StoreU(LoadWide<typename S::Scalar>(d, raw + i), d, to + i);
      else
        for (Index i = 0; i < size; i += n) hn::StoreU(Plus(raw + i, to + pitch + i), d, to + i);
    }
  }
  static HWY_INLINE V Plus(const Raw* cells, const Lane* sums) {
    return hn::Add(LoadWide<typename S::Scalar>(D(), cells), hn::LoadU(D(), sums));
  }

  // The windows of the first level to a row of results.
  void Along(Index row, Index real, Index padded) {
    for (int l = 0; l < levels_; ++l) {
      const Index shift = width_ << (2 * l);
      Lengthen(level_[l], shift, count_ - 3 * shift, level_[l + 1]);
    }
    finish_.Begin({&plan_, block_.begin[last_], columns_, real, padded, plan_.rows ? 1 : columns_, width_}, numbers_);
    const Index stride = plan_.outputs[0].pooled[last_];
    RowTarget<Raw> target;
    target.out[0] = out_ + row;
    const Finish<S> finish = finish_;  // a copy that no store can reach
    const Index columns = columns_, width = width_;
    if (!plan_.rows) {
      for (Index c = 0; c < columns; ++c, target.out[0] += stride)
        for (Index lane = 0; lane < width; lane += n) {
          V sum[1][1];
          Windows(c * width + lane, sum);
          finish.Put(plan_, sum[0], lane, c, width, target);
        }
      return;
    }
    if (stride != 1) target.out[0] = finished_;
    for (Index c = 0; c < columns; c += 4 * n) {
      V sums[4][1];
      Windows(c, sums);
      HWY_UNROLL(4)
      for (int v = 0; v < 4; ++v) finish.Put(plan_, sums[v], c + v * n, 0, columns, target);
    }
    for (Index c = 0; stride != 1 && c < columns; ++c) out_[row + c * stride] = finished_[c];
  }
  // Runs four times as long.
  static HWY_NOINLINE void Lengthen(const Lane* from, Index shift, Index count, Lane* to) {
    const D d;
    for (Index i = 0; i < count; i += 2 * n) {
      V sums[2];
      HWY_UNROLL(2)
      for (int v = 0; v < 2; ++v) {
        const Lane* run = from + i + v * n;
        const V two = hn::Add(hn::LoadU(d, run), hn::LoadU(d, run + shift));
        sums[v] = hn::Add(two, hn::Add(hn::LoadU(d, run + 2 * shift), hn::LoadU(d, run + 3 * shift)));
      }
      HWY_UNROLL(2)
      for (int v = 0; v < 2; ++v) hn::StoreU(sums[v], d, to + i + v * n);
    }
  }
  // The windows that begin with lane i of the row, and with those of some vectors that follow.
  template <int vectors>
  HWY_INLINE void Windows(Index i, V (&sums)[vectors][1]) const {
    HWY_UNROLL(4)
    for (int v = 0; v < vectors; ++v) sums[v][0] = hn::LoadU(D(), terms_[0] + i + v * n);
    for (Index t = 1; t < term_count_; ++t) {
      const Lane* from = terms_[t] + i;
      HWY_UNROLL(4)
      for (int v = 0; v < vectors; ++v) sums[v][0] = hn::Add(sums[v][0], hn::LoadU(D(), from + v * n));
    }
  }

  const plan::Plan& plan_;
  std::size_t last_;
  Block block_;
  const PooledAxis& axis_;
  Index width_;                            // lanes of a cell
  Index columns_;                          // results of a row
  Index cells_;                            // of a row that there are
  Index count_;                            // lanes of a row with its margins
  Index lead_ = 0, size_ = 0, pitch_ = 0;  // lanes of the first margin, of the cells, and from suffix to suffix
  int levels_ = 0;
  plan::Scratch scratch_;
  Lane* level_[most_levels + 1] = {};  // sums of the runs of 4^l cells from each on
  const Lane* terms_[most_terms] = {};
  Index term_count_ = 0;
  Raw* raw_ = nullptr;
  Raw* finished_ = nullptr;
  double* numbers_ = nullptr;
  Lane* prefix_ = nullptr;    // the sums of rows base_ .. next_-1
  Lane* suffixes_ = nullptr;  // those of the block before, of the rows from each on
  Index base_ = -1, next_ = 0;
  Finish<S> finish_{};
  const Raw* in_ = nullptr;
  Raw* out_ = nullptr;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
