// Gradients gathered by the cells that were chosen, in vectors of cells or of lanes: for windows so small that few of
// them hold a cell.
#if defined(CENOTE_KERNELS_GATHER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_GATHER_INL_HPP
#undef CENOTE_KERNELS_GATHER_INL_HPP
#else
#define CENOTE_KERNELS_GATHER_INL_HPP
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/lanes-inl.hpp"
#include "kernels/winners-inl.hpp"
#include "plan/scratch.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// A window that holds a cell: where its gradient and its winner lie, and the number that names the cell in it.
struct Seen {
  Index gradient, winner, number;
};

// The windows that hold each cell of a box of axes, in row-major order of cells and then of windows: those of cell i
// are entries end[i-1] .. end[i]-1.
class SeenLists {
 public:
  void Ask(const plan::Plan& plan, plan::Scratch& scratch, std::size_t from, std::size_t to, const PullTask& task) {
    from_ = from;
    axes_ = to - from;
    begin_ = from == 0 && axes_ > 0 ? task.begin : 0;
    Index listed = 1;
    for (std::size_t a = 0; a < axes_; ++a) {
      const plan::PooledAxis& axis = plan.axes[from + a];
      cells_[a] = from + a == 0 ? task.end - task.begin : axis.out;
      Index sum = 0;
      for (Index i = 0; i < cells_[a]; ++i) sum += axis.taps[i + Begin(a)].count;
      listed *= sum;
      count_ *= cells_[a];
    }
    ends_ = scratch.Ask<Index>(count_);
    seen_ = scratch.Ask<Seen>(listed);
  }
  // Numbers count in units of `scale`.
  void Fill(const plan::Plan& plan, const plan::Scratch& scratch, Index scale) {
    end_ = scratch.At(ends_);
    list_ = scratch.At(seen_);
    std::array<Index, max_rank> cell{};
    Index listed = 0;
    for (Index c = 0; c < count_; ++c) {
      std::array<Index, max_rank> tap{};
      const auto windows = [&](std::size_t a) { return plan.axes[from_ + a].taps[cell[a] + Begin(a)].count; };
      bool more = true;
      for (std::size_t a = 0; a < axes_; ++a) more = more && windows(a) > 0;
      while (more) {
        Seen seen{};
        for (std::size_t a = 0; a < axes_; ++a) {
          const plan::PooledAxis& axis = plan.axes[from_ + a];
          const Axis& source = axis.source;
          const Index i = cell[a] + Begin(a);
          const Index o = axis.taps[i].start + tap[a] * axis.step;
          seen.gradient += o * plan.inputs[0].pooled[from_ + a];
          seen.winner += o * plan.winner.pooled[from_ + a];
          seen.number = seen.number * source.kernel + (i - source.position(o, 0)) / source.dilation;
        }
        seen.number *= scale;
        list_[listed++] = seen;
        more = Next(tap, axes_, windows);
      }
      end_[c] = listed;
      Next(cell, axes_, [&](std::size_t a) { return cells_[a]; });
    }
  }
  [[nodiscard]] Index cells() const { return count_; }
  [[nodiscard]] const Seen* begin(Index cell) const { return list_ + (cell == 0 ? 0 : end_[cell - 1]); }
  [[nodiscard]] const Seen* end(Index cell) const { return list_ + end_[cell]; }

 private:
  [[nodiscard]] Index Begin(std::size_t a) const { return a == 0 ? begin_ : 0; }

  std::size_t from_ = 0, axes_ = 0;
  Index begin_ = 0, count_ = 1;
  std::array<Index, max_rank> cells_{};
  plan::Scratch::Array<Index> ends_{};
  plan::Scratch::Array<Seen> seen_{};
  Index* end_ = nullptr;
  Seen* list_ = nullptr;
};

// Results that no cache will hold until they are read again go past the caches: then memory does not send what is about
// to be overwritten. Every vector from `first` on must be aligned, and rows of `width` whole vectors.
inline constexpr Index stream_bytes = Index{32} << 20;
template <class T>
bool Streams(const plan::Plan& plan, const T* first, Index width) {
  constexpr Index n = vector_lanes<T>;
  const plan::Operand& to = plan.outputs[0];
  const auto fits = [](Index stride) { return stride == 1 || stride % n == 0; };
  bool whole = reinterpret_cast<std::uintptr_t>(first) % (n * sizeof(T)) == 0 && width % n == 0;
  Index bytes = plan.lanes.count * Index{sizeof(T)};
  for (int a = 0; a < plan.rank; ++a) {
    bytes *= plan.axes[static_cast<std::size_t>(a)].out;
    whole = whole && fits(to.pooled[static_cast<std::size_t>(a)]);
  }
  for (int a = 0; a < plan.lanes.rank; ++a) whole = whole && fits(to.lanes[static_cast<std::size_t>(a)]);
  return whole && bytes >= stream_bytes;
}
template <class D>
HWY_INLINE void Put(hn::VFromD<D> v, D d, hn::TFromD<D>* to, bool stream) {
  if (stream)
    hn::Stream(v, d, to);
  else
    hn::StoreU(v, d, to);
}

// Adds gradients where one-byte winners have a certain number. Winners are compared as bytes where masks have one bit
// per lane whatever its size, and else in lanes as wide as the gradients.
template <class T>
struct Chooser {
  static constexpr bool bytes = HWY_TARGET <= HWY_AVX3;
  using Number = std::conditional_t<bytes, std::uint8_t, Bits<T>>;
  static constexpr Index n = vector_lanes<T>;
  using D = hn::ScalableTag<T>;
  using DN = hn::Rebind<Number, D>;
  using D8 = hn::Rebind<std::uint8_t, D>;
  // No winner has this number, nor is it the mark of none: plan::max_compared_taps sees to that.
  static constexpr Number nobody = static_cast<Number>(-2);

  static HWY_INLINE hn::VFromD<DN> Winners(const std::uint8_t* winners) { return Numbers(hn::LoadU(D8(), winners)); }
  static HWY_INLINE hn::VFromD<DN> Numbers(hn::VFromD<D8> read) {
    if constexpr (bytes)
      return read;
    else
      return Widened(read);
  }
  // Bytes in lanes as wide as the gradients.
  static HWY_INLINE auto Widened(hn::VFromD<D8> read) {
    const auto four = hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), read);
    if constexpr (sizeof(T) == 4)
      return four;
    else
      return hn::PromoteTo(hn::Rebind<std::uint64_t, D>(), four);
  }

  static HWY_INLINE hn::VFromD<D> Add(hn::VFromD<D> sum, const T* gradients, const std::uint8_t* winners,
                                      hn::VFromD<DN> number) {
    return Add(sum, hn::LoadU(D(), gradients), Winners(winners), number);
  }
  static HWY_INLINE hn::VFromD<D> Add(hn::VFromD<D> sum, hn::VFromD<D> gradient, hn::VFromD<DN> winner,
                                      hn::VFromD<DN> number) {
    const auto equal = hn::Eq(winner, number);
    if constexpr (bytes) {  // this becomes one masked addition
      const hn::Mask<D> chosen{static_cast<decltype(hn::Mask<D>::raw)>(equal.raw)};
      return hn::IfThenElse(chosen, hn::Add(sum, gradient), sum);
    } else {  // a sum that begins at +0 is never -0: adding +0 does not change it
      return hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(D(), equal), gradient));
    }
  }
};

// The taps of the last axis by the phase r that they reach: cell stride * j + r is tap number(r, i) of output
// j + shift(r, i), i counting outputs upwards.
struct TapLists {
  static constexpr Index most = plan::max_row_taps;
  Index stride = 1;
  std::array<Index, 4> counts{};
  Index numbers[4][most], shifts[4][most];

  explicit TapLists(const Axis& axis) : stride(axis.stride) {
    for (Index t = axis.kernel; t-- > 0;) {
      const Index far = axis.padding.low - t * axis.dilation;  // stride * shift = far + r
      const Index r = (stride - far % stride) % stride;
      const auto phase = static_cast<std::size_t>(r);
      numbers[r][counts[phase]] = t;
      shifts[r][counts[phase]++] = (far + r) / stride;
    }
  }
  // Calls use(shift, number) for every tap.
  template <class F>
  void Each(F&& use) const {
    for (std::size_t r = 0; r < counts.size(); ++r)
      for (Index i = 0; i < counts[r]; ++i) use(shifts[r][i], numbers[r][i]);
  }
};

// The same for the compiler, without dilation; and the lists as they are, for what it does not know.
template <int kernel, int stride_, int low>
struct FixedTaps {
  static constexpr int stride = stride_;
  const Index lift;  // low padding beyond `low` moves all outputs
  explicit FixedTaps(const TapLists& lists) : lift(lists.shifts[0][0] - shift(0, 0)) {}
  static constexpr Index count(int r) { return (kernel - 1 - least(r) + stride) / stride; }
  static constexpr Index number(int r, Index i) { return least(r) + (count(r) - 1 - i) * stride; }
  static constexpr Index shift(int r, Index i) { return (r + low - number(r, i)) / stride; }
  static constexpr int phase_of(int tap) { return (tap + (stride - 1) * low) % stride; }
  static constexpr Index shift_of(int tap) { return (phase_of(tap) + low - tap) / stride; }

 private:
  static constexpr Index least(int r) { return (r + low) % stride; }
};
template <int stride_>
struct ListedTaps {
  static constexpr int stride = stride_;
  static constexpr Index lift = 0;
  const TapLists& lists;
  explicit ListedTaps(const TapLists& given) : lists(given) {}
  [[nodiscard]] Index count(int r) const { return lists.counts[static_cast<std::size_t>(r)]; }
  [[nodiscard]] Index number(int r, Index i) const { return lists.numbers[r][i]; }
  [[nodiscard]] Index shift(int r, Index i) const { return lists.shifts[r][i]; }
};

// Puts vectors of every stride-th cell in order: cell c comes from lane c / stride of vector c % stride.
template <class T, int stride>
class Weave {
  static constexpr Index n = vector_lanes<T>;
  using D = hn::ScalableTag<T>;
  using N = Bits<T>;
  using DN = hn::ScalableTag<N>;
  struct Tables {
    alignas(64) N lanes[stride * n];
    alignas(64) N phases[stride * n];
  };
  static constexpr Tables tables = [] {
    Tables out{};
    for (Index c = 0; c < stride * n; ++c) {
      out.lanes[c] = static_cast<N>(c / stride);
      out.phases[c] = static_cast<N>(c % stride);
    }
    return out;
  }();

 public:
  static HWY_INLINE hn::VFromD<D> Row(const hn::VFromD<D> (&sums)[stride], int m) {
    if constexpr (stride == 1) {
      return sums[0];
    } else {
      const auto lanes = hn::IndicesFromVec(D(), hn::Load(DN(), tables.lanes + m * n));
      const auto phases = hn::Load(DN(), tables.phases + m * n);
      auto row = hn::TableLookupLanes(sums[0], lanes);
      HWY_UNROLL(4)
      for (int r = 1; r < stride; ++r) {
        const auto here = hn::RebindMask(D(), hn::Eq(phases, hn::Set(DN(), static_cast<N>(r))));
        row = hn::IfThenElse(here, hn::TableLookupLanes(sums[r], lanes), row);
      }
      return row;
    }
  }
};

// Cells of the last axis gather from the windows that hold them, vectors of cells at a time. What lies beyond a row of
// outputs is read as well, and ignored: numbers that nobody has stand in its lanes.
template <class T>
class RowGather {
  using C = Chooser<T>;
  using D = typename C::D;
  using Number = typename C::Number;
  static constexpr Index n = C::n;

 public:
  static void Run(const plan::Plan& plan, const PullTask& task) { RowGather(plan, task).Run(); }

 private:
  static constexpr Index most_windows = TapLists::most;  // of the other axes

  // A window's row of gradients, of winners, and the numbers of its taps.
  struct Source {
    const T* gradients;
    const std::uint8_t* winners;
    const Number* numbers;
  };
  // A row of cells, or a piece of one.
  struct RowShape {
    Index cells = 0;
    Index begin = 0, end = 0;         // vectors
    Index last = 0;                   // where the last one begins, as the others do at multiples of their length
    const Index* tables = nullptr;    // where each of them finds its numbers
    const TapLists* lists = nullptr;  // what they are made of
    bool stream = false;
    // Vectors begin at cell stride * First(v).
    [[nodiscard]] HWY_INLINE Index First(Index v) const { return HWY_MIN(v * n, last); }
  };
  using RowFunction = void (*)(const RowShape& row, const Source* sources, Index windows, T* to);

  RowGather(const plan::Plan& plan, const PullTask& task)
      : plan_(plan), task_(task), last_(static_cast<std::size_t>(plan.rank - 1)), inner_(plan.axes[last_].source),
        lists_(inner_) {}

  // Windows of a few common shapes have functions of their own.
  void Choose() {
    const Index k = inner_.kernel, s = inner_.stride, low = inner_.padding.low;
    if (inner_.dilation == 1) {
      if (k == 2 && s == 2 && low % 2 == 0) return Square<2, FixedTaps<2, 2, 0>>();
      if (k == 3 && s == 2 && low % 2 == 0) return Square<3, FixedTaps<3, 2, 0>>();
      if (k == 3 && s == 2) return Square<3, FixedTaps<3, 2, 1>>();
      if (k == 3 && s == 1) return Square<3, FixedTaps<3, 1, 0>>();
      if (k == 4 && s == 4 && low % 4 == 0) return Fixed<FixedTaps<4, 4, 0>>();
    }
    switch (s) {
      case 1: return functions_.fill(&GatherRow<0, ListedTaps<1>>);
      case 2: return functions_.fill(&GatherRow<0, ListedTaps<2>>);
      case 3: return functions_.fill(&GatherRow<0, ListedTaps<3>>);
      default: return functions_.fill(&GatherRow<0, ListedTaps<4>>);
    }
  }
  template <class Taps>
  void Fixed() {
    functions_ = {&GatherRow<0, Taps>, &GatherRow<1, Taps>, &GatherRow<2, Taps>, &GatherRow<3, Taps>};
  }
  // Windows of two axes that are alike.
  template <int k, class Taps>
  void Square() {
    Fixed<Taps>();
    if (last_ != 1) return;
    const Axis& rows = plan_.axes[0].source;
    if (rows.kind != Axis::Kind::sliding || rows.kernel != k || rows.stride != Taps::stride || rows.dilation != 1)
      return;
    sweep_ = &RowGather::template SweepLane<k, Taps>;
    narrow_ = {&RowGather::template SweepNarrowLane<k, Taps, 1>, &RowGather::template SweepNarrowLane<k, Taps, 2>};
  }

  void Run() {
    Choose();
    const Index s = inner_.stride;
    const bool flat = last_ == 0;
    RowShape shape;
    shape.cells = flat ? task_.end : inner_.in;
    shape.begin = (flat ? task_.begin : 0) / (s * n);
    shape.end = (shape.cells + s * n - 1) / (s * n);
    // The last vector may begin inside the one before, if that is of this task: nothing is masked then.
    const bool overlaps = shape.cells % s == 0 && shape.cells / s - n >= shape.begin * n;
    shape.last = overlaps ? shape.cells / s - n : (shape.end - 1) * n;
    shape.lists = &lists_;
    shape.stream = Streams(plan_, static_cast<const T*>(plan_.outputs[0].data), inner_.in);
    if (sweep_ != nullptr && !shape.stream && task_.begin == 0 && task_.end == plan_.axes[0].out && shape.end <= 2)
      sweep_ = narrow_[static_cast<std::size_t>(shape.end - 1)];
    Index lowest = inner_.in, highest = -inner_.in;
    lists_.Each([&](Index shift, Index) {
      lowest = std::min(lowest, shift);
      highest = std::max(highest, shift);
    });
    reads_ = {shape.begin * n + lowest, shape.end * n + highest};
    // Vectors that look at outputs that do not exist have tables of their own.
    const auto at_edge = [&](Index v) {
      return shape.First(v) + lowest < 0 || shape.First(v) + n + highest > inner_.out;
    };
    Index tables = 1;
    for (Index v = shape.begin; v < shape.end; ++v) tables += at_edge(v) ? 1 : 0;
    Index box = inner_.kernel, windows = 1;
    for (std::size_t a = 0; a < last_; ++a) {
      box *= plan_.axes[a].source.kernel;
      windows *= plan_.axes[a].kernel;
    }

    plan::Scratch scratch;
    const std::size_t row_axis = last_ - (flat ? 0 : 1);
    if (sweep_ == nullptr) {
      slabs_.Ask(plan_, scratch, 0, row_axis, task_);
      rows_.Ask(plan_, scratch, row_axis, last_, task_);
    }
    const auto numbers = scratch.Ask<Number>(tables * box * n);
    const auto table_of = scratch.Ask<Index>(shape.end - shape.begin);
    const auto row_of_gradients = scratch.Ask<T>(windows * reads_.size());
    const auto row_of_winners = scratch.Ask<std::uint8_t>(windows * reads_.size());
    const auto row_of_sums = scratch.Ask<T>(sweep_ == nullptr ? 0 : 3 * (shape.end - shape.begin) * s * n);
    scratch.Take();
    if (sweep_ == nullptr) {
      slabs_.Fill(plan_, scratch, (flat ? 1 : plan_.axes[row_axis].source.kernel) * inner_.kernel * n);
      rows_.Fill(plan_, scratch, inner_.kernel * n);
    }
    copied_gradients_ = scratch.At(row_of_gradients);
    copied_winners_ = scratch.At(row_of_winners);
    sums_ = scratch.At(row_of_sums);
    shape.tables = scratch.At(table_of);
    Number* table = scratch.At(numbers);
    for (Index i = 0; i < box * n; ++i) table[i] = static_cast<Number>(i / n);
    Index edges = 0;
    for (Index v = shape.begin; v < shape.end; ++v) {
      scratch.At(table_of)[v - shape.begin] = at_edge(v) ? ++edges * box * n : 0;
      if (!at_edge(v)) continue;
      Number* own = table + edges * box * n;
      std::fill_n(own, box * n, C::nobody);
      lists_.Each([&](Index shift, Index tap) {
        for (Index l = 0; l < n; ++l) {
          const Index o = shape.First(v) + l + shift;
          if (o < 0 || o >= inner_.out) continue;
          for (Index number = tap; number < box; number += inner_.kernel)
            own[number * n + l] = static_cast<Number>(number);
        }
      });
    }

    EachRunOfLanes(plan_, task_.first, task_.stop, [&](const LanePlaces& places, Index at, Index count) {
      const auto l = static_cast<std::size_t>(plan_.lanes.rank - 1);
      for (Index lane = 0; lane < count; ++lane) {
        const T* gy = static_cast<const T*>(plan_.inputs[0].data) + places.in + lane * plan_.inputs[0].lanes[l];
        const std::uint8_t* won = plan_.winners + places.won + lane * plan_.winner.lanes[l];
        T* gx = static_cast<T*>(plan_.outputs[0].data) + places.out + lane * plan_.outputs[0].lanes[l];
        FindRoom(at + lane);
        FindEnd(gx, count - lane);
        if (sweep_ != nullptr)
          (this->*sweep_)(shape, {gy, won, table}, gx);
        else
          GatherLane(shape, {gy, won, table}, gx);
      }
    });
    if (shape.stream) hwy::FlushStream();
  }

  HWY_NOINLINE void GatherLane(const RowShape& shape, const Source lane, T* gx) {
    const plan::Span room = room_;
    const Index row_stride = last_ == 0 ? 0 : plan_.outputs[0].pooled[last_ - 1];
    if (last_ > 0) gx += task_.begin * plan_.outputs[0].pooled[0];
    std::array<Index, max_rank> cell{};
    for (Index slab = 0; slab < slabs_.cells(); ++slab) {
      T* to = gx;
      for (std::size_t a = 0; a + 1 < last_; ++a) to += cell[a] * plan_.outputs[0].pooled[a];
      if (last_ > 1)
        Next(cell, last_ - 1, [&](std::size_t a) { return a == 0 ? task_.end - task_.begin : plan_.axes[a].out; });
      const Seen* const far_begin = slabs_.begin(slab);
      const Seen* const far_end = slabs_.end(slab);
      const Seen* near_begin = rows_.begin(0);
      for (Index row = 0; row < rows_.cells(); ++row, to += row_stride) {
        const Seen* const near_end = rows_.end(row);
        Source sources[most_windows];
        Index windows = 0;
        for (const Seen* far = far_begin; far != far_end; ++far)
          for (const Seen* near = near_begin; near != near_end; ++near, ++windows) {
            const Index winner = far->winner + near->winner;
            Source& source = sources[windows];
            source.gradients = lane.gradients + far->gradient + near->gradient;
            source.winners = lane.winners + winner;
            source.numbers = lane.numbers + far->number + near->number;
            if (HWY_UNLIKELY(winner < room.begin || winner >= room.end)) Copy(source, windows);
          }
        near_begin = near_end;
        functions_[windows <= 3 ? static_cast<std::size_t>(windows) : 0](shape, sources, windows, to);
      }
    }
  }

  // Row after row of outputs, each read once: what they send to rows that are not complete yet is carried on.
  template <int k, class Taps>
  HWY_NOINLINE void SweepLane(const RowShape& shape, const Source& lane, T* gx) {
    constexpr int s = Taps::stride;
    constexpr int kept = k - s;
    const D d;
    const Taps taps(*shape.lists);
    const Axis& axis = plan_.axes[0].source;
    const Index vectors = shape.end;
    const Index row_stride = plan_.outputs[0].pooled[0];
    const Index* const tables = shape.tables;
    const bool stream = shape.stream;
    std::fill_n(sums_, kept * vectors * s * n, T{});
    T* const nowhere = sums_ + kept * vectors * s * n;  // for rows that are not of this task
    const Index reach = task_.begin + axis.padding.low;
    Index o = reach < k ? 0 : (reach - k) / s + 1;
    for (Index row = o * s - axis.padding.low; row < task_.end; ++o, row += s) {
      Source source = lane;
      if (HWY_LIKELY(o < axis.out)) {
        const Index winner = o * plan_.winner.pooled[0];
        source.gradients += o * plan_.inputs[0].pooled[0];
        source.winners += winner;
        if (HWY_UNLIKELY(winner < room_.begin || winner >= room_.end)) Copy(source, 0);
      } else {
        Nothing(source);
      }
      T* to[s];
      HWY_UNROLL(4)
      for (int r = 0; r < s; ++r)
        to[r] = row + r >= task_.begin && row + r < task_.end ? gx + (row + r) * row_stride : nowhere;
      for (Index v = 0; v < vectors; ++v) {
        const Index first = shape.First(v);
        const T* gradients = source.gradients + first + taps.lift;
        const std::uint8_t* winners = source.winners + first + taps.lift;
        const Number* numbers = source.numbers + tables[v];
        T* const carried = sums_ + v * s * n;
        hn::VFromD<D> sums[k][s];
        HWY_UNROLL(4)
        for (int r = 0; r < k; ++r) {
          HWY_UNROLL(4)
          for (int p = 0; p < s; ++p)
            sums[r][p] = r < kept ? hn::LoadU(d, carried + (r * vectors * s + p) * n) : hn::Zero(d);
        }
        const auto number_of = [&](int number) HWY_ATTR { return hn::Load(typename C::DN(), numbers + number * n); };
        AddTaps<k, k - 1, Taps>(gradients, winners, number_of, sums);
        HWY_UNROLL(4)
        for (int r = 0; r < s; ++r) PutCells<s>(sums[r], to[r] + first * s, shape.cells - first * s, stream);
        HWY_UNROLL(4)
        for (int r = s; r < k; ++r) {
          HWY_UNROLL(4)
          for (int p = 0; p < s; ++p) hn::StoreU(sums[r][p], d, carried + ((r - s) * vectors * s + p) * n);
        }
      }
    }
  }
  // The same for whole planes of so few vectors to a row that what is carried on stays in registers. A row's last
  // vector runs over into the rows that are written next, as long as there are some.
  template <int k, class Taps, int vectors>
  HWY_NOINLINE void SweepNarrowLane(const RowShape& shape, const Source& lane, T* gx) {
    constexpr int s = Taps::stride;
    constexpr int kept = k - s;
    const D d;
    const Taps taps(*shape.lists);
    const Axis& axis = plan_.axes[0].source;
    const Index row_stride = plan_.outputs[0].pooled[0];
    const Index gradient_stride = plan_.inputs[0].pooled[0], winner_stride = plan_.winner.pooled[0];
    const Index rows = axis.in, outs = axis.out, cells = shape.cells;
    const plan::Span room = room_;
    const T* const end = end_;
    Index firsts[vectors];
    const Number* numbers[vectors];
    HWY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) {
      firsts[v] = shape.First(v);
      numbers[v] = lane.numbers + shape.tables[v];
    }
    hn::VFromD<typename C::DN> known[k * k];
    HWY_UNROLL(9)
    for (int i = 0; i < k * k; ++i) known[i] = hn::Load(typename C::DN(), numbers[0] + i * n);
    hn::VFromD<D> sums[vectors][k][s];
    HWY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) {
      HWY_UNROLL(4)
      for (int r = 0; r < k; ++r) {
        HWY_UNROLL(4)
        for (int p = 0; p < s; ++p) sums[v][r][p] = hn::Zero(d);
      }
    }
    const T* gradients = lane.gradients;
    Index at = 0;
    for (Index o = 0, row = -axis.padding.low; row < rows;
         ++o, row += s, at += winner_stride, gradients += gradient_stride) {
      if (HWY_LIKELY(o < outs)) {
        const T* from = gradients;
        const std::uint8_t* winners = lane.winners + at;
        if (HWY_UNLIKELY(at < room.begin || at >= room.end)) {
          Source source{from, winners, nullptr};
          Copy(source, 0);
          from = source.gradients;
          winners = source.winners;
        }
        HWY_UNROLL(2)
        for (int v = 0; v < vectors; ++v) {
          const auto number_of = [&](int number) HWY_ATTR {
            return vectors == 1 ? known[number] : hn::Load(typename C::DN(), numbers[v] + number * n);
          };
          AddTaps<k, k - 1, Taps>(from + firsts[v] + taps.lift, winners + firsts[v] + taps.lift, number_of, sums[v]);
        }
      }
      // Rows that are complete.
      HWY_UNROLL(4)
      for (int r = 0; r < s; ++r) {
        HWY_UNROLL(2)
        for (int v = 0; v < vectors; ++v) {
          if (row + r < 0 || row + r >= rows) continue;
          PutCells<s>(sums[v][r], gx + (row + r) * row_stride + firsts[v] * s, cells - firsts[v] * s, end);
        }
      }
      HWY_UNROLL(2)
      for (int v = 0; v < vectors; ++v) {
        HWY_UNROLL(4)
        for (int r = 0; r < k; ++r) {
          HWY_UNROLL(4)
          for (int p = 0; p < s; ++p) sums[v][r][p] = r < kept ? sums[v][HWY_MIN(r + s, k - 1)][p] : hn::Zero(d);
        }
      }
    }
  }
  // Tap `t` and those before it of a window of every row.
  template <int k, int t, class Taps, class NumberOf>
  static HWY_INLINE void AddTaps(const T* gradients, const std::uint8_t* winners, NumberOf&& number_of,
                                 hn::VFromD<D> (&sums)[k][Taps::stride]) {
    constexpr int p = Taps::phase_of(t);
    const auto gradient = hn::LoadU(D(), gradients + Taps::shift_of(t));
    const auto winner = C::Winners(winners + Taps::shift_of(t));
    HWY_UNROLL(4)
    for (int r = 0; r < k; ++r) sums[r][p] = C::Add(sums[r][p], gradient, winner, number_of(r * k + t));
    if constexpr (t > 0) AddTaps<k, t - 1, Taps>(gradients, winners, number_of, sums);
  }
  // Vectors of every s-th cell, of which `left` are still to come.
  template <int s>
  static HWY_INLINE void PutCells(const hn::VFromD<D> (&sums)[s], T* to, Index left, bool stream) {
    HWY_UNROLL(4)
    for (int m = 0; m < s; ++m) {
      const auto cells = Weave<T, s>::Row(sums, m);
      if (HWY_LIKELY(left >= n * s))
        Put(cells, D(), to + m * n, stream);
      else
        hn::BlendedStore(cells, hn::FirstN(D(), static_cast<std::size_t>(std::clamp(left - m * n, Index{0}, n))), D(),
                         to + m * n);
    }
  }

  // The same where what lies between the row and `end` is written later.
  template <int s>
  static HWY_INLINE void PutCells(const hn::VFromD<D> (&sums)[s], T* to, Index left, const T* end) {
    HWY_UNROLL(4)
    for (int m = 0; m < s; ++m) {
      const Index more = left - m * n;
      if (more <= 0) return;
      const auto cells = Weave<T, s>::Row(sums, m);
      if (HWY_LIKELY(more >= n || to + (m + 1) * n <= end))
        hn::StoreU(cells, D(), to + m * n);
      else
        hn::BlendedStore(cells, hn::FirstN(D(), static_cast<std::size_t>(more)), D(), to + m * n);
    }
  }

  // `known` windows, if it is not 0: then their pointers stay in registers. Arguments are read one by one: copies of
  // structures that were just written would wait for the stores.
  template <int known, class Taps>
  static void GatherRow(const RowShape& row, const Source* sources, Index windows, T* row_to) {
    constexpr int s = Taps::stride;
    const Taps taps(*row.lists);
    const Index begin = row.begin, end = row.end, cells = row.cells;
    const Index* const tables = row.tables;
    const bool stream = row.stream;
    const T* gradients[known + 1];
    const std::uint8_t* winners[known + 1];
    const Number* numbers[known + 1];
    HWY_UNROLL(4)
    for (int w = 0; w < known; ++w) {
      gradients[w] = sources[w].gradients;
      winners[w] = sources[w].winners;
      numbers[w] = sources[w].numbers;
    }
    for (Index v = begin; v < end; ++v) {
      hn::VFromD<D> sums[s];
      HWY_UNROLL(4)
      for (int r = 0; r < s; ++r) sums[r] = hn::Zero(D());
      const Index first = row.First(v);
      const Index o = first + taps.lift;
      const Index table = tables[v - begin];
      if constexpr (known > 0) {
        HWY_UNROLL(4)
        for (int w = 0; w < known; ++w) AddWindow(taps, gradients[w] + o, winners[w] + o, numbers[w] + table, sums);
      } else {
        for (Index w = 0; w < windows; ++w)
          AddWindow(taps, sources[w].gradients + o, sources[w].winners + o, sources[w].numbers + table, sums);
      }
      PutCells<s>(sums, row_to + first * s, cells - first * s, stream);
    }
  }

  template <class Taps>
  static HWY_INLINE void AddWindow(const Taps& taps, const T* gradients, const std::uint8_t* winners,
                                   const Number* numbers, hn::VFromD<D> (&sums)[Taps::stride]) {
    HWY_UNROLL(4)
    for (int r = 0; r < Taps::stride; ++r)
      for (Index i = 0; i < taps.count(r); ++i)
        sums[r] = C::Add(sums[r], gradients + taps.shift(r, i), winners + taps.shift(r, i),
                         hn::Load(typename C::DN(), numbers + taps.number(r, i) * n));
  }

  // Rows of outputs, by where they begin in the winners of their plane, around which there is enough to read: other
  // rows of the plane, and planes of neighbouring lanes.
  void FindRoom(Index lane) {
    Index plane = 1;
    bool dense = true;
    for (std::size_t a = last_ + 1; a-- > 0;) {
      dense = dense && plan_.inputs[0].pooled[a] == plane && plan_.winner.pooled[a] == plane;
      plane *= plan_.axes[a].source.out;
    }
    room_ = {0, 0};
    if (!dense) return;
    const auto l = static_cast<std::size_t>(plan_.lanes.rank - 1);
    const bool close = plan_.inputs[0].lanes[l] == plane && plan_.winner.lanes[l] == plane;
    const Index before = close ? lane * plane : 0;
    const Index after = close ? (plan_.lanes.sizes[l] - 1 - lane) * plane : 0;
    room_ = {-before - reads_.begin, plane + after - reads_.end + 1};
  }

  // The end of what is still written after a plane's rows: of the plane, or of the planes that follow it.
  void FindEnd(const T* gx, Index lanes) {
    const plan::Operand& to = plan_.outputs[0];
    const auto l = static_cast<std::size_t>(plan_.lanes.rank - 1);
    end_ = nullptr;
    if (last_ != 1 || to.pooled[0] != inner_.in) return;
    const Index plane = plan_.axes[0].source.in * inner_.in;
    end_ = gx + plane * (to.lanes[l] == plane ? lanes : 1);
  }

  // A row that stands alone is copied to where there is room around it.
  HWY_NOINLINE void Copy(Source& source, Index window) {
    T* gradients = copied_gradients_ + window * reads_.size() - reads_.begin;
    std::uint8_t* winners = copied_winners_ + window * reads_.size() - reads_.begin;
    std::memset(winners + reads_.begin, 0xff, static_cast<std::size_t>(reads_.size()));
    const Index gradient_stride = plan_.inputs[0].pooled[last_];
    const Index winner_stride = plan_.winner.pooled[last_];
    for (Index o = std::max(Index{0}, reads_.begin); o < std::min(inner_.out, reads_.end); ++o) {
      gradients[o] = source.gradients[o * gradient_stride];
      winners[o] = source.winners[o * winner_stride];
    }
    source.gradients = gradients;
    source.winners = winners;
  }

  // A row of outputs that does not exist: no cell won anywhere.
  HWY_NOINLINE void Nothing(Source& source) {
    std::memset(copied_winners_, 0xff, static_cast<std::size_t>(reads_.size()));
    std::fill_n(copied_gradients_, reads_.size(), T{});
    source.gradients = copied_gradients_ - reads_.begin;
    source.winners = copied_winners_ - reads_.begin;
  }

  const plan::Plan& plan_;
  const PullTask& task_;
  std::size_t last_;
  const Axis& inner_;
  TapLists lists_;
  std::array<RowFunction, 4> functions_{};  // for one, two and three windows, and first for any number
  SeenLists slabs_, rows_;                  // of all axes but the last two, and of the one before the last
  plan::Span reads_{};                      // of a row of outputs, what vectors read
  plan::Span room_{};
  using Sweep = void (RowGather::*)(const RowShape& shape, const Source& lane, T* gx);
  Sweep sweep_ = nullptr;
  std::array<Sweep, 2> narrow_{};  // for one and two vectors to a row
  const T* end_ = nullptr;
  T* copied_gradients_ = nullptr;
  std::uint8_t* copied_winners_ = nullptr;
  T* sums_ = nullptr;
};

// Lanes that are neighbours in memory gather together, cell by cell.
template <class T>
class LaneGather {
  using C = Chooser<T>;
  using D = typename C::D;
  using Number = typename C::Number;
  static constexpr Index n = C::n;
  static constexpr Index side_by_side = 4;  // vectors

 public:
  static void Run(const plan::Plan& plan, const PullTask& task) {
    const auto last = static_cast<std::size_t>(plan.rank - 1);
    Index box = 1;
    for (std::size_t a = 0; a <= last; ++a) box *= plan.axes[a].source.kernel;
    plan::Scratch scratch;
    SeenLists rows, columns;
    rows.Ask(plan, scratch, 0, last, task);
    columns.Ask(plan, scratch, last, last + 1, task);
    const auto table = scratch.Ask<Number>(box * n);
    scratch.Take();
    rows.Fill(plan, scratch, plan.axes[last].source.kernel * n);
    columns.Fill(plan, scratch, n);
    Number* numbers = scratch.At(table);
    for (Index i = 0; i < box * n; ++i) numbers[i] = static_cast<Number>(i / n);

    const LanePlaces places = PlacesOf(plan, task.first);
    const T* gy = static_cast<const T*>(plan.inputs[0].data) + places.in;
    const std::uint8_t* won = plan.winners + places.won;
    T* gx = static_cast<T*>(plan.outputs[0].data) + places.out + task.begin * plan.outputs[0].pooled[0];
    const Index lanes = task.stop - task.first;
    const bool stream = Streams<T>(plan, gx, lanes);
    // As many lanes at a time as the nearest cache holds of the rows of gradients that a row of cells hears from.
    Index heard = plan.axes[last].source.out * Index{sizeof(T) + 1};
    for (std::size_t a = 0; a < last; ++a) heard *= plan.axes[a].kernel;
    constexpr Index step = side_by_side * n;
    const Index width = std::max(step, cache / std::max(Index{1}, heard) / step * step);
    // What is read for the first time is asked for some cells ahead: so many streams are more than the hardware
    // follows.
    constexpr Index cells_ahead = 4;
    const Index gradients_ahead = cells_ahead * plan.inputs[0].pooled[last];
    const Index winners_ahead = cells_ahead * plan.winner.pooled[last];
    for (Index begin = 0; begin < lanes; begin += width) {
      const Index end = std::min(lanes, begin + width);
      std::array<Index, max_rank> cell{};
      for (Index row = 0; row < rows.cells(); ++row) {
        T* to = gx;
        for (std::size_t a = 0; a < last; ++a) to += cell[a] * plan.outputs[0].pooled[a];
        Next(cell, last, [&](std::size_t a) { return a == 0 ? task.end - task.begin : plan.axes[a].out; });
        for (Index column = 0; column < columns.cells(); ++column, to += plan.outputs[0].pooled[last]) {
          const Windows windows(gy, won, numbers, rows.begin(row), rows.end(row), columns.begin(column),
                                columns.end(column), gradients_ahead, winners_ahead);
          Index lane = begin;
          for (; lane + step <= end; lane += step) Gather<side_by_side>(windows, lane, to, stream);
          for (; lane + n <= end; lane += n) Gather<1>(windows, lane, to, stream);
          if (lane < end) Gather<1>(windows, lanes - n, to, stream);
        }
      }
    }
    if (stream) hwy::FlushStream();
  }

 private:
  static constexpr Index cache = Index{24} << 10;

  // Those that hold a cell: rows of them, and columns.
  struct Windows {
    Windows(const T* gy, const std::uint8_t* won, const Number* numbers, const Seen* far, const Seen* far_end,
            const Seen* near, const Seen* near_end, Index gradients_ahead, Index winners_ahead)
        : gradients(gy), winners(won), numbers(numbers), far(far), far_end(far_end), near(near), near_end(near_end),
          ahead(gy), winners_ahead(won) {
      if (far == far_end || near == near_end) return;
      ahead += far_end[-1].gradient + near_end[-1].gradient + gradients_ahead;
      this->winners_ahead += far_end[-1].winner + near_end[-1].winner + winners_ahead;
    }
    const T* gradients;
    const std::uint8_t* winners;
    const Number* numbers;
    const Seen *far, *far_end, *near, *near_end;
    const T* ahead;  // what is about to be read for the first time
    const std::uint8_t* winners_ahead;
  };

  template <int vectors>
  static HWY_INLINE void Gather(const Windows& windows, Index lane, T* to, bool stream) {
    hn::VFromD<D> sums[vectors];
    HWY_UNROLL(4)
    for (int v = 0; v < vectors; ++v) sums[v] = hn::Zero(D());
    HWY_UNROLL(4)
    for (int v = 0; v < vectors; ++v) hwy::Prefetch(windows.ahead + lane + v * n);
    hwy::Prefetch(windows.winners_ahead + lane);
    for (const Seen* far = windows.far; far != windows.far_end; ++far)
      for (const Seen* near = windows.near; near != windows.near_end; ++near) {
        const T* const gradients = windows.gradients + far->gradient + near->gradient + lane;
        const std::uint8_t* const winners = windows.winners + far->winner + near->winner + lane;
        const auto number = hn::Load(typename C::DN(), windows.numbers + far->number + near->number);
        HWY_UNROLL(4)
        for (int v = 0; v < vectors; ++v) sums[v] = C::Add(sums[v], gradients + v * n, winners + v * n, number);
      }
    HWY_UNROLL(4)
    for (int v = 0; v < vectors; ++v) Put(sums[v], D(), to + lane + v * n, stream);
  }
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
