// Fills the table of kernels of CENOTE_SCALAR for one instruction set.
#if defined(CENOTE_KERNELS_TABLE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_TABLE_INL_HPP
#undef CENOTE_KERNELS_TABLE_INL_HPP
#else
#define CENOTE_KERNELS_TABLE_INL_HPP
#endif

// Which builds compile kernels for which scalars: CENOTE_KERNELS in CMakeLists.txt.
#undef CENOTE_HAS_KERNELS
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128 && !defined(CENOTE_WITHOUT_KERNELS)
#define CENOTE_HAS_KERNELS 1
#else
#define CENOTE_HAS_KERNELS 0
#endif

#include "kernels/table.hpp"
#if CENOTE_HAS_KERNELS
#include "kernels/pull-inl.hpp"
#include "kernels/reduce-inl.hpp"
#include "kernels/repeat-inl.hpp"
#include "kernels/smooth-inl.hpp"
#include "kernels/smooth_pull-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {
namespace {

#if CENOTE_HAS_KERNELS
template <class S>
constexpr Kernel KernelOf() {
  return {&Reduction<S>::Tasks, &Reduction<S>::Run,   S::common,           Reduction<S>::doubles,
          Reduction<S>::runs,   Reduction<S>::planes, Reduction<S>::totals};
}

template <class Plain, class Pairs>
constexpr Kernel EitherOf() {
  constexpr bool streams = requires { requires Plain::streams; };
  return {&PlainOrPairs<Plain, Pairs>::Tasks, &PlainOrPairs<Plain, Pairs>::Run, streams};
}

template <class T>
Kernels MakeKernels() {
  Kernels table;
  table.vector = vector_lanes<std::uint8_t>;
  table.extreme[0] = KernelOf<ExtremeState<T, false>>();
  table.extreme[1] = KernelOf<ExtremeState<T, true>>();
  table.winner[0] = KernelOf<WinnerState<T, false>>();
  table.winner[1] = KernelOf<WinnerState<T, true>>();
  if constexpr (std::is_floating_point_v<T>) table.repeat = {&Repeat<T>::Tasks, &Repeat<T>::Run, false};
  if constexpr (!std::is_integral_v<T>) {
    table.push = {&Push<T>::Tasks, &Push<T>::Run, false};
    table.pull = {&Pull<T>::Tasks, &Pull<T>::Run, false};
    table.tangent[0] = KernelOf<TangentState<T, false>>();
    table.tangent[1] = KernelOf<TangentState<T, true>>();
    table.weighted = KernelOf<SumState<T, true>>();
    table.power_sum = EitherOf<Reduction<PowerSumState<T, false, false>>, Reduction<PowerSumState<T, true, false>>>();
    table.power_sum_tangent =
        EitherOf<Reduction<PowerSumState<T, false, true>>, Reduction<PowerSumState<T, true, true>>>();
    table.power_sum_pull = EitherOf<PowerSumPull<T, false>, PowerSumPull<T, true>>();
  }
  if constexpr (!std::is_integral_v<T> || sizeof(T) < 8) table.sum = KernelOf<SumState<T, false>>();
  if constexpr (std::is_same_v<T, float>) {
    table.near_sum = KernelOf<SumState<float, false, float>>();
    table.square_sum = KernelOf<SumState<float, false, double, true>>();
  }
  if constexpr (std::is_same_v<T, double>) {
    table.long_sum = KernelOf<CompensatedState<false>>();
    table.long_weighted = KernelOf<CompensatedState<true>>();
  }
  return table;
}
#else
template <class T>
Kernels MakeKernels() {
  return {};
}
#endif

// Unsigned integers of 32 and 64 bits are left to the definition: their kernels would cost more to compile than
// they are used.
template <class T>
inline constexpr bool has_kernels = !std::is_same_v<T, std::uint32_t> && !std::is_same_v<T, std::uint64_t>;

const Kernels& KernelTable() {
  static const Kernels table = [] {
    if constexpr (has_kernels<CENOTE_SCALAR>) return MakeKernels<CENOTE_SCALAR>();
    return Kernels{};
  }();
  return table;
}

}  // namespace
}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
