// The last step of a reduction: pieces become results, windows without a tap become 0.
#if defined(CENOTE_KERNELS_FINISH_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_FINISH_INL_HPP
#undef CENOTE_KERNELS_FINISH_INL_HPP
#else
#define CENOTE_KERNELS_FINISH_INL_HPP
#endif

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
  struct Place {
    const Raw* base;
    Index pitch;
  };
  static Place Output(int i, const RowShape& row, const typename S::Lane* states, const Raw*) {
    return {states + i * row.width, S::parts * row.width};
  }
  static constexpr bool winners = numbered;
};
template <class T, bool largest>
struct Finish<ExtremeState<T, largest>> : FinishSelection<ExtremeState<T, largest>> {};
template <class T, bool largest>
struct Finish<TangentState<T, largest>> : FinishSelection<TangentState<T, largest>> {};
template <class T, bool largest>
struct Finish<WinnerState<T, largest>> : FinishSelection<WinnerState<T, largest>, true> {};

// Sums and averages: divided, converted, and free of -0 (A5).
template <class S>
struct FinishSum {
  using T = typename S::Scalar;
  using Raw = typename S::Raw;
  using Wide = typename S::Lane;
  static constexpr bool winners = false;

  // `numbers` is scratch for one number per column, kept between the rows of a task.
  void Row(const RowShape& row, const Wide* states, Raw* out, double* numbers) {
    const plan::Formula& formula = row.plan->formula;
    numbers_ = numbers;
    const Index outer = formula.divisor.kind == Divisor::Kind::real ? row.outer_real : row.outer_padded;
    if (formula.mean && formula.divisor.kind != Divisor::Kind::fixed && outer != outer_) {
      outer_ = outer;
      Divide(row);
    }
    const bool varies = formula.mean && formula.divisor.kind != Divisor::Kind::fixed && !uniform_;
    const double number = !formula.mean                                  ? 1.0
                          : formula.divisor.kind == Divisor::Kind::fixed ? static_cast<double>(formula.divisor.number)
                                                                         : numbers_[0];
    if (row.plan->rows) {
      if (varies)
        Convert<true>(formula, states, row.width, out, row.columns, numbers_, row.plan->odd);
      else
        Convert<false>(formula, states, row.width, out, row.columns, &number, row.plan->odd);
    } else {
      for (Index c = 0; c < row.cells; ++c)
        Convert<false>(formula, states + c * S::parts * row.width, row.width, out + c * row.width, row.width,
                       varies ? numbers_ + c : &number, row.plan->odd);
    }
    EachEmpty(row, [&](Index c) {
      if (row.plan->rows)
        std::memset(out + c, 0, sizeof(Raw));
      else
        std::memset(out + c * row.width, 0, static_cast<std::size_t>(row.width) * sizeof(Raw));
    });
  }
  struct Place {
    const Raw* base;
    Index pitch;
  };
  static Place Output(int, const RowShape& row, const Wide*, const Raw* out) { return {out, row.width}; }

 private:
  // The number of taps of every column, for the present row.
  void Divide(const RowShape& row) {
    uniform_ = true;
    for (Index c = 0; c < row.columns; ++c) {
      const plan::Taps& taps = row.taps(c);
      const Index along = row.plan->formula.divisor.kind == Divisor::Kind::real ? taps.count : taps.padded;
      numbers_[c] = static_cast<double>(HWY_MAX(Index{1}, outer_ * along));  // empty windows divide by anything
      uniform_ = uniform_ && numbers_[c] == numbers_[0];
    }
  }

  // `numbers` has one divisor per lane, or one for all. Whole vectors may be written behind the last lane.
  template <bool per_lane>
  static HWY_INLINE void Convert(const plan::Formula& formula, const Wide* sums, Index pitch, Raw* out, Index lanes,
                                 const double* numbers, [[maybe_unused]] std::atomic<bool>* odd) {
    const auto number = [&](Index l) { return per_lane ? numbers[l] : numbers[0]; };
    if constexpr (std::is_floating_point_v<T>) {
      const hn::ScalableTag<double> d;
      const auto scale = hn::Set(d, formula.scale);
      const auto all = hn::Set(d, numbers[0]);
      const auto factor = hn::Div(scale, all);
      for (Index l = 0; l < lanes; l += vector_lanes<double>) {
        auto sum = hn::Add(hn::LoadU(d, sums + l), hn::Zero(d));  // -0 becomes +0 (A5)
        if constexpr (std::is_same_v<T, float>) {
          const hn::Rebind<float, decltype(d)> df;
          const auto by = per_lane ? hn::Div(scale, hn::LoadU(d, numbers + l)) : factor;
          auto result = hn::Mul(sum, by);
          if (!formula.mean) result = hn::Add(result, hn::Zero(d));  // a sum has no -0, whatever its scale
          hn::StoreU(hn::DemoteTo(df, result), df, out + l);
        } else {
          if constexpr (S::parts == 2)  // an infinite sum has lost nothing that could be added
            sum = hn::IfThenElse(hn::IsFinite(sum), hn::Add(sum, hn::LoadU(d, sums + pitch + l)), sum);
          auto mean = hn::Mul(hn::Div(sum, per_lane ? hn::LoadU(d, numbers + l) : all), scale);
          if (!formula.mean) mean = hn::Add(mean, hn::Zero(d));
          hn::StoreU(mean, d, out + l);
          if (!hn::AllTrue(d, hn::IsFinite(mean)) && odd != nullptr) odd->store(true, std::memory_order_relaxed);
        }
      }
    } else if constexpr (Half<T>) {
      const double zero = formula.mean ? -0.0 : 0.0;  // x + -0.0 is x
      for (Index l = 0; l < lanes; ++l) out[l] = T((sums[l] + 0.0) * (formula.scale / number(l)) + zero).bits;
    } else {
      for (Index l = 0; l < lanes; ++l) {
        IntegerSum<T> sum;
        sum.sum = static_cast<decltype(sum.sum)>(sums[l]);
        out[l] = formula.mean ? sum.mean(static_cast<Index>(number(l))) : sum.total();
      }
    }
  }

  Index outer_ = -1;
  bool uniform_ = true;
  double* numbers_ = nullptr;
};
template <class T, bool weighted>
struct Finish<SumState<T, weighted>> : FinishSum<SumState<T, weighted>> {};
template <bool weighted>
struct Finish<CompensatedState<weighted>> : FinishSum<CompensatedState<weighted>> {};

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
