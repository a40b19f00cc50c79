// Vector mathematics of smooth max and Lp: numbers with an exponent of their own.
//
// exp(beta * x) leaves the range of every machine number long before beta * x is unusual. Subtracting the window's
// extreme cures that, but makes every window compute its own exponentials. Here a term is a pair instead,
//
//   exp(beta * x) = f * 2^n,    n an integer kept in a double, f in [0.7, 1.42]
//
// which cannot overflow, so that it is computed once per cell and shared by all windows. Sums are pairs, too:
//
//   f * 2^n + g * 2^m = F * 2^N,    N = max(n, m),    F = f * 2^(n-N) + g * 2^(m-N)
//
// Both powers of two are exact and at most 1; one of them is 1. What the other one pushes out of F's 53 bits is lost as
// in every sum of doubles, so windows may be reduced by any tree. F is not brought back to [0.7, 1.42]: it grows to
// 1.42 * taps, which no window brings near overflow, and only the logarithm at the end normalises it.
//
//   y = log(sum) / beta = (N * ln 2 + log F) / beta        weight of a tap = f / F * 2^(n-N)
//
// Two grades. The plain functions serve cells that were f32, f16 or bf16: the arithmetic is f64, the polynomials stop
// near 1e-12. beta * x is rounded to 53 bits, an error of |beta * x| * 2^-52 in the exponent. This is harmless at every
// size: two such cells are equal, and so are their pairs, or they differ by 2^-24 of their size or more, and a rounding
// of |beta * x| * 2^-52 is nothing against the |beta * (x - extreme)| ulp of f32 that S6 grants the smaller.
//
// The functions named Precise serve f64. beta * x is kept as a sum of two doubles, f and F carry a tail c, the error
// of the leading part (f + c is the value, |c| about half an ulp of f), and sums are compensated, so that 1024 taps
// cost no more than 2. This holds for |beta * x| <= precise_limit. Beyond it the pair no longer resolves the exponent;
// f stays in range and y within 5 ulp, but the weights of unequal cells are wrong as long as exp can tell them apart:
// neighbours of size 2^45 / beta differ by 2^-8 / beta, and only from 2^63 on by so much that the smaller one vanishes.
// There the caller subtracts an extreme first (S3), or uses the definition.
//
// Lp is the same with |x|^p = f * 2^n; zero is the pair (zero_exponent, 0).
//
// No function branches on data, and lanes never meet: a lane's result depends on that lane's arguments and the
// instruction set, not on the position or the number of lanes. Instruction sets differ where a product and a sum are
// fused or not. NaN and infinities as arguments give some pair, nothing worse.
//
// Polynomials: minimax by the Remez exchange at 60 digits, for the weight named at each, then rounded to f64; the error
// given is that of the rounded coefficients.
#if defined(CENOTE_KERNELS_MATH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_MATH_INL_HPP
#undef CENOTE_KERNELS_MATH_INL_HPP
#else
#define CENOTE_KERNELS_MATH_INL_HPP
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/highway.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// |beta * x| up to which ExpPairPrecise resolves the exponent.
inline constexpr double precise_limit = 0x1p45;

// The exponent of the pair of zero: below every other, and finite when divided by p or negated.
inline constexpr double zero_exponent = -1e300;

namespace math {

inline constexpr double log2_e = 0x1.71547652b82fep+0;  // log2(e) = log2_e + log2_e_tail
inline constexpr double log2_e_tail = 0x1.777d0ffda0d24p-56;
inline constexpr double ln_2 = 0x1.62e42fefa39efp-1;  // ln 2 = ln_2 + ln_2_tail
inline constexpr double ln_2_tail = 0x1.abc9e3b39803fp-56;
inline constexpr double exponent_magic = 0x1p52 + 1023;  // an integer e + this has e's biased exponent as its low bits
inline constexpr std::uint64_t sqrt_half_bits = 0x3FE6A09E667F3BCD;
inline constexpr std::uint64_t one_bits = 0x3FF0000000000000;
inline constexpr std::uint64_t mantissa_bits = 0x000FFFFFFFFFFFFF;

// (2^r - 1) / r on [-0.5, 0.5], weight r / 2^r: 2^r to 2^-40.1 relative.
inline constexpr double exp2_terms[] = {0x1.62e42fef89d1fp-1,  0x1.ebfbdff8ede85p-3,  0x1.c6b08dced33dfp-5,
                                        0x1.3b2ab5ed6fbdfp-7,  0x1.5d874d0712a91p-10, 0x1.430aa882ef50fp-13,
                                        0x1.00d853379d86ap-16, 0x1.61c4f0856d628p-20};

// (e^t - 1 - t) / t^2 on [-0.3535, 0.3535], weight t^2 / e^t: e^t to 2^-59.1 relative.
inline constexpr double exp_terms[] = {0x1.0000000000000p-1,  0x1.555555555555dp-3,  0x1.55555555554f1p-5,
                                       0x1.111111110e622p-7,  0x1.6c16c16c34a1cp-10, 0x1.a01a01b5ea565p-13,
                                       0x1.a01a01295a472p-16, 0x1.71ddea1117cf3p-19, 0x1.27e5c360521a2p-22,
                                       0x1.af76777b12008p-26, 0x1.1e3623f63abf6p-29};

// log2(1 + t) / t on [sqrt(1/2) - 1, sqrt(2) - 1], weight t / log2(1 + t): log2(1 + t) to 2^-35.8 relative.
inline constexpr double log2_terms[] = {
    0x1.71547652a1e9cp+0,  -0x1.715476565d243p-1, 0x1.ec709ebb94c3fp-2,  -0x1.71547097b86acp-2, 0x1.277651fbed6bap-2,
    -0x1.ec72b58af094ap-3, 0x1.a63f44704ed60p-3,  -0x1.714171f4dcbe6p-3, 0x1.45291933a1702p-3,  -0x1.252f2cb20e6b5p-3,
    0x1.2871db3a01d85p-3,  -0x1.24891c01f638ap-3, 0x1.3ce921cf522c6p-4};

// (2 atanh(s) - 2 s) / s^3 in s^2 on [0, 0.02947], weight s^2 / 2: 2 atanh(s) to 2^-61.5 relative.
inline constexpr double atanh_terms[] = {0x1.5555555555555p-1, 0x1.9999999999e06p-2, 0x1.249249242aaf6p-2,
                                         0x1.c71c7259aa3e1p-3, 0x1.745cddff63503p-3, 0x1.3b20b4df69253p-3,
                                         0x1.0f5bf5f6f3fe9p-3, 0x1.0f6a9ac9c521bp-3};

// terms[First] + terms[First + Step] * x + terms[First + 2 * Step] * x^2 + ... by Horner's rule: the fewest operations.
// A recursion, as compilers keep a loop of this length.
template <std::size_t First, std::size_t Step, class D, std::size_t Count, class V = hn::Vec<D>>
HWY_INLINE V Horner(D d, const double (&terms)[Count], V x) {
  const V term = hn::Set(d, terms[First]);
  if constexpr (First + Step >= Count)
    return term;
  else
    return hn::MulAdd(Horner<First + Step, Step>(d, terms, x), x, term);
}

// terms[0] + terms[1] * x + ..., even and odd powers apart: one product more, half the latency.
template <class D, std::size_t Count, class V = hn::Vec<D>>
HWY_INLINE V Polynomial(D d, const double (&terms)[Count], V x) {
  const V square = hn::Mul(x, x);
  return hn::MulAdd(Horner<1, 2>(d, terms, square), x, Horner<0, 2>(d, terms, square));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Clamp(D d, V x, double low, double high) {
  return hn::Min(hn::Max(x, hn::Set(d, low)), hn::Set(d, high));
}

// 2^e for integer-valued e in [-1022, 1023]; 0 for e = -1023.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOfTwo(D d, V e) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(bits, hn::Add(e, hn::Set(d, exponent_magic)))));
}

// a * b = product + error, to 2^-104 of the product (exact if fused) unless the error underflows.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void TwoProduct(D d, V a, V b, V& product, V& error) {
  product = hn::Mul(a, b);
#if HWY_NATIVE_FMA
  (void)d;
  error = hn::MulSub(a, b, product);
#else
  // Halves by masks, not by Dekker's multiplication, which overflows for large factors.
  const hn::RebindToUnsigned<D> bits;
  const auto upper = hn::BitCast(d, hn::Set(bits, ~std::uint64_t{0x7FFFFFF}));
  const V a1 = hn::And(a, upper);
  const V b1 = hn::And(b, upper);
  const V a2 = hn::Sub(a, a1);
  const V b2 = hn::Sub(b, b1);
  const V large = hn::Sub(hn::Mul(a1, b1), product);
  error = hn::Add(hn::Add(hn::Add(large, hn::Mul(a1, b2)), hn::Mul(a2, b1)), hn::Mul(a2, b2));
#endif
}

// add - a * b with one rounding, provided that add and a * b are within a factor of 2 of each other or a * b is 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SubtractProduct(D d, V a, V b, V add) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::NegMulAdd(a, b, add);
#else
  V product;
  V error;
  TwoProduct(d, a, b, product, error);
  return hn::Sub(hn::Sub(add, product), error);
#endif
}

// a + b = sum + error, exact (Knuth).
template <class V>
HWY_INLINE void TwoSum(V a, V b, V& sum, V& error) {
  sum = hn::Add(a, b);
  const V b_part = hn::Sub(sum, a);
  error = hn::Add(hn::Sub(a, hn::Sub(sum, b_part)), hn::Sub(b, b_part));
}

// a = m * 2^k with m in [sqrt(1/2), sqrt(2)), for normal a > 0. For anything else k and m are finite.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SplitExponent(D d, V a, V& k, V& m) {
  const hn::RebindToUnsigned<D> bits;
  const auto shifted = hn::Add(hn::BitCast(bits, a), hn::Set(bits, one_bits - sqrt_half_bits));
  const auto integer = hn::Or(hn::ShiftRight<52>(shifted), hn::BitCast(bits, hn::Set(d, 0x1p52)));
  k = hn::Sub(hn::BitCast(d, integer), hn::Set(d, exponent_magic));
  m = hn::BitCast(d, hn::Add(hn::And(shifted, hn::Set(bits, mantissa_bits)), hn::Set(bits, sqrt_half_bits)));
}

// The same for every finite a > 0, subnormal numbers included.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SplitAnyExponent(D d, V a, V& k, V& m) {
  const auto small = hn::Lt(a, hn::Set(d, 0x1p-1022));
  SplitExponent(d, hn::IfThenElse(small, hn::Mul(a, hn::Set(d, 0x1p54)), a), k, m);
  k = hn::Sub(k, hn::IfThenElseZero(small, hn::Set(d, 54.0)));
}

// 2^r, |r| <= 0.5, to 1e-12 relative; exactly 1 for r = 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2(D d, V r) {
  return hn::MulAdd(Horner<0, 1>(d, exp2_terms, r), r, hn::Set(d, 1.0));
}

// log2(F * 2^N), F normal and > 0, to 2e-11 relative.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log2(D d, V n, V f) {
  V k;
  V m;
  SplitExponent(d, f, k, m);
  const V t = hn::Sub(m, hn::Set(d, 1.0));
  return hn::MulAdd(Polynomial(d, log2_terms, t), t, hn::Add(n, k));
}

// e^(t + u) = f + c for |t| <= 0.3535 and small u. 1 + t is split exactly; only what follows is rounded.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void ExpPrecise(D d, V t, V u, V& f, V& c) {
  const V one = hn::Set(d, 1.0);
  const V r = hn::Add(t, u);
  const V rest = hn::MulAdd(Polynomial(d, exp_terms, r), hn::Mul(r, r), u);
  const V head = hn::Add(one, t);
  const V error = hn::Sub(t, hn::Sub(head, one));
  f = hn::Add(head, hn::Add(rest, error));
  c = hn::Add(hn::Add(hn::Sub(head, f), rest), error);
}

// log(m + c) = high + low for m in [sqrt(1/2), sqrt(2)) and tiny c, to 2^-58 absolute:
// 2 atanh(s) with s = (m + c - 1) / (m + c + 1), the quotient corrected by its remainder.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void LogPrecise(D d, V m, V c, V& high, V& low) {
  const V one = hn::Set(d, 1.0);
  const V above = hn::Sub(m, one);  // exact
  const V below = hn::Add(m, one);
  const V below_error = hn::Sub(m, hn::Sub(below, one));
  const V reciprocal = hn::Div(one, below);
  const V s = hn::Mul(above, reciprocal);
  const V remainder = hn::Add(SubtractProduct(d, s, below, above), hn::NegMulAdd(s, hn::Add(below_error, c), c));
  const V z = hn::Mul(s, s);
  high = hn::Add(s, s);
  const V twice = hn::Mul(hn::Add(remainder, remainder), reciprocal);
  low = hn::MulAdd(Polynomial(d, atanh_terms, z), hn::Mul(z, s), twice);
}

// log2(m + c) = high + low, likewise.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Log2Precise(D d, V m, V c, V& high, V& low) {
  V natural;
  V natural_low;
  LogPrecise(d, m, c, natural, natural_low);
  const V sum = hn::Add(natural, natural_low);  // so that low is tiny: p will multiply it
  natural_low = hn::Sub(natural_low, hn::Sub(sum, natural));
  natural = sum;
  V error;
  TwoProduct(d, natural, hn::Set(d, log2_e), high, error);
  low = hn::MulAdd(natural_low, hn::Set(d, log2_e), hn::MulAdd(natural, hn::Set(d, log2_e_tail), error));
}

// 2^(a + b + low) = (f + c) * 2^n for |a|, |b| < 2^51 and small low.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Exp2Sum(D d, V a, V b, V low, V& n, V& f, V& c) {
  const V first = hn::Round(a);
  V sum;
  V error;
  TwoSum(hn::Sub(a, first), b, sum, error);
  const V second = hn::Round(sum);
  const V r = hn::Sub(sum, second);
  n = hn::Add(first, second);
  V t;
  V u;
  TwoProduct(d, r, hn::Set(d, ln_2), t, u);
  u = hn::MulAdd(hn::Add(error, low), hn::Set(d, ln_2), hn::MulAdd(r, hn::Set(d, ln_2_tail), u));
  ExpPrecise(d, t, Clamp(d, u, -0x1p-6, 0x1p-6), f, c);
}

// |x|^p of a pair (k, m + c): 2^(p * (k + log2(m + c))).
template <class D, class V = hn::Vec<D>>
HWY_INLINE void PowPrecise(D d, V p, V k, V m, V c, V& n, V& f, V& tail) {
  V high;
  V low;
  Log2Precise(d, m, c, high, low);
  V whole;
  V whole_error;
  TwoProduct(d, p, k, whole, whole_error);
  V part;
  V part_error;
  TwoProduct(d, p, high, part, part_error);
  Exp2Sum(d, whole, part, hn::MulAdd(p, low, hn::Add(whole_error, part_error)), n, f, tail);
}

// ((F + C) * 2^N)^(factor / p) = (f + c) * 2^n. The quotient by p is kept to three parts before it is multiplied.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void RootPrecise(D d, V n_sum, V f_sum, V c_sum, V p, V factor, V& n, V& f, V& c) {
  V k;
  V m;
  SplitExponent(d, f_sum, k, m);
  V high;
  V low;
  // The tail of m: C * 2^-k. F < 2^900, so the power is normal.
  Log2Precise(d, m, hn::Mul(c_sum, PowerOfTwo(d, Clamp(d, hn::Neg(k), -1022, 1022))), high, low);
  const V exponent = hn::Add(n_sum, k);
  const V whole = hn::Div(exponent, p);
  const V part = hn::Div(high, p);
  const V rest =
      hn::Div(hn::Add(hn::Add(SubtractProduct(d, whole, p, exponent), SubtractProduct(d, part, p, high)), low), p);
  V a;
  V a_error;
  TwoProduct(d, whole, factor, a, a_error);
  V b;
  V b_error;
  TwoProduct(d, part, factor, b, b_error);
  Exp2Sum(d, a, b, hn::MulAdd(rest, factor, hn::Add(a_error, b_error)), n, f, c);
}

}  // namespace math

// ---- sums of pairs ------------------------------------------------------------------------------------------------

// 2^(n - largest): what a mantissa is multiplied by to join a sum with the exponent `largest` >= n. A window whose
// exponents are all at hand is added with one Max and one ScaleTo per tap, cheaper than pair by pair:
//   N = max over taps of n,    F = sum of f * ScaleTo(n, N)
//
// Valid Lane Types: float64
//        Max Error: exact; 0 if n - largest <= -1023
//      Valid Range: integers n <= largest of any size
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ScaleTo(D d, V n, V largest) {
  return math::PowerOfTwo(d, hn::Max(hn::Sub(n, largest), hn::Set(d, -1023.0)));
}

// The common exponent of two pairs, and what the mantissas of each are multiplied by to have it.
template <class D>
struct CommonExponent {
  using V = hn::Vec<D>;
  V n, left, right;
  HWY_INLINE CommonExponent(D d, V a, V b) : n(hn::Max(a, b)), left(ScaleTo(d, a, n)), right(ScaleTo(d, b, n)) {}

  // f * 2^a + g * 2^b = the result * 2^n. Mantissas may be negative (tangents, the VJP's gradients). The same on every
  // instruction set.
  //
  // Valid Lane Types: float64
  //        Max Error: 0.5 ulp, as of one addition
  //      Valid Range: integers a, b of any size; f, g 0 or of magnitude in [2^-900, 2^1000]
  HWY_INLINE V Add(V f, V g) const { return hn::MulAdd(f, left, hn::Mul(g, right)); }

  // (f + c) * 2^a + (g + e) * 2^b = (f_sum + c_sum) * 2^n, compensated: the error of the addition goes into c_sum.
  // Results may be the arguments' own variables.
  //
  // Valid Lane Types: float64
  //        Max Error: 2^-53 * |c_sum| + 2^-1000: after 2^20 additions of positive pairs 2^-66 of the sum
  //      Valid Range: as Add
  HWY_INLINE void AddPrecise(V f, V c, V g, V e, V& f_sum, V& c_sum) const {
    V error;
    math::TwoSum(hn::Mul(f, left), hn::Mul(g, right), f_sum, error);
    c_sum = hn::MulAdd(c, left, hn::MulAdd(e, right, error));
  }
};

// f * 2^e with one rounding, subnormal results and 0 included; infinity if it is too large.
//
// Valid Lane Types: float64
//        Max Error: 0.5 ulp
//      Valid Range: integers e of any size; f 0 or of magnitude in [2^-60, 2^1000]. Smaller f are rounded twice if the
//                   result is subnormal, an error of at most 1 ulp of it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ScalePair(D d, V f, V e) {
  // Two steps, as the power alone may be out of range; the first is exact.
  const V first = math::Clamp(d, e, -960, 1020);
  const V second = math::Clamp(d, hn::Sub(e, first), -960, 1020);
  return hn::Mul(hn::Mul(f, math::PowerOfTwo(d, first)), math::PowerOfTwo(d, second));
}

// ---- smooth max ---------------------------------------------------------------------------------------------------

namespace math {

// Keeps beta * x finite for every x of f32. It changes no result: for such a beta, y is the extreme.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TameBeta(D d, V beta) {
  return Clamp(d, beta, -1e250, 1e250);
}

}  // namespace math

// exp(beta * x) = f * 2^n for x that was f32, f16 or bf16. x = 0 gives exactly (0, 1). 2^(x * beta / ln 2): the factor
// is a constant of the loop.
//
// Valid Lane Types: float64
//        Max Error: |beta * x| * 2^-52 + 1e-12 relative, measured |beta * x| * 2^-52 + 8.2e-13
//      Valid Range: finite x with |x| < 2^128, finite beta != 0
template <class D, class V = hn::Vec<D>>
HWY_INLINE void ExpPair(D d, V beta, V x, V& n, V& f) {
  const V exponent = hn::Mul(x, hn::Mul(math::TameBeta(d, beta), hn::Set(d, math::log2_e)));
  n = hn::Round(exponent);
  f = math::Exp2(d, hn::Sub(exponent, n));  // exact; 0 from 2^52 on, where every double is an integer
}

// exp(beta * x) = (f + c) * 2^n for f64.
//
// beta * x = high + low; n * ln 2 is subtracted in two parts. The first difference is exact: it is a multiple of 2^-54
// (n is an integer, and if it is not 0 then high > 1/3) and smaller than 1/2.
//
// Valid Lane Types: float64
//        Max Error: 0.4 * 2^-53 relative with the tail c (measured 0.31), 0.75 ulp without (0.68)
//      Valid Range: |beta * x| <= precise_limit. Up to 2^1000, f is in [0.69, 1.45] and log(f * 2^n) within
//                   2.2 * 2^-53 * |beta * x| of beta * x. Equal x give equal pairs.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void ExpPairPrecise(D d, V beta, V x, V& n, V& f, V& c) {
  V high;
  V low;
  math::TwoProduct(d, beta, x, high, low);
  n = hn::Round(hn::Mul(high, hn::Set(d, math::log2_e)));
  const V r = math::SubtractProduct(d, n, hn::Set(d, math::ln_2), high);
  const V rest = hn::NegMulAdd(n, hn::Set(d, math::ln_2_tail), low);
  math::ExpPrecise(d, math::Clamp(d, r, -0.3535, 0.3535), math::Clamp(d, rest, -0x1p-6, 0x1p-6), f, c);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE void ExpPairPrecise(D d, V beta, V x, V& n, V& f) {
  V c;
  ExpPairPrecise(d, beta, x, n, f, c);
}

// log(f * 2^n) = n * ln 2 + log f.
//
// Valid Lane Types: float64
//        Max Error: 2e-11 * max(|log|, 0.35), measured 1.6e-11; for n = 0 and f in [0.71, 1.41] relative to the log
//      Valid Range: integers n of any size, normal f > 0
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LogPair(D d, V n, V f) {
  return hn::Mul(math::Log2(d, n, f), hn::Set(d, math::ln_2));
}

// log((f + c) * 2^n). n * ln 2 is formed in three parts; they and the logarithm are added smallest first.
//
// Valid Lane Types: float64
//        Max Error: 0.6 ulp of the larger of the result and 0.35 for |n| < 2^52, 1.1 ulp beyond
//      Valid Range: integers n of any size, f in [2^-900, 2^900], |c| <= 2^-40 * f
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LogPairPrecise(D d, V n, V f, V c) {
  V k;
  V m;
  math::SplitExponent(d, f, k, m);
  V high;
  V low;
  math::LogPrecise(d, m, hn::Mul(c, math::PowerOfTwo(d, math::Clamp(d, hn::Neg(k), -1022, 1022))), high, low);
  const V exponent = hn::Add(n, k);
  V whole;
  V whole_error;
  math::TwoProduct(d, exponent, hn::Set(d, math::ln_2), whole, whole_error);
  whole_error = hn::MulAdd(exponent, hn::Set(d, math::ln_2_tail), whole_error);
  V sum;
  V sum_error;
  math::TwoSum(whole, high, sum, sum_error);
  return hn::Add(sum, hn::Add(sum_error, hn::Add(whole_error, low)));
}

// y = log(f * 2^n) / beta, the end of smooth max, for cells that were f32, f16 or bf16; in f64, to be rounded.
//
// Valid Lane Types: float64
//        Max Error: 2e-11 * max(|y|, largest |x|) for windows of 2 taps or more: S6 with 0.501 ulp of f32
//      Valid Range: as LogPair; |beta| >= 2^-1021
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FinishSmoothMax(D d, V n, V f, V beta) {
  return hn::Mul(math::Log2(d, n, f), hn::Div(hn::Set(d, math::ln_2), math::TameBeta(d, beta)));
}

// y = log((f + c) * 2^n) / beta for f64.
//
// One double is enough before the division. A window of K taps has |beta * y| or |beta * x| >= log(K) / 2 >= 0.34 for
// some tap, so that an ulp of the larger of both is at least 0.34 * 2^-53 / beta; cancellation of n * ln 2 and log f
// does not matter, as the error above is absolute there.
//
// Valid Lane Types: float64
//        Max Error: 2.5 ulp of max(|y|, largest |x|) for windows of 2 taps or more, pairs from ExpPairPrecise; measured
//                   1.4: S6
//      Valid Range: as LogPairPrecise
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FinishSmoothMaxPrecise(D d, V n, V f, V c, V beta) {
  return hn::Div(LogPairPrecise(d, n, f, c), beta);
}

// ---- Lp -----------------------------------------------------------------------------------------------------------

// |x|^p = f * 2^n for x that was f32, f16 or bf16; `magnitude` is |x|. For p = 1 and 2 such cells need no pairs: their
// magnitudes and squares, and 2^20 of them added, are in f64's range.
//
// Valid Lane Types: float64
//        Max Error: p * (|log2 |x|| + 1) * 2^-52 + 1e-12 relative
//      Valid Range: |x| = 0 or in [2^-1022, 2^1023], p in [0, 1e200]
template <class D, class V = hn::Vec<D>>
HWY_INLINE void PowPair(D d, V p, V magnitude, V& n, V& f) {
  const V one = hn::Set(d, 1.0);
  V k;
  V m;
  math::SplitExponent(d, magnitude, k, m);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V z = hn::Mul(s, s);
  const V twice_atanh = hn::MulAdd(math::Polynomial(d, math::atanh_terms, z), hn::Mul(z, s), hn::Add(s, s));
  const V exponent = hn::Mul(p, hn::MulAdd(twice_atanh, hn::Set(d, math::log2_e), k));
  const auto zero = hn::Eq(magnitude, hn::Zero(d));
  const V whole = hn::Round(exponent);
  f = hn::IfThenZeroElse(zero, math::Exp2(d, hn::Sub(exponent, whole)));
  n = hn::IfThenElse(zero, hn::Set(d, zero_exponent), whole);
}

// The same for p = 3, 4 .. 16, by multiplication.
//
// Valid Lane Types: float64
//        Max Error: p / 2 ulp
//      Valid Range: |x| = 0 or in [2^-1022, 2^1023]
template <class D, class V = hn::Vec<D>>
HWY_INLINE void ProductPair(D d, int p, V magnitude, V& n, V& f) {
  V k;
  V m;
  math::SplitExponent(d, magnitude, k, m);
  f = m;
  for (int i = 1; i < p; ++i) f = hn::Mul(f, m);  // within 2^-8 .. 2^8
  const auto zero = hn::Eq(magnitude, hn::Zero(d));
  f = hn::IfThenZeroElse(zero, f);
  n = hn::IfThenElse(zero, hn::Set(d, zero_exponent), hn::Mul(k, hn::Set(d, static_cast<double>(p))));
}

// |x|^p = (f + c) * 2^n for f64.
//
// Valid Lane Types: float64
//        Max Error: p * 2^-58 + 0.4 * 2^-53 relative with the tail c
//      Valid Range: finite |x|, p in [0, 1e6] (to 1e12 with n within 1 and f in range)
template <class D, class V = hn::Vec<D>>
HWY_INLINE void PowPairPrecise(D d, V p, V magnitude, V& n, V& f, V& c) {
  V k;
  V m;
  math::SplitAnyExponent(d, magnitude, k, m);
  const auto zero = hn::Eq(magnitude, hn::Zero(d));
  math::PowPrecise(d, p, k, m, hn::Zero(d), n, f, c);
  n = hn::IfThenElse(zero, hn::Set(d, zero_exponent), n);
  f = hn::IfThenZeroElse(zero, f);
  c = hn::IfThenZeroElse(zero, c);
}

// (f * 2^n)^(1/p), the end of Lp, for cells that were f32, f16 or bf16.
//
// Valid Lane Types: float64
//        Max Error: 2e-11 / p + 1e-12 + 2^-52 * |log2 y| relative
//      Valid Range: pairs with 0 or a result in [2^-1022, 2^1023], p in [1, 1e200]
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FinishLp(D d, V n, V f, V p) {
  const V exponent = hn::Mul(math::Log2(d, n, f), hn::Div(hn::Set(d, 1.0), p));
  const V whole = hn::Round(exponent);
  const V power = math::PowerOfTwo(d, math::Clamp(d, whole, -1023, 1023));
  return hn::Mul(math::Exp2(d, hn::Sub(exponent, whole)), power);
}

// (f * 2^n)^(1/p) for f64 and the pairs of PowPairPrecise.
//
// Valid Lane Types: float64
//        Max Error: 1 ulp of y
//      Valid Range: the pair of 0, or f in [2^-900, 2^900]; p in [1, 1e6]
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FinishLpPrecise(D d, V n, V f, V c, V p) {
  V exponent;
  V root;
  V tail;
  math::RootPrecise(d, n, f, c, p, hn::Set(d, 1.0), exponent, root, tail);
  return ScalePair(d, hn::IfThenElseZero(hn::Gt(f, hn::Zero(d)), root), exponent);
}

// y^(1-p) of the norm y = (f * 2^n)^(1/p), as a pair: the weight of a tap is sign(x) * |x|^(p-1) * y^(1-p). It does not
// overflow where y^(1-p) would, and is shared by all taps of the window.
//
// Valid Lane Types: float64
//        Max Error: p * (2e-11 / p + 2^-52 * (|log2 y| + 1)) + 1e-12 relative
//      Valid Range: y > 0, p in [1, 1e200]
template <class D, class V = hn::Vec<D>>
HWY_INLINE void InverseLpPair(D d, V n, V f, V p, V& m, V& g) {
  const V one = hn::Set(d, 1.0);
  const V exponent = hn::Mul(math::Log2(d, n, f), hn::Div(hn::Sub(one, p), p));
  m = hn::Round(exponent);
  g = math::Exp2(d, hn::Sub(exponent, m));
}

// The same for f64.
//
// Valid Lane Types: float64
//        Max Error: p * 2^-58 + 2^-53 relative
//      Valid Range: y > 0, f in [2^-900, 2^900], p in [1, 1e6]
template <class D, class V = hn::Vec<D>>
HWY_INLINE void InverseLpPairPrecise(D d, V n, V f, V c, V p, V& m, V& g) {
  V tail;
  math::RootPrecise(d, n, f, c, p, hn::Sub(hn::Set(d, 1.0), p), m, g, tail);
}

// p = 1 for f64: |x| = f * 2^n. Sum by AddPairPrecise, c = 0; y = ScalePair(F + C, N).
//
// Valid Lane Types: float64
//        Max Error: exact
//      Valid Range: finite |x|
template <class D, class V = hn::Vec<D>>
HWY_INLINE void MagnitudePair(D d, V magnitude, V& n, V& f) {
  math::SplitAnyExponent(d, magnitude, n, f);
  const auto zero = hn::Eq(magnitude, hn::Zero(d));
  n = hn::IfThenElse(zero, hn::Set(d, zero_exponent), n);
  f = hn::IfThenZeroElse(zero, f);
}

// p = 2 for f64: x^2 = (f + c) * 2^n, f in [0.5, 2].
//
// Valid Lane Types: float64
//        Max Error: 2^-104 relative with the tail c, 0.5 ulp without
//      Valid Range: finite |x|
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SquarePair(D d, V magnitude, V& n, V& f, V& c) {
  MagnitudePair(d, magnitude, n, f);
  math::TwoProduct(d, f, f, f, c);
  n = hn::Add(n, n);
}

// sqrt((f + c) * 2^n), the end of p = 2 for f64.
//
// Valid Lane Types: float64
//        Max Error: 1 ulp
//      Valid Range: f >= 0 in [2^-900, 2^900], or the pair of 0
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FinishSquareRoot(D d, V n, V f, V c) {
  const V half = hn::Floor(hn::Mul(n, hn::Set(d, 0.5)));
  const V odd = hn::Sub(n, hn::Add(half, half));  // 0 or 1
  const V sum = hn::Add(f, c);
  return ScalePair(d, hn::Sqrt(hn::MulAdd(sum, odd, sum)), half);
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // CENOTE_KERNELS_MATH_INL_HPP
