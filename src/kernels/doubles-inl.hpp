// Extremes of large windows one cell apart along rows: runs of 4, 16, 64 .. cells, each from four of the length before,
// and a window from a few runs of which the last two overlap. That some taps are merged twice changes nothing: merges
// keep the order of taps. Across the rows windows are scanned, whatever their size. Nothing is transposed.
#if defined(CENOTE_KERNELS_DOUBLES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_DOUBLES_INL_HPP
#undef CENOTE_KERNELS_DOUBLES_INL_HPP
#else
#define CENOTE_KERNELS_DOUBLES_INL_HPP
#endif

#include "kernels/finish-inl.hpp"
#include "kernels/task-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

template <class S>
class Doubles {
 public:
  using Raw = typename S::Raw;
  static constexpr Index n = vector_lanes<Raw>;

  static Index Tasks(const plan::Plan& plan) { return TasksOfLanes(plan); }
  static void Run(const plan::Plan& plan, Index task) {
    Doubles doubles(plan, BlockOf(plan, task % BlocksOf(plan)));
    EachLane(plan, task, [&](const Lanes& lanes) { doubles.Plane(lanes); });
  }

 private:
  using D = hn::ScalableTag<Raw>;
  using V = hn::VFromD<D>;

  // The outputs of a block along an axis, and the positions of their taps, be they real or not.
  struct Side {
    Side(const PooledAxis& axis, Index begin, Index end)
        : kernel(axis.kernel), stride(axis.stride), in(axis.in), outputs(end - begin), first(begin * stride - axis.low),
          count((outputs - 1) * stride + kernel) {}
    Index kernel, stride, in, outputs, first, count;
    [[nodiscard]] Index Nearest(Index i) const { return std::clamp(first + i, Index{0}, in - 1); }
    // Positions from here to there are real.
    [[nodiscard]] Index begin() const { return std::clamp(-first, Index{0}, count - 1); }
    [[nodiscard]] Index end() const { return std::clamp(in - first, Index{1}, count); }
  };

  Doubles(const plan::Plan& plan, const Block& block)
      : plan_(plan), last_(static_cast<std::size_t>(plan.rank - 1)), begin_(block.begin),
        row_(plan.axes[last_], block.begin[last_], block.end[last_]),
        column_(last_ > 0 ? plan.axes[0] : one_, block.begin[0], last_ > 0 ? block.end[0] : 1) {
    // Small planes are one long row.
    small_ = row_.count * column_.count * Index{sizeof(Raw)} <= 16384;
    pitch_ = small_ ? row_.count : (row_.count + n - 1) / n * n + n;
    const auto plane = scratch_.Ask<Raw>(column_.count * pitch_ + row_.kernel + n);
    scratch_.Take();
    plane_ = scratch_.At(plane);
  }

  void Plane(const Lanes& lanes) {
    const plan::Operand& x = plan_.inputs[0];
    const plan::Operand& y = plan_.outputs[0];
    const Raw* from = static_cast<const Raw*>(x.data) + lanes.First(plan_.lanes, x);
    Raw* to = static_cast<Raw*>(y.data) + lanes.First(plan_.lanes, y);
    for (std::size_t a = 0; a <= last_; ++a) to += begin_[a] * y.pooled[a];
    const Index x_pitch = last_ > 0 ? x.pooled[0] : 0;
    const Index y_pitch = last_ > 0 ? y.pooled[0] : 0;
    const Index top = column_.begin(), bottom = column_.end();
    bool all_ordered = true;
    for (Index r = top; r < bottom; ++r) {
      const bool ordered = CopyBetweenMargins(from + column_.Nearest(r) * x_pitch, plane_ + r * pitch_);
      all_ordered = all_ordered && ordered;
      if (!small_) Along(plane_ + r * pitch_, row_.count, ordered);
    }
    if (small_) Along(plane_ + top * pitch_, (bottom - top) * pitch_, all_ordered);
    if (small_ || column_.kernel <= 4) {
      const auto bytes = static_cast<std::size_t>(row_.outputs) * sizeof(Raw);
      for (Index r = 0; r < top; ++r) std::memcpy(plane_ + r * pitch_, plane_ + top * pitch_, bytes);
      for (Index r = bottom; r < column_.count; ++r)
        std::memcpy(plane_ + r * pitch_, plane_ + (bottom - 1) * pitch_, bytes);
      return Across(to, y_pitch, all_ordered);
    }
    WithOrder(all_ordered, [&]<bool nan>() {
      constexpr std::make_integer_sequence<int, 4> four;
      constexpr std::make_integer_sequence<int, 1> one;
      Raw* cells = plane_ + top * pitch_;
      Index c = 0;
      for (; c + 4 * n <= row_.outputs; c += 4 * n) Scan<nan>(four, cells + c, n, to + c, y_pitch);
      for (; c < row_.outputs; c += n) Scan<nan>(one, cells + c, HWY_MIN(n, row_.outputs - c), to + c, y_pitch);
    });
  }

  // The windows of `count` cells, in their place. What comes behind the last whole window is no use.
  void Along(Raw* cells, Index count, bool ordered) const {
    WithOrder(ordered, [&]<bool nan>() {
      const Index kernel = row_.kernel;
      Index run = 1;
      for (; 4 * run < kernel; run *= 4) Merge<4, nan>(cells, count - 4 * run + 1, run, 3 * run);
      WithTaps(kernel, run, [&]<int taps>() { Merge<taps, nan>(cells, count - kernel + 1, run, kernel - run); });
    });
  }

  // The windows across all rows, to the result: by runs as well, whole planes as one row.
  void Across(Raw* to, Index to_pitch, bool ordered) const {
    WithOrder(ordered, [&]<bool nan>() {
      const Index kernel = column_.kernel;
      Index run = 1;
      for (; 4 * run < kernel; run *= 4)
        Merge<4, nan>(plane_, (column_.count - 4 * run + 1) * pitch_, run * pitch_, 3 * run * pitch_);
      WithTaps(kernel, run, [&]<int taps>() {
        Raw* row = to;
        for (Index o = 0; o < column_.outputs; ++o, row += to_pitch)
          Put<taps, nan>(plane_ + o * column_.stride * pitch_, row_.outputs, run * pitch_, (kernel - run) * pitch_,
                         row);
      });
    });
  }

  // The windows across all rows of vectors v.. of columns, of which `own` lanes are wanted if it is one. Rows are cut
  // into blocks of a window's length: a window is a suffix of one block and a prefix of the next. Suffixes take the
  // place of their rows. Windows end with the plane.
  template <bool nan, int... v>
  HWY_NOINLINE void Scan(std::integer_sequence<int, v...>, Raw* cells, Index own, Raw* to, Index to_pitch) const {
    const D d;
    const Index kernel = column_.kernel;
    const Index pitch = pitch_;
    const Index rows = column_.end() - column_.begin();
    Index output = 0;
    Index first = 0;
    Index last = 0;
    const auto find = [&] {
      const Index start = output * column_.stride - column_.begin();
      first = HWY_MAX(start, Index{0});
      last = HWY_MIN(start + kernel, rows) - 1;
    };
    find();
    for (Index begin = 0; output < column_.outputs; begin += kernel) {
      const Index end = HWY_MIN(begin + kernel, rows);
      Raw* row = cells + begin * pitch;
      V prefix[] = {hn::LoadU(d, row + v * n)...};
      for (Index r = begin; r < end; ++r, row += pitch) {
        ((prefix[v] = Merged<nan>(prefix[v], hn::LoadU(d, row + v * n))), ...);  // the first row with itself
        for (; r == last && first <= begin && output < column_.outputs; ++output, to += to_pitch, find()) {
          const Raw* suffix = cells + first * pitch;
          if (first == begin)
            (Put(prefix[v], own, to + v * n), ...);
          else
            (Put(Merged<nan>(hn::LoadU(d, suffix + v * n), prefix[v]), own, to + v * n), ...);
        }
      }
      if (output == column_.outputs) return;
      row -= pitch;
      V suffix[] = {hn::LoadU(d, row + v * n)...};
      for (Index r = end - 1; r-- > begin;) {
        row -= pitch;
        ((suffix[v] = Merged<nan>(hn::LoadU(d, row + v * n), suffix[v])), ...);
        (hn::StoreU(suffix[v], d, row + v * n), ...);
      }
      for (; end == rows && output < column_.outputs; ++output, to += to_pitch, find())
        (Put(hn::LoadU(d, cells + first * pitch + v * n), own, to + v * n), ...);
    }
  }
  static HWY_INLINE void Put(V results, Index own, Raw* to) {
    if (own < n)
      StoreSome(results, D(), to, own);
    else
      hn::StoreU(results, D(), to);
  }

  // Whether there is no NaN to look for in a row or plane, for the order of numbers is cheaper to tell without. Only
  // where the instructions take the earlier of two equal ones.
  static constexpr bool can_be_ordered = HWY_ARCH_X86 && std::is_floating_point_v<Raw>;
  template <class F>
  static HWY_INLINE void WithOrder(bool ordered, F&& use) {
    if constexpr (can_be_ordered)
      if (ordered) return use.template operator()<false>();
    use.template operator()<true>();
  }

  // Runs of so many cells that make a window; the last two may overlap.
  template <class F>
  static HWY_INLINE void WithTaps(Index kernel, Index run, F&& use) {
    switch ((kernel + run - 1) / run) {
      case 1: return use.template operator()<1>();
      case 2: return use.template operator()<2>();
      case 3: return use.template operator()<3>();
      default: return use.template operator()<4>();
    }
  }

  template <bool nan>
  static HWY_INLINE V Merged(V earlier, V later) {
    if constexpr (!nan) return S::is_largest ? hn::Max(later, earlier) : hn::Min(later, earlier);
    V acc[1] = {earlier};
    const V next[1] = {later};
    S::Merge(acc, next);
    return acc[0];
  }
  // Cells `shift` apart, the last one `rest` behind the first.
  template <int taps, bool nan>
  static HWY_INLINE V Merged(const Raw* cell, Index shift, Index rest) {
    V acc = hn::LoadU(D(), cell);
    HWY_UNROLL(16)
    for (int tap = 1; tap < taps; ++tap)
      acc = Merged<nan>(acc, hn::LoadU(D(), cell + (tap + 1 < taps ? tap * shift : rest)));
    return acc;
  }
  // In place.
  template <int taps, bool nan>
  static HWY_NOINLINE void Merge(Raw* cells, Index count, Index shift, Index rest) {
    if (taps == 1) return;
    for (Index c = 0; c < count; c += n) hn::StoreU(Merged<taps, nan>(cells + c, shift, rest), D(), cells + c);
  }
  template <int taps, bool nan>
  static HWY_NOINLINE void Put(const Raw* cells, Index count, Index shift, Index rest, Raw* to) {
    if (count < n) return StoreSome(Merged<taps, nan>(cells, shift, rest), D(), to, count);
    for (Index c = 0; c < count; c += n) {
      c = HWY_MIN(c, count - n);  // the last vector may begin inside the one before
      hn::StoreU(Merged<taps, nan>(cells + c, shift, rest), D(), to + c);
    }
  }

  // Returns whether there is no NaN among them. Margins may reach into the row that is copied next.
  HWY_INLINE bool CopyBetweenMargins(const Raw* row, Raw* to) const {
    const D d;
    const auto fill = [&](Index begin, Index end) HWY_ATTR {
      const V cell = hn::Set(d, row[row_.Nearest(begin)]);
      for (Index c = begin; c < end; c += n) hn::StoreU(cell, d, to + c);
    };
    const Index begin = row_.begin(), end = row_.end();
    fill(0, begin);
    const Raw* from = row + row_.first;
    auto unordered = MaskOf<D>{};
    const auto copy = [&](Index c) HWY_ATTR {
      const V cells = hn::LoadU(d, from + c);
      if constexpr (can_be_ordered) unordered = hn::Or(unordered, hn::IsNaN(cells));
      hn::StoreU(cells, d, to + c);
    };
    if (end - begin >= n) {
      for (Index c = begin; c < end; c += n) copy(c = HWY_MIN(c, end - n));
    } else {
      for (Index c = begin; c < end; ++c) to[c] = from[c];
    }
    fill(end, row_.count);
    if constexpr (can_be_ordered) return end - begin >= n && hn::AllFalse(d, unordered);
    return false;
  }

  const plan::Plan& plan_;
  std::size_t last_;
  std::array<Index, max_rank> begin_;
  static constexpr PooledAxis one_{};
  Side row_, column_;
  bool small_ = false;
  Index pitch_ = 0;
  plan::Scratch scratch_;
  Raw* plane_ = nullptr;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
