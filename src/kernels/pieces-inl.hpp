// What streamed reductions keep of the slices that their windows consist of, and how it is merged.
#if defined(CENOTE_KERNELS_PIECES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CENOTE_KERNELS_PIECES_INL_HPP
#undef CENOTE_KERNELS_PIECES_INL_HPP
#else
#define CENOTE_KERNELS_PIECES_INL_HPP
#endif

#include "kernels/states-inl.hpp"
#include "plan/plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

// The pieces that an output along an axis consists of, one of each slice.
template <class S>
struct Pieces {
  const typename S::Lane* from[plan::max_extent];
  Index numbers[plan::max_extent];
  double weights[plan::max_extent];
  Index count = 0;

  // Merges those at one place in their order. Parts stand `pitch` apart. `taps` is their number if the compiler knows
  // it, or 0.
  template <int taps = 0>
  HWY_INLINE void Merge(Index at, Index pitch, typename S::V (&acc)[S::parts]) const {
    S::Load(acc, from[0] + at, pitch, numbers[0], S::weighted ? weights[0] : 1.0);
    const auto add = [&](Index t) HWY_ATTR {
      typename S::V later[S::parts];
      S::Load(later, from[t] + at, pitch, numbers[t], S::weighted ? weights[t] : 1.0);
      S::Merge(acc, later);
    };
    if constexpr (taps > 0) {
      HWY_UNROLL(16)
      for (int t = 1; t < taps; ++t) add(t);
    } else {
      for (Index t = 1; t < count; ++t) add(t);
    }
  }
};

// Merges pieces vector by vector and hands each to put(state, lane). Vectors of a slice are loaded as they were stored:
// what has just been stored cannot be read in other portions.
template <class S, int taps, class Put>
HWY_INLINE void MergeSlices(const Pieces<S>& pieces, Index lanes, Index pitch, Put&& put) {
  for (Index lane = 0; lane < lanes; lane += vector_lanes<typename S::Lane>) {
    typename S::V acc[S::parts];
    pieces.template Merge<taps>(lane, pitch, acc);
    put(acc, lane);
  }
}

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
