// What a reduction carries per lane, and how two neighbouring pieces of a window become one. A state has `parts`
// vectors and three ways in and out:
//   First   one tap from the input          Load / Store   a piece from or to a tile
//   Merge   acc = (acc, later)              MergeBefore    acc = (earlier, acc)
//   Tap     one tap from registers          Bound          numbers of taps that exist
// `overlaps` states may see a tap twice. `common` states deserve loops of their own for the most usual windows, at the
// price of their compilation. `widens` states add in a type wider than the input's. A vector of the input may fill
// several vectors of states; `group` says which of them. Every merge keeps the order of taps, so that the first maximum
// and the last NaN win whatever the tree (M2, M3).
#if defined(CENOTE_KERNELS_STATES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_STATES_INL_HPP
#undef CENOTE_KERNELS_STATES_INL_HPP
#else
#define CENOTE_KERNELS_STATES_INL_HPP
#endif

#include "cenote/half.hpp"
#include "kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// How a scalar stands in a vector: halves as their bits.
template <class T>
using Lane = std::conditional_t<Half<T>, std::uint16_t, T>;

// later > earlier, or later < earlier, or later is NaN.
template <class T, bool largest>
struct Order {
  using D = hn::ScalableTag<Lane<T>>;
  using V = hn::VFromD<D>;
  using M = MaskOf<D>;

  static HWY_INLINE M Takes(V later, V earlier) {
    if constexpr (Half<T>) {
      // Halves compare as signed magnitudes; both zeros are 0.
      const hn::RebindToSigned<D> di;
      const V magnitudes = hn::Set(D(), 0x7fff);
      const V infinity = hn::Set(D(), static_cast<std::uint16_t>(T::infinity_bits));
      const auto key = [&](V v) {
        const auto magnitude = hn::BitCast(di, hn::And(v, magnitudes));
        return hn::IfThenElse(hn::Lt(hn::BitCast(di, v), hn::Zero(di)), hn::Neg(magnitude), magnitude);
      };
      const auto a = key(earlier);
      const auto b = key(later);
      const auto nan = hn::Gt(hn::BitCast(di, hn::And(later, magnitudes)), hn::BitCast(di, infinity));
      const auto other = hn::Gt(hn::BitCast(di, hn::And(earlier, magnitudes)), hn::BitCast(di, infinity));
      const auto beats = largest ? hn::Gt(b, a) : hn::Lt(b, a);
      return hn::RebindMask(D(), hn::Or(nan, hn::AndNot(other, beats)));
    } else {
      const M beats = largest ? hn::Gt(later, earlier) : hn::Lt(later, earlier);
      if constexpr (std::is_floating_point_v<T>)
        return hn::Or(beats, hn::IsNaN(later));
      else
        return beats;
    }
  }

  static HWY_INLINE V Best(V later, V earlier) {
    if constexpr (std::is_integral_v<T>) return largest ? hn::Max(later, earlier) : hn::Min(later, earlier);
#if HWY_ARCH_X86
    // The instructions return their second operand if the two are equal or one is NaN.
    if constexpr (std::is_floating_point_v<T>)
      return hn::IfThenElse(hn::IsNaN(later), later, largest ? hn::Max(later, earlier) : hn::Min(later, earlier));
#endif
    return hn::IfThenElse(Takes(later, earlier), later, earlier);
  }
};

// What all selections have in common.
template <class T, bool largest>
struct SelectionState {
  using Scalar = T;
  using Raw = cenote::HWY_NAMESPACE::Lane<T>;
  using Lane = Raw;
  using D = hn::ScalableTag<Lane>;
  using V = hn::VFromD<D>;
  static constexpr bool lifts = false, repeats = true, weighted = false,
                        common = largest && (std::is_floating_point_v<T> || sizeof(T) == 1);
};

// Cells that tell one order of merging extremes from another: NaN and -0.
template <class D>
HWY_INLINE MaskOf<D> TellsOrder(D d, hn::VFromD<D> cells) {
#if HWY_TARGET <= HWY_AVX3
  constexpr int nan_or_minus_zero = 0x85;
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 64) {
    if constexpr (sizeof(hn::TFromD<D>) == 4)
      return MaskOf<D>{_mm512_fpclass_ps_mask(cells.raw, nan_or_minus_zero)};
    else
      return MaskOf<D>{_mm512_fpclass_pd_mask(cells.raw, nan_or_minus_zero)};
  }
#endif
  const hn::RebindToUnsigned<D> bits;
  using U = hn::TFromD<decltype(bits)>;
  const auto minus = hn::Eq(hn::BitCast(bits, cells), hn::Set(bits, U{1} << (8 * sizeof(U) - 1)));
  return hn::Or(hn::IsNaN(cells), hn::RebindMask(d, minus));
}

// The extreme value.
template <class T, bool largest>
struct ExtremeState : SelectionState<T, largest> {
  using Base = SelectionState<T, largest>;
  using typename Base::D, typename Base::Lane, typename Base::Raw, typename Base::V;
  static constexpr int parts = 1, inputs = 1;
  static constexpr bool plain = true, overlaps = true, is_largest = largest;

  static HWY_INLINE void First(V (&s)[1], const Raw* p, Index, Index, double) { s[0] = hn::LoadU(D(), p); }
  static HWY_INLINE void Tap(V (&s)[1], const V (&raw)[1], Index, int) { s[0] = raw[0]; }
  static HWY_INLINE void Bound(V (&)[1], const Bits<Lane>*, const Bits<Lane>*) {}
  static HWY_INLINE void Load(V (&s)[1], const Lane* p, Index, Index, double) { s[0] = hn::LoadU(D(), p); }
  static HWY_INLINE void Store(const V (&s)[1], Lane* p, Index) { hn::StoreU(s[0], D(), p); }
  static HWY_INLINE void Merge(V (&acc)[1], const V (&later)[1]) { acc[0] = Order<T, largest>::Best(later[0], acc[0]); }
  static HWY_INLINE void MergeBefore(const V (&earlier)[1], V (&acc)[1]) {
    acc[0] = Order<T, largest>::Best(acc[0], earlier[0]);
  }
  static HWY_INLINE void Shift(V (&)[1], Index) {}
};

// The extreme value and the number of its tap. Numbers wrap around in their lanes: only the last result must fit.
template <class T, bool largest>
struct WinnerState : SelectionState<T, largest> {
  using Base = SelectionState<T, largest>;
  using typename Base::D, typename Base::Lane, typename Base::Raw, typename Base::V;
  using DN = hn::RebindToUnsigned<D>;
  using Number = hn::TFromD<DN>;
  static constexpr int parts = 2, inputs = 1;
  static constexpr bool plain = false;

  static HWY_INLINE V numbers(Index number) { return hn::BitCast(D(), hn::Set(DN(), static_cast<Number>(number))); }
  static HWY_INLINE V plus(V v, Index number) {
    return hn::BitCast(D(), hn::Add(hn::BitCast(DN(), v), hn::Set(DN(), static_cast<Number>(number))));
  }
  static HWY_INLINE void First(V (&s)[2], const Raw* p, Index, Index number, double) {
    s[0] = hn::LoadU(D(), p);
    s[1] = numbers(number);
  }
  static HWY_INLINE void Tap(V (&s)[2], const V (&raw)[1], Index number, int) {
    s[0] = raw[0];
    s[1] = numbers(number);
  }
  static HWY_INLINE void Bound(V (&s)[2], const Number* first, const Number* last) {
    const auto bounded = hn::Min(hn::Max(hn::BitCast(DN(), s[1]), hn::LoadU(DN(), first)), hn::LoadU(DN(), last));
    s[1] = hn::BitCast(D(), bounded);
  }
  static HWY_INLINE void Load(V (&s)[2], const Lane* p, Index pitch, Index number, double) {
    s[0] = hn::LoadU(D(), p);
    s[1] = plus(hn::LoadU(D(), p + pitch), number);
  }
  static HWY_INLINE void Store(const V (&s)[2], Lane* p, Index pitch) {
    hn::StoreU(s[0], D(), p);
    hn::StoreU(s[1], D(), p + pitch);
  }
  static HWY_INLINE void Merge(V (&acc)[2], const V (&later)[2]) {
    const auto takes = Order<T, largest>::Takes(later[0], acc[0]);
    acc[0] = hn::IfThenElse(takes, later[0], acc[0]);
    acc[1] = hn::IfThenElse(takes, later[1], acc[1]);
  }
  static HWY_INLINE void MergeBefore(const V (&earlier)[2], V (&acc)[2]) {
    const auto takes = Order<T, largest>::Takes(acc[0], earlier[0]);
    acc[0] = hn::IfThenElse(takes, acc[0], earlier[0]);
    acc[1] = hn::IfThenElse(takes, acc[1], earlier[1]);
  }
  static HWY_INLINE void Shift(V (&s)[2], Index number) { s[1] = plus(s[1], number); }
};

// The extreme value and the tangent of its tap (the JVP).
template <class T, bool largest>
struct TangentState : SelectionState<T, largest> {
  using Base = SelectionState<T, largest>;
  using typename Base::D, typename Base::Lane, typename Base::Raw, typename Base::V;
  static constexpr int parts = 2, inputs = 2;
  static constexpr bool plain = true;

  static HWY_INLINE void First(V (&s)[2], const Raw* p, Index pitch, Index, double) { Load(s, p, pitch, 0, 1); }
  static HWY_INLINE void Tap(V (&s)[2], const V (&raw)[2], Index, int) {
    s[0] = raw[0];
    s[1] = raw[1];
  }
  static HWY_INLINE void Bound(V (&)[2], const Bits<Lane>*, const Bits<Lane>*) {}
  static HWY_INLINE void Load(V (&s)[2], const Lane* p, Index pitch, Index, double) {
    s[0] = hn::LoadU(D(), p);
    s[1] = hn::LoadU(D(), p + pitch);
  }
  static HWY_INLINE void Store(const V (&s)[2], Lane* p, Index pitch) { WinnerState<T, largest>::Store(s, p, pitch); }
  static HWY_INLINE void Merge(V (&acc)[2], const V (&later)[2]) { WinnerState<T, largest>::Merge(acc, later); }
  static HWY_INLINE void MergeBefore(const V (&earlier)[2], V (&acc)[2]) {
    WinnerState<T, largest>::MergeBefore(earlier, acc);
  }
  static HWY_INLINE void Shift(V (&)[2], Index) {}
};

// What cells are in memory, and how many arrays of them: what a state reads, or what rows of it are made from first.
template <class S>
struct SourceOf {
  using type = typename S::Raw;
  static constexpr int count = S::inputs;
};
template <class S>
  requires requires { typename S::Source; }
struct SourceOf<S> {
  using type = typename S::Source;
  static constexpr int count = S::sources;
};

// A piece is the first of a window, or is merged with those before it.
template <class S>
HWY_INLINE void Join(const typename S::V (&piece)[S::parts], bool first, typename S::V (&acc)[S::parts]) {
  if (!first) return S::Merge(acc, piece);
  HWY_UNROLL(16)
  for (int part = 0; part < S::parts; ++part) acc[part] = piece[part];
}

// Where sums of a scalar are carried (A7): binary64, or an integer that holds every sum the plan admits.
template <class T>
using SumLane =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<(sizeof(T) < 4), std::int32_t,
                                          std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>,
                       double>;

// A vector of f32 from halves.
template <class T, class DF>
HWY_INLINE hn::VFromD<DF> LoadHalves(DF df, const std::uint16_t* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  if constexpr (std::is_same_v<T, bf16>) {
    const hn::Rebind<std::uint32_t, DF> d32;
    return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, p))));
  } else {
#if HWY_TARGET == HWY_SSE4
    // The exponent is moved by a multiplication, which also normalises subnormals.
    const hn::Rebind<std::uint32_t, DF> d32;
    const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, p));
    const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fff));
    const auto sign = hn::ShiftLeft<16>(hn::Sub(bits, magnitude));
    const auto scaled = hn::Mul(hn::BitCast(df, hn::ShiftLeft<13>(magnitude)), hn::Set(df, 0x1p112F));
    const auto special = hn::Gt(magnitude, hn::Set(d32, 0x7bff));
    const auto top = hn::IfThenElseZero(special, hn::Set(d32, 0x7f800000));
    return hn::BitCast(df, hn::Or(hn::Or(hn::BitCast(d32, scaled), top), sign));
#else
    return hn::PromoteTo(df, hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), hn::LoadU(d16, p)));
#endif
  }
}

// And back: to nearest, ties to even; a NaN keeps the bits that there is room for.
template <class T, class DF>
HWY_INLINE hn::VFromD<hn::Rebind<std::uint16_t, DF>> ToHalves(DF df, hn::VFromD<DF> x) {
  constexpr bool short_f32 = std::is_same_v<T, bf16>;
  constexpr int cut = short_f32 ? 16 : 13;
  const hn::RebindToUnsigned<DF> d32;
  const auto number = [&](std::uint32_t n) HWY_ATTR { return hn::Set(d32, n); };
  const auto bits = hn::BitCast(d32, x);
  const auto m = hn::And(bits, number(0x7fffffff));
  const auto kept = hn::ShiftRight<cut>(m);
  const auto nan = hn::Or(hn::And(kept, number(0x7fff)), number(T::infinity_bits | T::quiet_bit));
  const auto up = hn::Add(hn::And(kept, number(1)), number((1U << (cut - 1)) - 1));  // what rounds to nearest
  auto result = hn::ShiftRight<cut>(hn::Add(m, up));
  if constexpr (!short_f32) {
    // The exponent moves from a bias of 127 to one of 15. Below its least, numbers are multiples of 2^-24.
    const auto half = hn::Set(df, 0.5F);
    const auto least = hn::Sub(hn::BitCast(d32, hn::Add(hn::BitCast(df, m), half)), hn::BitCast(d32, half));
    result = hn::Sub(result, number(112U << 10));
    result = hn::IfThenElse(hn::Lt(m, number(113U << 23)), least, result);
    result = hn::IfThenElse(hn::Lt(m, number(143U << 23)), result, number(T::infinity_bits));
  }
  result = hn::IfThenElse(hn::Gt(m, number(0x7f800000)), nan, result);
  return hn::TruncateTo(hn::Rebind<std::uint16_t, DF>(), hn::Or(result, hn::ShiftRight<16>(hn::Xor(bits, m))));
}

template <class T, class D>
HWY_INLINE hn::VFromD<D> LoadWide(D d, const Lane<T>* p) {
  using L = Lane<T>;
  if constexpr (std::is_same_v<L, hn::TFromD<D>>) {
    return hn::LoadU(d, p);
  } else if constexpr (Half<T>) {
    return hn::PromoteTo(d, LoadHalves<T>(hn::Rebind<float, D>(), p));
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<L, D>(), p));
  }
}

// Group number `group` of a vector, in wider lanes.
template <class T, class D, class VR>
HWY_INLINE hn::VFromD<D> WideGroup(D d, VR raw, int group) {
  using L = Lane<T>;
  if constexpr (std::is_same_v<L, hn::TFromD<D>>) {
    return raw;
  } else if constexpr (2 * sizeof(L) == sizeof(hn::TFromD<D>) && !Half<T>) {
    const hn::Rebind<L, D> half;
    return hn::PromoteTo(d, group == 0 ? hn::LowerHalf(half, raw) : hn::UpperHalf(half, raw));
  } else {
    const hn::ScalableTag<L> whole;
    HWY_ALIGN L lanes[hn::MaxLanes(whole)];
    hn::Store(raw, whole, lanes);
    return LoadWide<T>(d, lanes + static_cast<std::size_t>(group) * hn::MaxLanes(d));
  }
}

// The sum of taps, or of their squares. `weigh` multiplies each tap by a number of its position first. Windows of few
// taps add in their own type, which `L` then is.
template <class T, bool weigh, class L = SumLane<T>, bool square = false>
struct SumState {
  using Scalar = T;
  using Raw = cenote::HWY_NAMESPACE::Lane<T>;
  using Lane = L;
  using D = hn::ScalableTag<Lane>;
  using V = hn::VFromD<D>;
  static constexpr int parts = 1, inputs = 1;
  static constexpr bool lifts = false, repeats = false, weighted = weigh, squares = square,
                        plain = std::is_same_v<T, L> && !weigh && !square, common = std::is_floating_point_v<T>,
                        widens = !std::is_same_v<T, L>;

  static HWY_INLINE V Of(V tap) { return squares ? hn::Mul(tap, tap) : tap; }
  static HWY_INLINE void First(V (&s)[1], const Raw* p, Index, Index, double weight) {
    s[0] = Of(LoadWide<T>(D(), p));
    if constexpr (weighted) s[0] = hn::Mul(s[0], hn::Set(D(), static_cast<Lane>(weight)));
  }
  template <class VR>
  static HWY_INLINE void Tap(V (&s)[1], const VR (&raw)[1], Index, int group) {
    s[0] = Of(WideGroup<T>(D(), raw[0], group));
  }
  template <class U>
  static HWY_INLINE void Bound(V (&)[1], const U*, const U*) {}
  static HWY_INLINE void Load(V (&s)[1], const Lane* p, Index, Index, double weight) {
    s[0] = hn::LoadU(D(), p);
    if constexpr (weighted) s[0] = hn::Mul(s[0], hn::Set(D(), static_cast<Lane>(weight)));
  }
  static HWY_INLINE void Store(const V (&s)[1], Lane* p, Index) { hn::StoreU(s[0], D(), p); }
  static HWY_INLINE void Merge(V (&acc)[1], const V (&later)[1]) { acc[0] = hn::Add(acc[0], later[0]); }
  static HWY_INLINE void MergeBefore(const V (&earlier)[1], V (&acc)[1]) { acc[0] = hn::Add(earlier[0], acc[0]); }
  static HWY_INLINE void Shift(V (&)[1], Index) {}
};

// The sum of f64 taps with what its additions lost (Knuth's two-sum): large windows stay within A7.
template <bool weigh>
struct CompensatedState {
  using Scalar = double;
  using Raw = double;
  using Lane = double;
  using D = hn::ScalableTag<double>;
  using V = hn::VFromD<D>;
  static constexpr int parts = 2, inputs = 1;
  static constexpr bool lifts = false, repeats = false, weighted = weigh, plain = false, common = false;

  static HWY_INLINE void First(V (&s)[2], const Raw* p, Index, Index, double weight) {
    s[0] = hn::LoadU(D(), p);
    if constexpr (weighted) s[0] = hn::Mul(s[0], hn::Set(D(), weight));
    s[1] = hn::Zero(D());
  }
  static HWY_INLINE void Tap(V (&s)[2], const V (&raw)[1], Index, int) {
    s[0] = raw[0];
    s[1] = hn::Zero(D());
  }
  static HWY_INLINE void Bound(V (&)[2], const std::uint64_t*, const std::uint64_t*) {}
  static HWY_INLINE void Load(V (&s)[2], const Lane* p, Index pitch, Index, double weight) {
    s[0] = hn::LoadU(D(), p);
    s[1] = hn::LoadU(D(), p + pitch);
    if constexpr (weighted) {
      s[0] = hn::Mul(s[0], hn::Set(D(), weight));
      s[1] = hn::Mul(s[1], hn::Set(D(), weight));
    }
  }
  static HWY_INLINE void Store(const V (&s)[2], Lane* p, Index pitch) {
    hn::StoreU(s[0], D(), p);
    hn::StoreU(s[1], D(), p + pitch);
  }
  static HWY_INLINE void Merge(V (&acc)[2], const V (&later)[2]) {
    const V sum = hn::Add(acc[0], later[0]);
    const V part = hn::Sub(sum, acc[0]);
    const V lost = hn::Add(hn::Sub(acc[0], hn::Sub(sum, part)), hn::Sub(later[0], part));
    acc[0] = sum;
    acc[1] = hn::Add(hn::Add(acc[1], later[1]), lost);
  }
  static HWY_INLINE void MergeBefore(const V (&earlier)[2], V (&acc)[2]) { Merge(acc, earlier); }
  static HWY_INLINE void Shift(V (&)[2], Index) {}
};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
