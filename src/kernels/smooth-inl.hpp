// Smooth max and Lp: sums of exp(beta * x) or |x|^p over windows, their logarithms or roots, and their derivatives.
// Each term is computed once per cell and shared by all windows that hold it.
//
// Two kinds of terms (math-inl.hpp): plain doubles, as long as every exponent of a task is moderate, and pairs with an
// exponent of their own. Scaling by powers of two is exact, so that both give the same bits: which of them served a
// task cannot be seen in the results.
//
// What neither can say (NaN, infinities, f64 beyond what pairs resolve, windows of one tap, S5) becomes NaN in the sums
// and stays NaN in every result that it reaches. `Plan::odd` tells the caller to look for those and ask the definition.
#if defined(CENOTE_KERNELS_SMOOTH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_SMOOTH_INL_HPP
#undef CENOTE_KERNELS_SMOOTH_INL_HPP
#else
#define CENOTE_KERNELS_SMOOTH_INL_HPP
#endif

#include <cmath>
#include <limits>

#include "kernels/math-inl.hpp"
#include "kernels/reduce-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

enum class Kind : std::uint8_t { smooth, powers, magnitudes, squares };  // Lp: any p, p = 1, p = 2

inline Kind KindOf(const plan::Formula& formula) {
  if (formula.p == 0) return Kind::smooth;
  if (formula.p == 1) return Kind::magnitudes;
  return formula.p == 2 ? Kind::squares : Kind::powers;
}

// Plain terms lie within 2^-400 .. 2^400: no product of a term, a gradient and a sum leaves the range of f64.
inline constexpr double plain_exponent = 400;
inline constexpr double plain_high = 0x1p400, plain_low = 0x1p-400;
// Tangents and gradients of f64 that pairs carry without overflow.
inline constexpr double pair_high = 0x1p960;
// Cells of f64 whose quotients with a tangent pairs carry.
inline constexpr double quotient_high = 0x1p200, quotient_low = 0x1p-200;

// Whether the present task met a term that is not plain.
inline bool& Exceeds() {
  thread_local bool exceeds = false;
  return exceeds;
}

using DD = hn::ScalableTag<double>;
using VD = hn::VFromD<DD>;
using MD = hn::MFromD<DD>;

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// exp(beta * x) or |x|^p = (f + c) * 2^n.
template <class T, Kind kind>
HWY_INLINE void Term(VD parameter, VD x, VD& n, VD& f, VD& c) {
  const DD d;
  constexpr bool precise = std::is_same_v<T, double>;
  c = hn::Zero(d);
  if constexpr (kind == Kind::smooth) {
    if constexpr (precise)
      ExpPairPrecise(d, parameter, x, n, f, c);
    else
      ExpPair(d, parameter, x, n, f);
  } else if constexpr (kind == Kind::powers) {
    if constexpr (precise)
      PowPairPrecise(d, parameter, hn::Abs(x), n, f, c);
    else
      PowPair(d, parameter, hn::Abs(x), n, f);
  } else if constexpr (precise) {
    if constexpr (kind == Kind::squares)
      SquarePair(d, hn::Abs(x), n, f, c);
    else
      MagnitudePair(d, hn::Abs(x), n, f);
  } else {
    n = hn::Zero(d);
    f = kind == Kind::squares ? hn::Mul(x, x) : hn::Abs(x);
  }
}

// The magnitude is at most `high`, and not below `low` unless it is 0.
HWY_INLINE MD Within(VD x, double low, double high) {
  const DD d;
  const VD magnitude = hn::Abs(x);
  const MD fits = hn::Le(magnitude, hn::Set(d, high));
  if (low == 0) return fits;
  return hn::And(fits, hn::Or(hn::Ge(magnitude, hn::Set(d, low)), hn::Eq(magnitude, hn::Zero(d))));
}

template <class T>
HWY_INLINE void StoreRounded(VD v, Lane<T>* to) {
  const DD d;
  if constexpr (std::is_same_v<T, double>) {
    hn::StoreU(v, d, to);
  } else if constexpr (std::is_same_v<T, float>) {
    const hn::Rebind<float, DD> df;
    hn::StoreU(hn::DemoteTo(df, v), df, to);
  } else {
    HWY_ALIGN double wide[vector_lanes<double>];
    hn::Store(v, d, wide);
    for (Index i = 0; i < vector_lanes<double>; ++i) to[i] = T(wide[i]).bits;
  }
}

// A piece of a window: [exponent n] sum f [tail c, for f64] [tangents t].
template <class T, bool with_pairs, bool with_tangent>
struct PowerSumState {
  using Scalar = T;
  using Raw = cenote::HWY_NAMESPACE::Lane<T>;
  using Lane = double;
  using D = DD;
  using V = VD;
  static constexpr bool pairs = with_pairs, tangent = with_tangent, precise = std::is_same_v<T, double>;
  static constexpr int at_f = pairs ? 1 : 0, at_c = at_f + 1;
  static constexpr int parts = 1 + (pairs ? 1 : 0) + (precise ? 1 : 0) + (tangent ? 1 : 0);
  static constexpr int at_t = parts - 1, inputs = tangent ? 2 : 1;
  static constexpr bool lifts = true, repeats = false, weighted = false, plain = false;

  static HWY_INLINE void Load(V (&s)[parts], const Lane* p, Index pitch, Index, double) {
    HWY_UNROLL(4)
    for (int part = 0; part < parts; ++part) s[part] = hn::LoadU(D(), p + part * pitch);
  }
  static HWY_INLINE void Store(const V (&s)[parts], Lane* p, Index pitch) {
    HWY_UNROLL(4)
    for (int part = 0; part < parts; ++part) hn::StoreU(s[part], D(), p + part * pitch);
  }
  static HWY_INLINE void Merge(V (&a)[parts], const V (&b)[parts]) {
    const D d;
    if constexpr (pairs) {
      const V largest = hn::Max(a[0], b[0]);
      const V left = ScaleTo(d, a[0], largest);
      const V right = ScaleTo(d, b[0], largest);
      a[0] = largest;
      if constexpr (precise) {
        V error;
        math::TwoSum(hn::Mul(a[at_f], left), hn::Mul(b[at_f], right), a[at_f], error);
        a[at_c] = hn::MulAdd(a[at_c], left, hn::MulAdd(b[at_c], right, error));
      } else {
        a[at_f] = hn::MulAdd(a[at_f], left, hn::Mul(b[at_f], right));
      }
      if constexpr (tangent) a[at_t] = hn::MulAdd(a[at_t], left, hn::Mul(b[at_t], right));
    } else {
      if constexpr (precise) {
        V error;
        math::TwoSum(a[at_f], b[at_f], a[at_f], error);
        a[at_c] = hn::Add(a[at_c], hn::Add(b[at_c], error));
      } else {
        a[at_f] = hn::Add(a[at_f], b[at_f]);
      }
      if constexpr (tangent) a[at_t] = hn::Add(a[at_t], b[at_t]);
    }
  }
  static HWY_INLINE void MergeBefore(const V (&earlier)[parts], V (&acc)[parts]) { Merge(acc, earlier); }
  static HWY_INLINE void Shift(V (&)[parts], Index) {}

  // Cells [cells][inputs][width] become terms [cells][parts][width].
  static void Lift(const plan::Formula& formula, const Raw* from, Lane* to, Index cells, Index width) {
    switch (KindOf(formula)) {
      case Kind::smooth: return LiftAs<Kind::smooth>(formula, from, to, cells, width);
      case Kind::powers: return LiftAs<Kind::powers>(formula, from, to, cells, width);
      case Kind::magnitudes: return LiftAs<Kind::magnitudes>(formula, from, to, cells, width);
      case Kind::squares: return LiftAs<Kind::squares>(formula, from, to, cells, width);
    }
  }

 private:
  template <Kind kind>
  static HWY_NOINLINE void LiftAs(const plan::Formula& formula, const Raw* HWY_RESTRICT from, Lane* HWY_RESTRICT to,
                                  Index cells, Index width) {
    const D d;
    constexpr bool quotients = precise && tangent && kind != Kind::smooth;
    const V parameter = hn::Set(d, kind == Kind::smooth ? formula.beta : formula.p);
    double limit = precise ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
    if (precise && kind == Kind::smooth) limit = std::fmin(limit, precise_limit / std::fabs(formula.beta));
    const double low = quotients ? quotient_low : 0;
    if (quotients) limit = quotient_high;
    const double d_limit = !precise ? limit : (pairs && kind == Kind::smooth ? pair_high : plain_high);
    const double d_low = !precise || (pairs && kind == Kind::smooth) ? 0 : plain_low;
    const V nan = hn::Set(d, no_number);
    const V zero = hn::Zero(d);
    MD fine = hn::Eq(zero, zero);
    for (Index cell = 0; cell < cells; ++cell) {
      for (Index l = 0; l < width; l += vector_lanes<double>) {
        const V x = LoadWide<T>(d, from + l);
        V n;
        V f;
        V c;
        Term<T, kind>(parameter, x, n, f, c);
        MD good = Within(x, low, limit);
        V t = zero;
        MD good_t = good;
        if constexpr (tangent) {
          const V dx = LoadWide<T>(d, from + width + l);
          if constexpr (kind == Kind::smooth)
            t = hn::Mul(f, dx);
          else
            t = hn::IfThenZeroElse(hn::Eq(x, zero), hn::Mul(f, hn::Div(dx, x)));
          good_t = hn::And(good, Within(dx, d_low, d_limit));
        }
        double* p = to + l;
        if constexpr (pairs) {
          hn::StoreU(hn::IfThenElseZero(good, n), d, p);
          hn::StoreU(hn::IfThenElse(good, f, nan), d, p + at_f * width);
          if constexpr (precise) hn::StoreU(c, d, p + at_c * width);
          if constexpr (tangent) hn::StoreU(hn::IfThenElse(good_t, t, nan), d, p + at_t * width);
        } else {
          if constexpr (precise || kind == Kind::smooth || kind == Kind::powers) {
            if constexpr (kind != Kind::smooth) n = hn::IfThenZeroElse(hn::Eq(f, zero), n);
            good_t = hn::And(good_t, hn::Le(hn::Abs(n), hn::Set(d, plain_exponent)));
            const V scale = math::PowerOfTwo(d, n);
            f = hn::Mul(f, scale);
            c = hn::Mul(c, scale);
            t = hn::Mul(t, scale);
          }
          fine = hn::And(fine, good_t);
          hn::StoreU(f, d, p + at_f * width);
          if constexpr (precise) hn::StoreU(c, d, p + at_c * width);
          if constexpr (tangent) hn::StoreU(t, d, p + at_t * width);
        }
      }
      from += inputs * width;
      to += parts * width;
    }
    if constexpr (!pairs)
      if (!hn::AllTrue(d, fine)) Exceeds() = true;
  }
};

// The sum of a whole window, padding included (S1).
template <class S>
struct WindowSum {
  VD n, f, c, t;

  HWY_INLINE void Load(const double* p, Index pitch) {
    const DD d;
    n = c = t = hn::Zero(d);
    if constexpr (S::pairs) n = hn::LoadU(d, p);
    f = hn::LoadU(d, p + S::at_f * pitch);
    if constexpr (S::precise) c = hn::LoadU(d, p + S::at_c * pitch);
    if constexpr (S::tangent) t = hn::LoadU(d, p + S::at_t * pitch);
  }
  // Adds so many terms exp(0). NaN counts as none.
  HWY_INLINE void AddZeros(VD count) {
    const DD d;
    const MD some = hn::Gt(count, hn::Zero(d));
    const VD g = hn::IfThenElseZero(some, count);
    VD left = hn::Set(d, 1.0);
    VD right = left;
    if constexpr (S::pairs) {
      const VD m = hn::IfThenZeroElse(some, hn::Set(d, zero_exponent));
      const VD largest = hn::Max(n, m);
      left = ScaleTo(d, n, largest);
      right = ScaleTo(d, m, largest);
      n = largest;
    }
    if constexpr (S::precise) {
      VD error;
      math::TwoSum(hn::Mul(f, left), hn::Mul(g, right), f, error);
      c = hn::MulAdd(c, left, error);
    } else {
      f = hn::MulAdd(f, left, hn::Mul(g, right));
    }
    if constexpr (S::tangent) t = hn::Mul(t, left);
  }
  HWY_INLINE VD Total() const { return S::precise ? hn::Add(f, c) : f; }

  template <Kind kind>
  HWY_INLINE VD Value(VD parameter) const {
    const DD d;
    VD y;
    if constexpr (kind == Kind::smooth) {
      if constexpr (S::precise)
        y = FinishSmoothMaxPrecise(d, n, f, c, parameter);
      else
        y = FinishSmoothMax(d, n, f, parameter);
    } else if constexpr (kind == Kind::powers) {
      if constexpr (S::precise)
        y = FinishLpPrecise(d, n, f, c, parameter);
      else
        y = FinishLp(d, n, f, parameter);
    } else if constexpr (S::precise) {
      y = kind == Kind::squares ? FinishSquareRoot(d, n, f, c) : ScalePair(d, hn::Add(f, c), n);
    } else {
      y = kind == Kind::squares ? hn::Sqrt(f) : f;
    }
    // No tap at all, or only zeros in Lp: 0 (S5, L3). NaN has lost itself in bit patterns.
    return hn::IfThenElse(hn::IsNaN(f), f, hn::IfThenZeroElse(hn::Eq(f, hn::Zero(d)), y));
  }
};

// Logarithms, roots and quotients.
template <class T, bool pairs, bool tangent>
struct Finish<PowerSumState<T, pairs, tangent>> {
  using S = PowerSumState<T, pairs, tangent>;
  using Raw = typename S::Raw;
  static constexpr bool winners = false;
  static Index Numbers(Index) { return 0; }
  struct Place {
    const Raw* base;
    Index pitch;
  };
  static Place Output(int i, const RowShape& row, const double*, const Raw* out) {
    return {out + i * row.cells * row.width, row.width};
  }

  template <class... Unused>
  void Row(const RowShape& row, const double* states, Raw* out, Unused...) {
    switch (KindOf(row.plan->formula)) {
      case Kind::smooth: return RowAs<Kind::smooth>(row, states, out);
      case Kind::powers: return RowAs<Kind::powers>(row, states, out);
      case Kind::magnitudes: return RowAs<Kind::magnitudes>(row, states, out);
      case Kind::squares: return RowAs<Kind::squares>(row, states, out);
    }
  }

 private:
  // Padding taps that count; NaN for a window of one tap, whose value is that tap: no logarithm returns it.
  static double Extra(const RowShape& row, Index column) {
    const plan::Taps& taps = row.taps(column);
    const Index real = row.outer_real * taps.count;
    const Index zeros = row.plan->formula.zeros ? row.outer_padded * taps.padded - real : 0;
    return real == 1 && zeros == 0 ? no_number : static_cast<double>(zeros);
  }

  template <Kind kind>
  static HWY_NOINLINE void RowAs(const RowShape& row, const double* states, Raw* out) {
    const DD d;
    constexpr Index step = vector_lanes<double>;
    const plan::Formula& formula = row.plan->formula;
    const VD parameter = hn::Set(d, kind == Kind::smooth ? formula.beta : formula.p);
    const bool value = row.plan->outputs[0].data != nullptr;
    const Index lanes = row.plan->rows ? row.columns : row.width;
    MD odd = hn::Gt(hn::Zero(d), hn::Zero(d));
    for (Index cell = 0; cell < row.cells; ++cell) {
      const double* p = states + cell * S::parts * row.width;
      Raw* to = out + cell * row.width;
      VD extra = hn::Zero(d);
      bool extras = false;
      if (kind == Kind::smooth && !row.plan->rows) {
        const double number = Extra(row, cell);
        extra = hn::Set(d, number);
        extras = number != 0;
      }
      for (Index l = 0; l < lanes; l += step) {
        if (kind == Kind::smooth && row.plan->rows) {
          HWY_ALIGN double numbers[step] = {};
          extras = false;
          for (Index i = 0; i < HWY_MIN(step, lanes - l); ++i) {
            numbers[i] = Extra(row, l + i);
            extras = extras || numbers[i] != 0;
          }
          extra = hn::Load(d, numbers);
        }
        WindowSum<S> sum;
        sum.Load(p + l, row.width);
        if (kind == Kind::smooth && extras) sum.AddZeros(extra);
        const MD real = hn::FirstN(d, static_cast<std::size_t>(HWY_MIN(step, lanes - l)));
        VD y = hn::Zero(d);
        if (kind != Kind::smooth || value || !tangent) {
          y = sum.template Value<kind>(parameter);
          if (kind == Kind::smooth && extras) y = hn::IfThenElse(hn::IsNaN(extra), extra, y);
          if (value || !tangent) {
            odd = hn::Or(odd, hn::And(real, hn::IsNaN(y)));
            StoreRounded<T>(y, to + l);
          }
        }
        if constexpr (tangent) {
          VD dy = hn::Div(sum.t, sum.Total());
          if constexpr (kind != Kind::smooth) dy = hn::Mul(dy, y);
          dy = hn::IfThenZeroElse(hn::Eq(sum.f, hn::Zero(d)), dy);
          odd = hn::Or(odd, hn::And(real, hn::IsNaN(dy)));
          StoreRounded<T>(dy, to + row.cells * row.width + l);
        }
      }
    }
    if (!hn::AllFalse(d, odd)) row.plan->odd->store(true, std::memory_order_relaxed);
  }
};

// Runs a task on plain terms and, if they do not serve it, again on pairs.
template <class Plain, class Pairs>
struct PlainOrPairs {
  static Index Tasks(const plan::Plan& plan) { return Plain::Tasks(plan); }
  static void Run(const plan::Plan& plan, Index task) {
    if (!plan.wide->load(std::memory_order_relaxed)) {
      Exceeds() = false;
      Plain::Run(plan, task);
      if (!Exceeds()) return;
      plan.wide->store(true, std::memory_order_relaxed);  // other tasks will be like this one: they need not try
    }
    Pairs::Run(plan, task);
  }
};

// The VJP. A task is a group of lanes and a block of cells along the first pooled axis: sums of the windows that hold a
// cell of the block (axes before the last, then the last), gradients divided by these sums, and the same passes back
// through the adjoint axes; each cell multiplies what arrives by its own term. Window sizes do not matter to scans.
//
// In rows mode the columns of the last axis are lanes. Only around the last axis rows are, several at a time.
template <class T, bool pairs>
class PowerSumPull {
  using S = PowerSumState<T, pairs, false>;
  using A = std::conditional_t<S::precise, PowerSumState<float, pairs, false>, S>;  // gradients have no tails
  using Raw = typename S::Raw;
  static constexpr Index lanes_each = vector_lanes<Raw>;  // of a tile, or rows together
  static constexpr Index step = vector_lanes<double>;

 public:
  static Index Tasks(const plan::Plan& plan) { return Lanes::Groups(plan, lanes_each) * plan.adjoint[0].blocks; }
  static void Run(const plan::Plan& plan, Index task) { PowerSumPull(plan, task).Work(); }

 private:
  using Range = plan::Span;
  using Ranges = std::array<Range, max_rank>;

  PowerSumPull(const plan::Plan& plan, Index task) : plan_(plan), last_(static_cast<std::size_t>(plan.rank - 1)) {
    for (std::size_t a = 0; a <= last_; ++a) {
      cells_[a] = held_[a] = {0, plan.axes[a].in};
      windows_[a] = {0, plan.axes[a].out};
    }
    const PooledAxis& adjoint = plan.adjoint[0];
    if (adjoint.blocks > 1) {
      const Index begin = task % adjoint.blocks * adjoint.outputs_per_block;
      held_[0] = {begin, HWY_MIN(adjoint.out, begin + adjoint.outputs_per_block)};
      windows_[0] = plan::positions_of(adjoint, held_[0].begin, held_[0].end);
      cells_[0] = plan::positions_of(plan.axes[0], windows_[0].begin, windows_[0].end);
      if (cells_[0].size() == 0) cells_[0] = held_[0];
      cells_[0] = {HWY_MIN(cells_[0].begin, held_[0].begin), HWY_MAX(cells_[0].end, held_[0].end)};
    }
    SetLanes(task / adjoint.blocks);
  }

  void SetLanes(Index group) {
    const plan::LaneBox& box = plan_.lanes;
    lanes_ = Lanes::OfGroup(plan_, lanes_each, group);
    lanes_.Offsets(box, plan_.inputs[0], x_offsets_);
    lanes_.Offsets(box, plan_.inputs[1], gy_offsets_);
    lanes_.Offsets(box, plan_.outputs[0], gx_offsets_);
  }

  // Rows of the last axis in a box, and where one of them is.
  [[nodiscard]] Index Rows(const Ranges& box) const {
    Index rows = 1;
    for (std::size_t a = 0; a < last_; ++a) rows *= box[a].size();
    return rows;
  }
  [[nodiscard]] std::array<Index, max_rank> RowAt(const Ranges& box, Index row) const {
    std::array<Index, max_rank> at{};
    at[last_] = box[last_].begin;
    for (std::size_t a = last_; a-- > 0;) {
      at[a] = box[a].begin + row % box[a].size();
      row /= box[a].size();
    }
    return at;
  }
  [[nodiscard]] Index Offset(const plan::Operand& operand, const std::array<Index, max_rank>& at) const {
    Index offset = 0;
    for (std::size_t a = 0; a <= last_; ++a) offset += at[a] * operand.pooled[a];
    return offset;
  }

  void Work() {
    const bool rows = plan_.rows;
    const Index columns = cells_[last_].size();
    lanes_each_ = rows ? (columns + lanes_each - 1) / lanes_each * lanes_each : lanes_.width;
    if (rows && lanes_each_ % 64 == 0) lanes_each_ += lanes_each;  // rows must not meet in the cache's sets
    line_cells_ = rows ? 1 : columns;
    held_cells_ = rows ? 1 : held_[last_].size();
    line_ = line_cells_ * S::parts * lanes_each_;
    held_line_ = held_cells_ * A::parts * lanes_each_;
    const Index outputs = windows_[last_].size();
    const Index inner_lanes = rows ? lanes_each : lanes_.width;  // around the last axis

    // The largest arrays between passes.
    Index forward = 0;
    Index backward = Rows(windows_) * held_line_;
    Index scan = 0;
    for (std::size_t a = 0; a <= last_; ++a) {
      Ranges box = cells_;
      for (std::size_t b = 0; b <= a; ++b) box[b] = windows_[b];
      if (a < last_) forward = HWY_MAX(forward, Rows(box) * line_);
      box = held_;
      for (std::size_t b = 0; b < a; ++b) box[b] = windows_[b];
      backward = HWY_MAX(backward, Rows(box) * held_line_);
      scan = HWY_MAX(scan, ScanScratch<S>(plan_.axes[a].block));
      scan = HWY_MAX(scan, ScanScratch<A>(plan_.adjoint[a].block));
    }
    plan::Scratch scratch;
    const Index widest = HWY_MAX(HWY_MAX(columns, outputs) * inner_lanes, lanes_each_);
    const auto raw = scratch.Ask<Raw>(widest);
    const auto terms = scratch.Ask<double>(Rows(cells_) * line_);
    const auto one = scratch.Ask<double>(forward);
    const auto two = scratch.Ask<double>(last_ > 1 ? forward : 0);
    const auto back = scratch.Ask<double>(backward);
    const auto other = scratch.Ask<double>(last_ > 0 ? backward : 0);
    const auto scanned = scratch.Ask<double>(scan);
    const auto row = scratch.Ask<double>(rows ? columns * S::parts * inner_lanes : 0);
    const auto sums = scratch.Ask<double>(outputs * S::parts * inner_lanes);
    const auto shares = scratch.Ask<double>(outputs * A::parts * inner_lanes);
    const auto arrived = scratch.Ask<double>(rows ? columns * A::parts * inner_lanes : 0);
    scratch.Take();
    raw_ = scratch.At(raw);
    scan_ = scratch.At(scanned);

    for (Index r = 0; r < Rows(cells_); ++r) {
      LoadLine(r);
      S::Lift(plan_.formula, raw_, scratch.At(terms) + r * line_, line_cells_, lanes_each_);
    }
    if (!pairs && Exceeds()) return;

    const double* from = scratch.At(terms);
    double* to = scratch.At(one);
    Ranges box = cells_;
    for (std::size_t a = 0; a < last_; ++a) {
      const Index below = Below(box, a);
      const PassShape shape = Shape(plan_.axes[a], windows_[a], cells_[a], below * line_, below * line_cells_);
      for (Index u = 0; u < Above(box, a); ++u)
        Pass<S, false>(shape, from + u * cells_[a].size() * below * line_, to + u * windows_[a].size() * below * line_,
                       scan_);
      box[a] = windows_[a];
      from = to;
      to = a % 2 == 0 ? scratch.At(two) : scratch.At(one);
    }

    const PassShape ahead = Inner(plan_.axes[last_], windows_[last_], cells_[last_], inner_lanes, S::parts);
    const PassShape behind = Inner(plan_.adjoint[last_], held_[last_], windows_[last_], inner_lanes, A::parts);
    double* result = scratch.At(back);
    const Index count = Rows(windows_);
    for (Index r = 0; r < count; r += rows ? lanes_each : 1) {
      if (!rows) {
        Pass<S, false>(ahead, from + r * line_, scratch.At(sums), scan_);
      } else {
        for (Index part = 0; part < S::parts; ++part)
          for (Index l = 0; l < lanes_each; l += step) {
            const double* pointers[step];
            for (Index i = 0; i < step; ++i)  // surplus rows repeat the last one
              pointers[i] = from + HWY_MIN(r + l + i, count - 1) * line_ + part * lanes_each_;
            LoadTransposed<double>(pointers, columns, scratch.At(row) + part * lanes_each + l, S::parts * lanes_each);
          }
        Pass<S, false>(ahead, scratch.At(row), scratch.At(sums), scan_);
      }
      LoadGradients(r, count);
      Share(scratch.At(sums), outputs, inner_lanes, scratch.At(shares));
      if (!rows) {
        Pass<A, false>(behind, scratch.At(shares), result + r * held_line_, scan_);
      } else {
        Pass<A, false>(behind, scratch.At(shares), scratch.At(arrived), scan_);
        for (Index part = 0; part < A::parts; ++part)
          for (Index l = 0; l < lanes_each; l += step) {
            double* pointers[step];
            for (Index i = 0; i < step; ++i)
              pointers[i] = result + HWY_MIN(r + l + i, count - 1) * held_line_ + part * lanes_each_;
            StoreTransposed<double>(scratch.At(arrived) + part * lanes_each + l, A::parts * lanes_each, columns,
                                    pointers);
          }
      }
    }
    if (!pairs && Exceeds()) return;

    box = windows_;
    double* next = scratch.At(other);
    for (std::size_t a = last_; a-- > 0;) {
      const Index below = Below(box, a);
      const PassShape shape = Shape(plan_.adjoint[a], held_[a], windows_[a], below * held_line_, below * held_cells_);
      for (Index u = 0; u < Above(box, a); ++u)
        Pass<A, false>(shape, result + u * windows_[a].size() * below * held_line_,
                       next + u * held_[a].size() * below * held_line_, scan_);
      box[a] = held_[a];
      std::swap(result, next);
    }
    Emit(scratch.At(terms), result);
  }

  // Rows of a box per position of axis a, and how many such groups there are.
  [[nodiscard]] Index Below(const Ranges& box, std::size_t a) const {
    Index rows = 1;
    for (std::size_t b = a + 1; b < last_; ++b) rows *= box[b].size();
    return rows;
  }
  [[nodiscard]] Index Above(const Ranges& box, std::size_t a) const {
    Index rows = 1;
    for (std::size_t b = 0; b < a; ++b) rows *= box[b].size();
    return rows;
  }
  [[nodiscard]] PassShape Shape(const PooledAxis& axis, const Range& outputs, const Range& positions, Index pitch,
                                Index cells) const {
    return {&axis, outputs.begin, outputs.end, positions.begin, positions.end,
            pitch, pitch,         cells,       lanes_each_,     lanes_each_,
            1};
  }
  [[nodiscard]] static PassShape Inner(const PooledAxis& axis, const Range& outputs, const Range& positions,
                                       Index lanes, Index parts) {
    return {&axis,
            outputs.begin,
            outputs.end,
            positions.begin,
            positions.end,
            parts * lanes,
            parts * lanes,
            1,
            lanes,
            lanes,
            1};
  }

  // A row of x from cells_[last_] on.
  void LoadLine(Index r) {
    const plan::Operand& x = plan_.inputs[0];
    const Index stride = x.pooled[last_];
    const Index columns = cells_[last_].size();
    const Index offset = Offset(x, RowAt(cells_, r));
    if (!plan_.rows) return LoadRow<Raw>(x, stride, x_offsets_, offset, columns, lanes_.width, raw_, lanes_.width);
    const Raw* from = static_cast<const Raw*>(x.data) + x_offsets_[0] + offset;
    if (stride == 1)
      std::memcpy(raw_, from, static_cast<std::size_t>(columns) * sizeof(Raw));
    else
      for (Index c = 0; c < columns; ++c) raw_[c] = from[c * stride];
    std::memset(raw_ + columns, 0, static_cast<std::size_t>(lanes_each_ - columns) * sizeof(Raw));
  }

  // Gradients of row r of the outputs, or of rows r, r + 1, ...; and the taps that their windows have.
  void LoadGradients(Index r, Index count) {
    const plan::Operand& gy = plan_.inputs[1];
    const Index stride = gy.pooled[last_];
    const Index columns = windows_[last_].size();
    const Index lanes = plan_.rows ? lanes_each : lanes_.width;
    std::array<Index, max_rank> at{};
    for (Index l = 0; l < lanes; ++l) {
      if (l == 0 || (plan_.rows && r + l < count)) {
        at = RowAt(windows_, r + l);
        real_[l] = padded_[l] = 1;
        for (std::size_t a = 0; a < last_; ++a) {
          real_[l] *= static_cast<double>(plan_.axes[a].taps[at[a]].count);
          padded_[l] *= static_cast<double>(plan_.axes[a].taps[at[a]].padded);
        }
        if (!plan_.rows) LoadRow<Raw>(gy, stride, gy_offsets_, Offset(gy, at), columns, lanes, raw_, lanes);
      } else {
        real_[l] = real_[l - 1];
        padded_[l] = padded_[l - 1];
      }
      if (!plan_.rows) continue;
      sources_[l] = static_cast<const Raw*>(gy.data) + gy_offsets_[0] + Offset(gy, at);
    }
    if (!plan_.rows) return;
    if (stride == 1)
      LoadTransposed<Raw>(sources_, columns, raw_, lanes_each);
    else
      for (Index c = 0; c < columns; ++c)
        for (Index l = 0; l < lanes_each; ++l) raw_[c * lanes_each + l] = sources_[l][c * stride];
  }

  void Share(const double* sums, Index columns, Index lanes, double* to) {
    switch (KindOf(plan_.formula)) {
      case Kind::smooth: return ShareAs<Kind::smooth>(sums, columns, lanes, to);
      case Kind::powers: return ShareAs<Kind::powers>(sums, columns, lanes, to);
      case Kind::magnitudes: return ShareAs<Kind::magnitudes>(sums, columns, lanes, to);
      case Kind::squares: return ShareAs<Kind::squares>(sums, columns, lanes, to);
    }
  }

  // What a window gives to each of its cells, to be multiplied by the cell's term: gradient / sum, or, for Lp,
  // gradient * y^(1-p).
  template <Kind kind>
  HWY_NOINLINE void ShareAs(const double* HWY_RESTRICT sums, Index columns, Index lanes, double* HWY_RESTRICT to) {
    const DD d;
    const VD p = hn::Set(d, plan_.formula.p);
    const VD zero = hn::Zero(d);
    const double limit = !S::precise ? double{std::numeric_limits<float>::max()} : (pairs ? pair_high : plain_high);
    const double low = S::precise && !pairs ? plain_low : 0;
    MD fine = hn::Eq(zero, zero);
    for (Index column = 0; column < columns; ++column) {
      const Taps& taps = plan_.axes[last_].taps[windows_[last_].begin + column];
      for (Index l = 0; l < lanes; l += step) {
        WindowSum<S> sum;
        sum.Load(sums + column * S::parts * lanes + l, lanes);
        if (kind == Kind::smooth && plan_.formula.zeros)
          sum.AddZeros(hn::Sub(hn::Mul(hn::LoadU(d, padded_ + l), hn::Set(d, static_cast<double>(taps.padded))),
                               hn::Mul(hn::LoadU(d, real_ + l), hn::Set(d, static_cast<double>(taps.count)))));
        const VD gy = LoadWide<T>(d, raw_ + column * lanes + l);
        const MD good = Within(gy, low, limit);
        VD m = zero;
        VD h = gy;
        if constexpr (kind == Kind::smooth) {
          m = hn::Neg(sum.n);
          h = hn::Div(gy, sum.Total());
        } else if constexpr (kind == Kind::squares && !S::precise) {
          h = hn::Div(gy, hn::Sqrt(sum.f));
        } else if constexpr (kind != Kind::magnitudes) {
          VD g;
          if constexpr (S::precise)
            InverseLpPairPrecise(d, sum.n, sum.f, sum.c, p, m, g);
          else
            InverseLpPair(d, sum.n, sum.f, p, m, g);
          h = hn::Mul(gy, g);
          if constexpr (!pairs) h = hn::Mul(h, math::PowerOfTwo(d, math::Clamp(d, m, -1000, 1000)));
        }
        const MD nothing = hn::Eq(sum.f, zero);  // no tap, or only zeros (S5, L3)
        h = hn::IfThenZeroElse(nothing, h);
        double* out = to + column * A::parts * lanes + l;
        if constexpr (pairs) {
          const MD odd = hn::Or(hn::Not(good), hn::IsNaN(sum.f));
          h = hn::IfThenElse(odd, hn::Set(d, no_number), h);
          m = hn::IfThenElse(nothing, hn::Set(d, zero_exponent), m);
          hn::StoreU(hn::IfThenZeroElse(odd, m), d, out);
        } else {
          fine = hn::And(fine, good);
        }
        hn::StoreU(h, d, out + A::at_f * lanes);
      }
    }
    if constexpr (!pairs)
      if (!hn::AllTrue(d, fine)) Exceeds() = true;
  }

  // gx = term * what arrived, row by row.
  void Emit(const double* terms, const double* arrived) {
    const plan::Operand& gx = plan_.outputs[0];
    const Index columns = held_[last_].size();
    const Index rows = Rows(held_);
    const Index skip_rows = (held_[0].begin - cells_[0].begin) * (last_ > 0 ? Below(cells_, 0) : 0);
    const Index skip_cells = plan_.rows ? 0 : held_[last_].begin - cells_[last_].begin;
    bool odd = false;
    for (Index r = 0; r < rows; ++r) {
      const double* own = terms + (skip_rows + r) * line_ + skip_cells * S::parts * lanes_each_;
      const double* from = arrived + r * held_line_;
      switch (KindOf(plan_.formula)) {
        case Kind::smooth: odd |= Multiply<false>(own, from); break;
        default:
          LoadLine(skip_rows + r);
          std::memmove(raw_, raw_ + skip_cells * lanes_each_,
                       static_cast<std::size_t>(held_cells_ * lanes_each_) * sizeof(Raw));
          odd |= Multiply<true>(own, from);
      }
      const Index offset = Offset(gx, RowAt(held_, r));
      const Index stride = gx.pooled[last_];
      if (!plan_.rows) {
        StoreRow<Raw>(gx, stride, gx_offsets_, offset, columns, lanes_, raw_, lanes_.width);
        continue;
      }
      Raw* to = static_cast<Raw*>(gx.data) + gx_offsets_[0] + offset;
      if (stride == 1)
        std::memcpy(to, raw_, static_cast<std::size_t>(columns) * sizeof(Raw));
      else
        for (Index c = 0; c < columns; ++c) to[c * stride] = raw_[c];
    }
    if (odd) plan_.odd->store(true, std::memory_order_relaxed);
  }

  // One row of results in place of the row of x; for Lp the term is divided by x. True if a result is NaN.
  template <bool divide>
  HWY_NOINLINE bool Multiply(const double* HWY_RESTRICT terms, const double* HWY_RESTRICT arrived) {
    const DD d;
    const VD zero = hn::Zero(d);
    MD odd = hn::Gt(zero, zero);
    for (Index cell = 0; cell < held_cells_; ++cell)
      for (Index l = 0; l < lanes_each_; l += step) {
        const double* own = terms + cell * S::parts * lanes_each_ + l;
        const double* from = arrived + cell * A::parts * lanes_each_ + l;
        Raw* to = raw_ + cell * lanes_each_ + l;
        VD f = hn::LoadU(d, own + S::at_f * lanes_each_);
        const VD g = hn::LoadU(d, from + A::at_f * lanes_each_);
        VD exponent = zero;
        if constexpr (pairs) exponent = hn::Add(hn::LoadU(d, own), hn::LoadU(d, from));
        if constexpr (divide) {
          const VD x = LoadWide<T>(d, to);
          const MD none = hn::Eq(x, zero);
          if constexpr (pairs && S::precise) {  // the quotient may be out of range where the product is not
            VD k;
            VD m;
            math::SplitAnyExponent(d, hn::Abs(x), k, m);
            f = hn::CopySign(hn::Div(f, m), x);
            exponent = hn::Sub(exponent, k);
          } else {
            f = hn::Div(f, x);
          }
          f = hn::IfThenZeroElse(none, f);
        }
        VD product = hn::Mul(f, g);
        if constexpr (pairs) product = ScalePair(d, product, exponent);
        product = hn::Add(product, zero);  // no -0 from cells that no window holds
        odd = hn::Or(odd, hn::IsNaN(product));
        StoreRounded<T>(product, to);
      }
    return !hn::AllFalse(d, odd);
  }

  const plan::Plan& plan_;
  std::size_t last_;
  Ranges cells_{}, windows_{}, held_{};  // x read, outputs, and gx written by this task
  Lanes lanes_{};
  Index lanes_each_ = 0, line_cells_ = 0, held_cells_ = 0, line_ = 0, held_line_ = 0;
  Raw* raw_ = nullptr;
  double* scan_ = nullptr;
  double real_[lanes_each] = {}, padded_[lanes_each] = {};  // taps along the axes before the last
  const Raw* sources_[lanes_each] = {};
  Index x_offsets_[lanes_each] = {}, gy_offsets_[lanes_each] = {}, gx_offsets_[lanes_each] = {};
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
