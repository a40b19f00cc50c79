// Smooth max and Lp: sums of exp(beta * x) or |x|^p over windows, their logarithms or roots, and their derivatives.
// Each term is computed once per cell and shared by all windows that hold it.
//
// Two kinds of terms (math-inl.hpp): plain doubles, as long as every exponent of a task is moderate, and pairs with an
// exponent of their own. Scaling by powers of two is exact, so that both give the same bits: which of them served a
// task cannot be seen in the results.
//
// Where rows are long enough to stream, rows of terms of either kind are made as they come.
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

enum class Kind : std::uint8_t { smooth, powers, products, magnitudes, squares };  // Lp: any p, 3 .. 16, 1, 2

inline Kind KindOf(const plan::Formula& formula) {
  if (formula.p == 0) return Kind::smooth;
  if (formula.p == 1) return Kind::magnitudes;
  return formula.p == 2 ? Kind::squares : Kind::powers;
}
// How terms are made: small powers of cells that were f32 or shorter are products.
inline Kind TermKindOf(const plan::Formula& formula) {
  const Kind kind = KindOf(formula);
  return kind == Kind::powers && formula.p >= 3 && formula.p <= 16 && formula.p == std::floor(formula.p)
             ? Kind::products
             : kind;
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
using MD = MaskOf<DD>;

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
  } else if constexpr (kind == Kind::products) {
    static_assert(!precise);
    ProductPair(d, static_cast<int>(hn::GetLane(parameter)), hn::Abs(x), n, f);
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

// Terms that may leave the range of f64 where cells were f32 or shorter.
template <Kind kind>
inline constexpr bool has_exponent = kind != Kind::magnitudes && kind != Kind::squares;

// The magnitude is at most `high`, and not below `low` unless it is 0.
HWY_INLINE MD Within(VD x, double low, double high) {
  const DD d;
  const VD magnitude = hn::Abs(x);
  const MD fits = hn::Le(magnitude, hn::Set(d, high));
  if (low == 0) return fits;
  return hn::And(fits, hn::Or(hn::Ge(magnitude, hn::Set(d, low)), hn::Eq(magnitude, hn::Zero(d))));
}

// Makes the terms of a vector of cells, in the parts of the state S. Cells that are no numbers, or beyond what terms
// can say, get NaN.
template <class S, Kind kind>
class TermMaker {
 public:
  // Plain terms lie within 2^-most .. 2^most.
  TermMaker(const plan::Formula& formula, double most)
      : parameter_(kind == Kind::smooth ? formula.beta : formula.p), most_(most), high_(std::exp2(most)) {
    limit_ = precise ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
    d_limit_ = !precise ? limit_ : (pairs && kind == Kind::smooth ? pair_high : plain_high);
    if (precise && kind == Kind::smooth) limit_ = std::fmin(limit_, precise_limit / std::fabs(formula.beta));
    if (quotients) limit_ = quotient_high;
  }

  // Terms that need pairs are not `fine`.
  HWY_INLINE void operator()(VD x, VD dx, VD (&s)[S::parts], MD& fine) const {
    const DD d;
    const VD zero = hn::Zero(d);
    const VD nan = hn::Set(d, no_number);
    const VD parameter = hn::Set(d, parameter_);
    const MD good = Within(x, quotients ? quotient_low : 0, limit_);
    VD n = zero;
    VD f;
    VD c = zero;
    if constexpr (multiplies) {  // the bits of ProductPair: there is nothing to keep apart in this range
      f = hn::Abs(x);
      for (int i = static_cast<int>(parameter_); i > 1; --i) f = hn::Mul(f, hn::Abs(x));
    } else {
      Term<typename S::Scalar, kind>(parameter, x, n, f, c);
    }
    VD t = zero;
    MD good_t = good;
    if constexpr (tangent) {
      t = kind == Kind::smooth ? hn::Mul(f, dx) : hn::IfThenZeroElse(hn::Eq(x, zero), hn::Mul(f, hn::Div(dx, x)));
      good_t = hn::And(good, Within(dx, d_low, d_limit_));
    }
    if constexpr (pairs) {
      s[0] = hn::IfThenElseZero(good, n);
    } else {
      MD plain = hn::Eq(zero, zero);
      if constexpr (multiplies) {
        plain = hn::And(Within(f, 1 / high_, high_), hn::Or(hn::Ne(f, zero), hn::Eq(x, zero)));  // not of underflow
      } else if constexpr (precise || has_exponent<kind>) {
        if constexpr (kind != Kind::smooth) n = hn::IfThenZeroElse(hn::Eq(f, zero), n);
        plain = hn::Le(hn::Abs(n), hn::Set(d, most_));
        const VD scale = math::PowerOfTwo(d, n);
        f = hn::Mul(f, scale);
        c = hn::Mul(c, scale);
        t = hn::Mul(t, scale);
      }
      // Pairs of f64 carry tangents that plain terms do not.
      fine = hn::And(fine, precise ? hn::And(plain, good_t) : hn::Or(plain, hn::Not(good)));
    }
    s[S::at_f] = hn::IfThenElse(good, f, nan);
    if constexpr (precise) s[S::at_c] = c;
    if constexpr (tangent) s[S::at_t] = hn::IfThenElse(good_t, t, nan);
  }

 private:
  static constexpr bool precise = S::precise, pairs = S::pairs, tangent = S::tangent;
  static constexpr bool quotients = precise && tangent && kind != Kind::smooth;
  static constexpr bool multiplies = kind == Kind::products && !pairs;
  static constexpr double d_low = !precise || (pairs && kind == Kind::smooth) ? 0 : plain_low;
  double parameter_, most_, high_;
  double limit_, d_limit_;  // of cells and of tangents
};

// Terms of 0, 1, 2 .. 255, the cells of most pictures: looking them up takes a third of the time of making them. They
// are made as those of other cells are, so that results do not tell.
template <class S, Kind kind>
class WholeTerms {
 public:
  static constexpr bool useful =
      std::is_same_v<typename S::Scalar, float> && !S::tangent && (kind == Kind::smooth || kind == Kind::powers);

  // Puts the terms of the leading cells in rows `pitch` apart, and returns of how many: nearly all of a long row, if
  // they are such numbers.
  static Index Put(const plan::Formula& formula, const TermMaker<S, kind>& make, const float* cells, Index count,
                   double* to, Index pitch) {
    if (count < chunk) return 0;
    thread_local WholeTerms terms;  // of the operator at hand
    const double parameter = kind == Kind::smooth ? formula.beta : formula.p;
    if (parameter != terms.parameter_) terms.Fill(parameter, make);
    return terms.LookUp(cells, count, to, pitch);
  }

 private:
  static constexpr Index size = 256, chunk = 64;

  HWY_INLINE Index LookUp(const float* HWY_RESTRICT cells, Index count, double* HWY_RESTRICT to, Index pitch) const {
    Index done = 0;
    for (Index found = chunk; found == chunk && done + chunk <= count; done += found) {
      HWY_ALIGN std::int32_t wholes[chunk];
      found = Find(cells + done, wholes);
      for (int part = 0; part < S::parts; ++part)
        for (Index i = 0; i < found; ++i) to[part * pitch + done + i] = terms_[part][wholes[i]];
    }
    return done;
  }

  void Fill(double parameter, const TermMaker<S, kind>& make) {
    const DD d;
    parameter_ = parameter;
    MD fine = hn::Eq(hn::Zero(d), hn::Zero(d));
    for (count_ = 0; count_ < size; count_ += vector_lanes<double>) {
      VD made[S::parts];
      make(hn::Iota(d, static_cast<double>(count_)), hn::Zero(d), made, fine);
      if (!hn::AllTrue(d, fine)) return;  // neither are larger ones
      S::Store(made, terms_[0] + count_, size);
    }
  }

  // The numbers of a chunk, up to the first vector that holds others.
  HWY_INLINE Index Find(const float* cells, std::int32_t* wholes) const {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> integers;
    const hn::RebindToUnsigned<decltype(d)> bits;
    const auto end = hn::Set(bits, static_cast<std::uint32_t>(count_));
    Index i = 0;
    for (; i < chunk; i += vector_lanes<float>) {
      const auto x = hn::LoadU(d, cells + i);
      const auto whole = hn::ConvertTo(integers, x);
      const auto same = hn::Eq(hn::ConvertTo(d, whole), x);
      if (!hn::AllTrue(d, hn::And(same, hn::RebindMask(d, hn::Lt(hn::BitCast(bits, whole), end))))) break;
      hn::Store(whole, integers, wholes + i);
    }
    return i;
  }

  double parameter_ = no_number;
  Index count_ = 0;
  double terms_[S::parts][size];
};

// Calls use.template operator()<kind>() with the kind of terms of a formula.
template <class T, class F>
HWY_INLINE void WithTermKind(const plan::Formula& formula, F&& use) {
  switch (TermKindOf(formula)) {
    case Kind::smooth: return use.template operator()<Kind::smooth>();
    case Kind::products:
      if constexpr (!std::is_same_v<T, double>) return use.template operator()<Kind::products>();
      [[fallthrough]];
    case Kind::powers: return use.template operator()<Kind::powers>();
    case Kind::magnitudes: return use.template operator()<Kind::magnitudes>();
    case Kind::squares: return use.template operator()<Kind::squares>();
  }
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
    hn::StoreU(RoundToHalves<T>(v), hn::Rebind<std::uint16_t, DD>(), to);
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
      const CommonExponent<D> common(d, a[0], b[0]);
      a[0] = common.n;
      if constexpr (precise)
        common.AddPrecise(a[at_f], a[at_c], b[at_f], b[at_c], a[at_f], a[at_c]);
      else
        a[at_f] = common.Add(a[at_f], b[at_f]);
      if constexpr (tangent) a[at_t] = common.Add(a[at_t], b[at_t]);
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
    WithTermKind<T>(formula, [&]<Kind kind>() { LiftAs<kind>(formula, from, to, cells, width); });
  }

 private:
  template <Kind kind>
  static HWY_NOINLINE void LiftAs(const plan::Formula& formula, const Raw* HWY_RESTRICT from, Lane* HWY_RESTRICT to,
                                  Index cells, Index width) {
    const D d;
    const TermMaker<PowerSumState, kind> make(formula, plain_exponent);
    MD fine = hn::Eq(hn::Zero(d), hn::Zero(d));
    for (Index cell = 0; cell < cells; ++cell) {
      for (Index l = 0; l < width; l += vector_lanes<double>) {
        V terms[parts];
        make(LoadWide<T>(d, from + l), LoadWide<T>(d, from + (inputs - 1) * width + l), terms, fine);
        Store(terms, to + l, width);
      }
      from += inputs * width;
      to += parts * width;
    }
    if (!hn::AllTrue(d, fine)) Exceeds() = true;
  }
};

// Rows of terms that stream: each row is lifted once, into a row for each part.
template <class T, bool pairs, bool tangent>
struct TermState : PowerSumState<T, pairs, tangent> {
  using Base = PowerSumState<T, pairs, tangent>;
  using Source = typename Base::Raw;
  using Raw = double;
  using V = VD;
  using Base::parts;
  static constexpr int sources = Base::inputs, inputs = parts;
  static constexpr bool lifts = false, common = true;

  // There is no term where a row has no cell, and its exponent must not count.
  static HWY_INLINE void Tap(V (&s)[parts], const V (&raw)[parts], Index, int) {
    HWY_UNROLL(4)
    for (int part = 0; part < parts; ++part) s[part] = raw[part];
    if constexpr (pairs)
      s[0] = hn::IfThenElse(hn::Eq(raw[Base::at_f], hn::Zero(DD())), hn::Set(DD(), zero_exponent), raw[0]);
  }
  static HWY_INLINE void Bound(V (&)[parts], const std::uint64_t*, const std::uint64_t*) {}

  // What a task goes on to compute counts for nothing.
  static bool Failed() { return !pairs && Exceeds(); }

  // The cells of a row within `cells`, and the tangents of a second one, become rows of terms `pitch` apart.
  static void LiftRow(const plan::Formula& formula, const Source* const (&from)[sources], plan::Span cells, double* to,
                      Index pitch) {
    WithTermKind<T>(formula, [&]<Kind kind>() { LiftRowAs<kind>(formula, from, cells, to, pitch); });
  }

 private:
  static constexpr Index n = vector_lanes<double>;
  // Sums of a million terms, and of their products with tangents of f32, stay in the range of f64.
  static constexpr double streamed_exponent = tangent ? 800 : 1000;

  template <Kind kind>
  static HWY_NOINLINE void LiftRowAs(const plan::Formula& formula, const Source* const (&from)[sources],
                                     plan::Span cells, double* HWY_RESTRICT to, Index pitch) {
    const DD d;
    const TermMaker<Base, kind> make(formula, streamed_exponent);
    MD fine = hn::Eq(hn::Zero(d), hn::Zero(d));
    const auto lift = [&](const Source* x, const Source* dx, double* terms, Index apart) HWY_ATTR {
      V made[parts];
      make(LoadWide<T>(d, x), LoadWide<T>(d, dx), made, fine);
      Base::Store(made, terms, apart);
    };
    const Source* const second = from[sources - 1];
    if (cells.size() >= n) {
      Index begin = cells.begin;
      if constexpr (WholeTerms<Base, kind>::useful)
        begin += WholeTerms<Base, kind>::Put(formula, make, from[0] + begin, cells.size(), to + begin, pitch);
      // The last vector may begin inside the one before.
      for (Index i = begin; i < cells.end; i += n) {
        const Index at = HWY_MIN(i, cells.end - n);
        lift(from[0] + at, second + at, to + at, pitch);
      }
    } else {
      Source few[2][n] = {};
      double made[parts][n];
      const auto bytes = static_cast<std::size_t>(cells.size()) * sizeof(Source);
      std::memcpy(few[0], from[0] + cells.begin, bytes);
      std::memcpy(few[1], second + cells.begin, bytes);
      lift(few[0], few[1], made[0], n);
      for (int part = 0; part < parts; ++part) std::copy_n(made[part], cells.size(), to + part * pitch + cells.begin);
    }
    if (!hn::AllTrue(d, fine)) Exceeds() = true;
  }
};
// f64 has terms of two parts, which cost more to compute than to put in place.
template <class T, bool pairs, bool tangent>
  requires(!std::is_same_v<T, double>)
struct RowTerms<PowerSumState<T, pairs, tangent>> {
  using type = TermState<T, pairs, tangent>;
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
  static Index Numbers(Index columns) { return columns + vector_lanes<double>; }
  static ResultPlace<Raw> Output(int i, const RowShape& row, const double*, const Raw* out) {
    return {out + i * row.cells * row.width, row.width};
  }

  // `numbers` is scratch that is kept between the rows of a task.
  void Row(const RowShape& row, const double* states, Raw* out, double* numbers) {
    switch (KindOf(row.plan->formula)) {
      case Kind::smooth: CountExtras(row, numbers); return RowAs<Kind::smooth>(row, states, out, numbers);
      case Kind::products:
      case Kind::powers: return RowAs<Kind::powers>(row, states, out, numbers);
      case Kind::magnitudes: return RowAs<Kind::magnitudes>(row, states, out, numbers);
      case Kind::squares: return RowAs<Kind::squares>(row, states, out, numbers);
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

  // Rows with as many taps along the other axes have the same.
  void CountExtras(const RowShape& row, double* numbers) {
    if (row.outer_real == real_ && row.outer_padded == padded_) return;
    real_ = row.outer_real;
    padded_ = row.outer_padded;
    for (Index c = 0; c < row.columns; ++c) numbers[c] = Extra(row, c);
    std::fill_n(numbers + row.columns, vector_lanes<double>, 0.0);
  }
  Index real_ = -1, padded_ = -1;

  template <Kind kind>
  static HWY_NOINLINE void RowAs(const RowShape& row, const double* states, Raw* out, const double* numbers) {
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
      if (kind == Kind::smooth && !row.plan->rows) extra = hn::Set(d, numbers[cell]);
      for (Index l = 0; l < lanes; l += step) {
        if (kind == Kind::smooth && row.plan->rows) extra = hn::LoadU(d, numbers + l);
        const bool extras = kind == Kind::smooth && !hn::AllTrue(d, hn::Eq(extra, hn::Zero(d)));
        WindowSum<S> sum;
        sum.Load(p + l, row.width);
        if (extras) sum.AddZeros(extra);
        const MD real = hn::FirstN(d, static_cast<std::size_t>(HWY_MIN(step, lanes - l)));
        VD y = hn::Zero(d);
        if (kind != Kind::smooth || value || !tangent) {
          y = sum.template Value<kind>(parameter);
          if (extras) y = hn::IfThenElse(hn::IsNaN(extra), extra, y);
          if (value || !tangent) {
            odd = hn::Or(odd, hn::And(real, hn::IsNaN(y)));
            StoreRounded<T>(y, to + l);
          }
        }
        if constexpr (tangent) {
          VD dy = hn::Div(sum.t, sum.Total());
          if constexpr (kind != Kind::smooth) dy = hn::Mul(dy, y);
          dy = hn::IfThenZeroElse(hn::Eq(sum.f, hn::Zero(d)), dy);
          dy = hn::Add(dy, hn::Zero(d));  // no -0: rows have +0 where a window has no tap
          odd = hn::Or(odd, hn::And(real, hn::IsNaN(dy)));
          StoreRounded<T>(dy, to + row.cells * row.width + l);
        }
      }
    }
    if (!hn::AllFalse(d, odd)) row.plan->odd->store(true, std::memory_order_relaxed);
  }
};

template <class T, bool pairs, bool tangent>
struct Finish<TermState<T, pairs, tangent>> : Finish<PowerSumState<T, pairs, tangent>> {};

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

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
