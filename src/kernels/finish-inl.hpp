// The last step of a reduction: pieces become results, windows without a tap become 0.
#if defined(CENOTE_KERNELS_FINISH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_FINISH_INL_HPP
#undef CENOTE_KERNELS_FINISH_INL_HPP
#else
#define CENOTE_KERNELS_FINISH_INL_HPP
#endif

#include <cmath>

#include "cenote/scalar.hpp"
#include "kernels/states-inl.hpp"
#include "plan/plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// One row of results: `cells` cells of `width` lanes. In rows mode it is one cell whose lanes are the columns.
struct RowShape {
  const plan::Plan* plan;
  Index begin, columns;            // outputs of the last axis
  Index outer_real, outer_padded;  // taps along the other axes
  Index cells, width;
  [[nodiscard]] const plan::Taps& taps(Index column) const {
    return plan->axes[static_cast<std::size_t>(plan->rank - 1)].taps[begin + column];
  }
};

// Calls clear(cell or lane) for the windows of a row that have no tap.
template <class F>
HWY_INLINE void EachEmpty(const RowShape& row, F&& clear) {
  if (!row.plan->some_empty) return;
  for (Index c = 0; c < row.columns; ++c)
    if (row.outer_real == 0 || row.taps(c).count == 0) clear(c);
}

template <class S>
struct Finish;

// Where the results of a row stand: cells are `pitch` apart.
template <class Raw>
struct ResultPlace {
  const Raw* base;
  Index pitch;
};

// Where a row of results goes, if it can be written vector by vector; null where there is nothing to write.
template <class Raw>
struct RowTarget {
  Raw* out[2] = {nullptr, nullptr};
  std::uint8_t* winners = nullptr;
  // To the next row. Places that are null stay so: their pitch is 0.
  HWY_INLINE void Step(const Index (&pitch)[3]) {
    out[0] += pitch[0];
    out[1] += pitch[1];
    winners += pitch[2];
  }
};

// Stores the first `count` lanes of a vector: all if they are more, none if they are less than one.
template <class D>
HWY_INLINE void StoreSome(hn::VFromD<D> v, D d, hn::TFromD<D>* to, Index count) {
  if (count >= static_cast<Index>(hn::MaxLanes(d))) return hn::StoreU(v, d, to);
  if (count <= 0) return;
#if HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#else
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  std::memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(hn::TFromD<D>));
#endif
}

// Numbers of winners are put as one or two bytes if that is what they have, or in lanes as wide as the values on the
// way to where they go.
template <class Number>
constexpr int PutBytes(int bytes) {
  return bytes <= 2 && bytes < static_cast<int>(sizeof(Number)) ? bytes : static_cast<int>(sizeof(Number));
}
template <class DN>
HWY_INLINE void PutNumbers(DN dn, hn::VFromD<DN> numbers, int bytes, std::uint8_t* to, Index lane, Index count) {
  using Number = hn::TFromD<DN>;
  const auto put = [&]<class U>(U) HWY_ATTR {
    const hn::Rebind<U, DN> narrow;
    StoreSome(hn::TruncateTo(narrow, numbers), narrow, reinterpret_cast<U*>(to) + lane, count);
  };
  if constexpr (sizeof(Number) > 1)
    if (bytes == 1) return put(std::uint8_t{});
  if constexpr (sizeof(Number) > 2)
    if (bytes == 2) return put(std::uint16_t{});
  StoreSome(numbers, dn, reinterpret_cast<Number*>(to) + lane, count);
}

// Selections: the pieces are the results. The second part of a winner is its number, all ones if there is none.
template <class S, bool numbered = false>
struct FinishSelection {
  using Raw = typename S::Raw;
  void Row(const RowShape& row, typename S::Lane* states, Raw*, double*) {
    EachEmpty(row, [&](Index c) {
      for (int part = 0; part < S::parts; ++part) {
        const int fill = numbered && part == 1 ? 0xff : 0;
        if (row.plan->rows)
          std::memset(states + part * row.width + c, fill, sizeof(Raw));
        else
          std::memset(states + (c * S::parts + part) * row.width, fill,
                      static_cast<std::size_t>(row.width) * sizeof(Raw));
      }
    });
  }
  static ResultPlace<Raw> Output(int i, const RowShape& row, const typename S::Lane* states, const Raw*) {
    return {states + i * row.width, S::parts * row.width};
  }

  void Begin(const RowShape&, double*) {}
  static Index Numbers(Index) { return 0; }
  struct Spot {};
  [[nodiscard]] Spot At(Index, Index) const { return {}; }
  HWY_INLINE void PutAt(Spot, const plan::Plan& plan, const typename S::V (&acc)[S::parts], Index lane, Index cell,
                        Index lanes, const RowTarget<Raw>& target) const {
    Put(plan, acc, lane, cell, lanes, target);
  }
  HWY_INLINE void Put(const plan::Plan& plan, const typename S::V (&acc)[S::parts], Index lane, Index, Index lanes,
                      const RowTarget<Raw>& target) const {
    const typename S::D d;
    if (target.out[0] != nullptr) StoreSome(acc[0], d, target.out[0] + lane, lanes - lane);
    if constexpr (numbered) {
      const hn::RebindToUnsigned<typename S::D> dn;
      PutNumbers(dn, hn::BitCast(dn, acc[1]), plan.winner_bytes, target.winners, lane, lanes - lane);
    } else if constexpr (S::parts == 2) {
      StoreSome(acc[1], d, target.out[1] + lane, lanes - lane);
    }
  }
  static constexpr bool winners = numbered;
};
template <class T, bool largest>
struct Finish<ExtremeState<T, largest>> : FinishSelection<ExtremeState<T, largest>> {};
template <class T, bool largest>
struct Finish<TangentState<T, largest>> : FinishSelection<TangentState<T, largest>> {};
template <class T, bool largest>
struct Finish<WinnerState<T, largest>> : FinishSelection<WinnerState<T, largest>, true> {};

// f64 to halves in one rounding: what f32 cannot hold is remembered in its last bit, which decides no tie of a half.
template <class T>
HWY_INLINE auto RoundToHalves(hn::VFromD<hn::ScalableTag<double>> x) {
  const hn::ScalableTag<double> d;
  const hn::RebindToUnsigned<decltype(d)> d64;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<std::uint16_t, decltype(d)> narrow;
  // Numbers for which f32 has fewer bits are few; those of f16 end long before.
  if constexpr (std::is_same_v<T, bf16>) {
    const auto small = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-126));
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::And(small, hn::Ne(x, hn::Zero(d)))))) {
      HWY_ALIGN double lanes[hn::MaxLanes(d)];
      HWY_ALIGN std::uint16_t bits[hn::MaxLanes(d)];
      hn::Store(x, d, lanes);
      for (std::size_t l = 0; l < hn::MaxLanes(d); ++l) bits[l] = T(lanes[l]).bits;
      return hn::LoadU(narrow, bits);
    }
  }
  const auto bits = hn::BitCast(d64, x);
  const auto rest = hn::And(bits, hn::Set(d64, (std::uint64_t{1} << 29) - 1));
  const auto last = hn::IfThenElseZero(hn::Ne(rest, hn::Zero(d64)), hn::Set(d64, std::uint64_t{1} << 29));
  return ToHalves<T>(df, hn::DemoteTo(df, hn::BitCast(d, hn::Or(hn::Xor(bits, rest), last))));
}

// Sums and averages: divided, converted, and free of -0 (A5). Sums of squares become their roots.
template <class S>
struct FinishSum {
  using T = typename S::Scalar;
  using Raw = typename S::Raw;
  using Wide = typename S::Lane;
  using V = typename S::V;
  static constexpr bool winners = false;

  void Row(const RowShape& row, const Wide* states, Raw* out, double* numbers) {
    Begin(row, numbers);
    constexpr Index step = vector_lanes<Wide>;
    const Index lanes = row.plan->rows ? row.columns : row.width;
    for (Index c = 0; c < (row.plan->rows ? 1 : row.cells); ++c)
      for (Index l = 0; l < lanes; l += step) {
        V sum[S::parts];
        S::Load(sum, states + c * S::parts * row.width + l, row.width, 0, 1);
        Put(*row.plan, sum, l, c, lanes, {{out + c * row.width, nullptr}, nullptr});
      }
    EachEmpty(row, [&](Index c) {
      if (row.plan->rows)
        std::memset(out + c, 0, sizeof(Raw));
      else
        std::memset(out + c * row.width, 0, static_cast<std::size_t>(row.width) * sizeof(Raw));
    });
  }
  static ResultPlace<Raw> Output(int, const RowShape& row, const Wide*, const Raw* out) { return {out, row.width}; }

  // What the windows of a row divide by. `numbers` is scratch that is kept between the rows of a task; rows with a few
  // numbers of taps along the other axes have theirs side by side.
  void Begin(const RowShape& row, double* numbers) {
    const plan::Formula& formula = row.plan->formula;
    numbers_ = numbers;
    by_rows_ = row.plan->rows;
    mean_ = formula.mean;
    if (!formula.mean || formula.divisor.kind == Divisor::Kind::fixed) {
      number_ = By(formula, formula.mean ? static_cast<double>(formula.divisor.number) : 1.0);
      varies_ = false;
      const double divisor = std::round(1 / number_);
      divides_ = near && std::abs(divisor) <= plan::largest_f32_divisor && 1 / divisor == number_;
      divisor_ = static_cast<float>(divides_ ? divisor : 1);
      return;
    }
    const Index outer = formula.divisor.kind == Divisor::Kind::real ? row.outer_real : row.outer_padded;
    Slot& slot = slots_[static_cast<std::size_t>(outer) % slots];
    numbers_ = numbers + static_cast<std::size_t>(outer) % slots * static_cast<std::size_t>(RowNumbers(row.columns));
    if (slot.outer != outer) {
      slot = {outer, false};
      for (Index c = 0; c < row.columns; ++c) {
        const plan::Taps& taps = row.taps(c);
        const Index along = formula.divisor.kind == Divisor::Kind::real ? taps.count : taps.padded;
        const auto number = static_cast<double>(HWY_MAX(Index{1}, outer * along));  // empty: anything
        if constexpr (near)
          divisors()[c] = static_cast<float>(number);
        else
          numbers_[c] = By(formula, number);
        slot.varies = slot.varies || (near ? divisors()[c] != divisors()[0] : numbers_[c] != numbers_[0]);
      }
    }
    varies_ = slot.varies;
    divides_ = near;  // windows of few taps, and no scale
    if constexpr (near)
      divisor_ = divisors()[0];
    else
      number_ = numbers_[0];
  }
  // Numbers that rows of so many columns need.
  static constexpr Index slots = 4;
  static Index RowNumbers(Index columns) { return columns + 2 * vector_lanes<double>; }
  static Index Numbers(Index columns) { return slots * RowNumbers(columns); }

  // What the results in one place of several rows are divided by, if they were added in their own type.
  struct Spot {
    V by;
  };
  [[nodiscard]] HWY_INLINE Spot At(Index lane, Index cell) const {
    const typename S::D d;
    if constexpr (near)
      if (varies_) return {by_rows_ ? hn::LoadU(d, divisors() + lane) : hn::Set(d, divisors()[cell])};
    return {hn::Set(d, static_cast<Wide>(divisor_))};
  }
  HWY_INLINE void PutAt(const Spot& spot, const plan::Plan& plan, const V (&acc)[S::parts], Index lane, Index cell,
                        Index lanes, const RowTarget<Raw>& target) const {
    if constexpr (near)
      if (HWY_LIKELY(divides_)) return Divide(spot, plan, acc[0], target.out[0] + lane, lanes - lane);
    Convert(plan, acc, lane, cell, lanes, target);
  }

  // One vector of results, from lane `lane` of cell `cell` on.
  HWY_INLINE void Put(const plan::Plan& plan, const V (&acc)[S::parts], Index lane, Index cell, Index lanes,
                      const RowTarget<Raw>& target) const {
    if (lane < lanes) PutAt(At(lane, cell), plan, acc, lane, cell, lanes, target);
  }

 private:
  static constexpr bool near = std::is_same_v<Wide, float>, squares = requires { requires S::squares; };

  // Sums that are divided in their own type.
  HWY_INLINE void Divide(const Spot& spot, const plan::Plan& plan, V sum, Raw* out, Index count) const {
    if constexpr (near) {
      const typename S::D d;
      V mean = hn::Div(hn::Add(sum, hn::Zero(d)), spot.by);  // -0 becomes +0 (A5)
      if (!mean_) mean = hn::Add(mean, hn::Zero(d));
      StoreSome(mean, d, out, count);
      Doubt(plan, mean, count);
    }
  }
  // All others.
  HWY_INLINE void Convert(const plan::Plan& plan, const V (&acc)[S::parts], Index lane, Index cell, Index lanes,
                          const RowTarget<Raw>& target) const {
    Raw* out = target.out[0] + lane;
    if constexpr (std::is_floating_point_v<T>) {
      const typename S::D ds;
      V sum = hn::Add(acc[0], hn::Zero(ds));  // -0 becomes +0 (A5)
      if constexpr (std::is_same_v<T, float>) {
        const hn::ScalableTag<double> d;
        const hn::Rebind<float, decltype(d)> df;
        const auto low = By(lane, cell);
        // A sum has no -0, not even where its scale has left nothing of it; x + -0 is x.
        const auto zero = hn::Set(df, mean_ ? -0.0F : 0.0F);
        const auto result = [&](auto wide, auto by)
                                HWY_ATTR { return hn::Add(hn::DemoteTo(df, hn::Mul(wide, by)), zero); };
        if constexpr (squares) {
          const auto root = hn::Sqrt(acc[0]);
          StoreSome(hn::DemoteTo(df, root), df, out, lanes - lane);
          Doubt(plan, root, lanes - lane);
        } else if constexpr (std::is_same_v<Wide, float>) {
          const auto high = By(lane + vector_lanes<double>, cell);
          const auto upper = result(hn::PromoteTo(d, hn::UpperHalf(df, sum)), high);
          const V all = hn::Combine(ds, upper, result(hn::PromoteTo(d, hn::LowerHalf(df, sum)), low));
          StoreSome(all, ds, out, lanes - lane);
          Doubt(plan, all, lanes - lane);
        } else {
          StoreSome(result(sum, low), df, out, lanes - lane);
        }
      } else {
        const typename S::D d;
        const V by = By(lane, cell);
        if constexpr (S::parts == 2)  // an infinite sum has lost nothing that could be added
          sum = hn::IfThenElse(hn::IsFinite(sum), hn::Add(sum, acc[1]), sum);
        V mean = hn::Mul(hn::Div(sum, by), hn::Set(d, plan.formula.scale));
        if (!mean_) mean = hn::Add(mean, hn::Zero(d));
        StoreSome(mean, d, out, lanes - lane);
        // What stands behind the last lane may be odd for no reason; the definition then finds nothing to mend.
        if (!hn::AllTrue(d, hn::IsFinite(mean)) && plan.odd != nullptr)
          plan.odd->store(true, std::memory_order_relaxed);
      }
    } else if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
      const typename S::D d;
      const hn::Rebind<T, typename S::D> narrow;
      V result = mean_ ? Means(acc[0], lane, cell) : acc[0];
      // Highway 1.0.3 demotes 2^15 + n to n.
      if constexpr (std::is_same_v<T, std::uint8_t>) result = hn::Min(result, hn::Set(d, 255));
      StoreSome(hn::DemoteTo(narrow, result), narrow, out, lanes - lane);
    } else if constexpr (Half<T>) {
      const hn::ScalableTag<double> d;
      const V product = hn::Mul(hn::Add(acc[0], hn::Zero(d)), By(lane, cell));
      const V result = mean_ ? product : hn::Add(product, hn::Zero(d));
      const hn::Rebind<std::uint16_t, decltype(d)> narrow;
      StoreSome(RoundToHalves<T>(result), narrow, out, lanes - lane);
    } else {
      constexpr Index n = vector_lanes<Wide>;
      HWY_ALIGN Wide sums[n];
      hn::Store(acc[0], typename S::D(), sums);
      for (Index l = 0; l < HWY_MIN(n, lanes - lane); ++l) {
        IntegerSum<T> sum;
        sum.sum = static_cast<decltype(sum.sum)>(sums[l]);
        const double number = !varies_ ? number_ : numbers_[by_rows_ ? lane + l : cell];
        out[l] = mean_ ? sum.mean(static_cast<Index>(number)) : sum.total();
      }
    }
  }

  // Rows have divisors where others have numbers.
  [[nodiscard]] float* divisors() const { return reinterpret_cast<float*>(numbers_); }

  // Some of `count` results may have overflowed or be no numbers: x - x is no number then.
  static HWY_INLINE void Doubt(const plan::Plan& plan, V results, Index count) {
    const typename S::D d;
    const auto odd = hn::IsNaN(hn::Sub(results, results));
    if (HWY_LIKELY(hn::AllFalse(d, odd)) || plan.odd == nullptr) return;
    const auto real = hn::FirstN(d, static_cast<std::size_t>(HWY_MIN(count, vector_lanes<Wide>)));
    if (!hn::AllFalse(d, hn::And(odd, real))) plan.odd->store(true, std::memory_order_relaxed);
  }

  // Sums in a wider type are multiplied, others divided.
  static double By(const plan::Formula& formula, double number) {
    return std::is_same_v<T, float> || Half<T> ? formula.scale / number : number;
  }

  // The numbers of a vector of results.
  HWY_INLINE hn::VFromD<hn::ScalableTag<double>> By(Index lane, Index cell) const {
    const hn::ScalableTag<double> d;
    if (!varies_) return hn::Set(d, number_);
    return by_rows_ ? hn::LoadU(d, numbers_ + lane) : hn::Set(d, numbers_[cell]);
  }
  // Integers of 8 and 16 bits, divided and rounded half to even. A quotient that is no tie differs from one by more
  // than one part in twice the sum, and the sums that plans admit stay below 2^23 and 2^31: f32 and f64 tell them
  // apart.
  HWY_INLINE V Means(V sum, Index lane, Index cell) const {
    using D = typename S::D;
    const hn::Half<D> half;
    const hn::Rebind<double, decltype(half)> dd;
    const auto low = By(lane, cell);
    const auto high = By(lane + vector_lanes<double>, cell);
    if constexpr (sizeof(T) == 1) {
      const hn::RebindToFloat<D> df;
      const hn::Rebind<float, decltype(half)> hf;
      const auto by = hn::Combine(df, hn::DemoteTo(hf, high), hn::DemoteTo(hf, low));
      return hn::NearestInt(hn::Div(hn::ConvertTo(df, sum), by));
    } else {
      // Beyond 32 bits lies what a divisor of -1 does to the smallest sum, and DemoteTo clamps.
      const auto mean = [&](auto part, auto by)
                            HWY_ATTR { return hn::DemoteTo(half, hn::Round(hn::Div(hn::PromoteTo(dd, part), by))); };
      return hn::Combine(D(), mean(hn::UpperHalf(half, sum), high), mean(hn::LowerHalf(half, sum), low));
    }
  }

  struct Slot {
    Index outer = -1;
    bool varies = false;
  };
  std::array<Slot, slots> slots_{};
  bool varies_ = false, by_rows_ = false, mean_ = false, divides_ = false;
  float divisor_ = 1;
  double number_ = 1;
  double* numbers_ = nullptr;
};
template <class T, bool weighted, class L, bool square>
struct Finish<SumState<T, weighted, L, square>> : FinishSum<SumState<T, weighted, L, square>> {};
template <bool weighted>
struct Finish<CompensatedState<weighted>> : FinishSum<CompensatedState<weighted>> {};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
