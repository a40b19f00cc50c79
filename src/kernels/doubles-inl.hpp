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
    quick_ = IsQuick();
    // Rows of cells between margins, and of runs.
    quick_pitch_ = (row_.count + 2 * n - 1) / n * n;
    const auto rows = scratch_.Ask<Raw>(quick_ ? 2 * column_.outputs * quick_pitch_ + 4 * n : 0);
    const auto runs = scratch_.Ask<Raw>(quick_ ? column_.in * row_.in : 0);
    scratch_.Take();
    plane_ = scratch_.At(plane);
    rows_ = scratch_.At(rows);
    runs_ = scratch_.At(runs);
    if (quick_) std::fill_n(rows_, column_.outputs * quick_pitch_ + 2 * n, Worst());  // margins stay as they are
  }

  void Plane(const Lanes& lanes) {
    const plan::Operand& x = plan_.inputs[0];
    const plan::Operand& y = plan_.outputs[0];
    const Raw* from = static_cast<const Raw*>(x.data) + lanes.First(plan_.lanes, x);
    Raw* to = static_cast<Raw*>(y.data) + lanes.First(plan_.lanes, y);
    for (std::size_t a = 0; a <= last_; ++a) to += begin_[a] * y.pooled[a];
    const Index x_pitch = last_ > 0 ? x.pooled[0] : 0;
    const Index y_pitch = last_ > 0 ? y.pooled[0] : 0;
    if constexpr (std::is_floating_point_v<Raw>)
      if (quick_ && QuickPlane(from, x_pitch, to, y_pitch)) return;
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

  // Small planes in one block, of windows one cell apart, without NaN and -0: then the order of cells is of no
  // consequence, and columns come first, which need no margins. Runs of four cells; the last of a window overlaps the
  // one before.
  [[nodiscard]] bool IsQuick() const {
    if (!std::is_floating_point_v<Raw> || last_ != 1 || column_.stride != 1 || row_.in < n || column_.in < 4)
      return false;
    if (row_.outputs != plan_.axes[1].out || column_.outputs != plan_.axes[0].out) return false;
    return row_.count * column_.count * Index{sizeof(Raw)} <= 32768;
  }
  static Raw Worst() {
    constexpr Raw infinity = std::numeric_limits<Raw>::infinity();
    return S::is_largest ? -infinity : infinity;
  }

  // False: there is something odd among the cells, and nothing has been done.
  HWY_NOINLINE bool QuickPlane(const Raw* x, Index x_pitch, Raw* y, Index y_pitch) const {
    const D d;
    const Index in = row_.in, rows = column_.in;
    auto odd = MaskOf<D>{};
    // Down the columns, a vector of them at a time: each run is two pairs.
    for (Index c = 0; c < in; c += n) {
      const Index column = HWY_MIN(c, in - n);
      const Raw* from = x + column;
      Raw* to = runs_ + column;
      const auto load = [&](Index r) HWY_ATTR {
        const V cells = hn::LoadU(d, from + r * x_pitch);
        odd = hn::Or(odd, TellsOrder(d, cells));
        return cells;
      };
      const V second = load(1);
      V earlier = Merged<false>(load(0), second);  // the pair two rows before the one that comes next
      V later = load(2);
      V middle = Merged<false>(second, later);
      for (Index r = 3; r < rows; ++r, to += in) {
        const V cells = load(r);
        const V newest = Merged<false>(later, cells);
        hn::StoreU(Merged<false>(earlier, newest), d, to);
        earlier = middle;
        middle = newest;
        later = cells;
      }
    }
    if (HWY_UNLIKELY(!hn::AllFalse(d, odd))) return false;
    // Windows of rows, between margins.
    Raw* const between = rows_ + row_.begin();
    for (Index o = 0; o < column_.outputs; ++o) {
      const Index start = HWY_MAX(o + column_.first, Index{0});
      const Index end = HWY_MIN(o + column_.first + column_.kernel, rows);
      Raw* const to = between + o * quick_pitch_;
      const bool few = end - start < 4;
      const Raw* const first = few ? x + start * x_pitch : runs_ + start * in;
      const Index step = few ? x_pitch : 4 * in;
      const Raw* const last = few ? x + (end - 1) * x_pitch : runs_ + (end - 4) * in;
      const Index taps = few ? end - start : (end - start + 3) / 4;
      for (Index c = 0; c < in; c += n) {
        const Index column = HWY_MIN(c, in - n);
        V best = hn::LoadU(d, last + column);
        for (Index t = 0; t + 1 < taps; ++t) best = Merged<false>(best, hn::LoadU(d, first + t * step + column));
        hn::StoreU(best, d, to + column);
      }
    }
    // Along all rows at once.
    Raw* const fours = rows_ + column_.outputs * quick_pitch_ + 2 * n;
    const Index all = column_.outputs * quick_pitch_;
    for (Index c = 0; c < all; c += n) {
      const Raw* p = rows_ + c;
      const V low = Merged<false>(hn::LoadU(d, p), hn::LoadU(d, p + 1));
      hn::StoreU(Merged<false>(low, Merged<false>(hn::LoadU(d, p + 2), hn::LoadU(d, p + 3))), d, fours + c);
    }
    WithTaps((row_.kernel + 3) / 4, 1, [&]<int taps>() {
      const Index kernel = row_.kernel, outputs = row_.outputs;
      for (Index o = 0; o < column_.outputs; ++o) {
        const Raw* const row = fours + o * quick_pitch_;
        for (Index c = 0; c < outputs; c += n) {
          const Raw* const p = row + HWY_MIN(c, outputs - n);
          V best = hn::LoadU(d, p + kernel - 4);
          HWY_UNROLL(4)
          for (int t = 0; t + 1 < taps; ++t) best = Merged<false>(best, hn::LoadU(d, p + 4 * t));
          if (taps == 4)
            for (Index t = 3; 4 * t < kernel - 4; ++t) best = Merged<false>(best, hn::LoadU(d, p + 4 * t));
          hn::StoreU(best, d, y + o * y_pitch + HWY_MIN(c, outputs - n));
        }
      }
    });
    return true;
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
  bool quick_ = false;
  Index quick_pitch_ = 0;
  Raw *rows_ = nullptr, *runs_ = nullptr;
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
