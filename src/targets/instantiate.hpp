// What the compiled library exports for one scalar: every verb of every operator that accepts it.
#pragma once

#include "cenote/run.hpp"

namespace cenote::compiled {

template <class T, class Op>
void forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y, std::string_view caller) {
  if constexpr (OperatorOn<Op, T>) spec::forward<T>(op, g, x, y, caller);
}
template <class T, class Op>
void jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>& dy,
         std::string_view caller) {
  if constexpr (DifferentiableOn<Op, T>) spec::jvp<T>(op, g, x, dx, dy, caller);
}
template <class T, class Op>
void vjp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy, const View<T>& gx,
         std::string_view caller) {
  if constexpr (DifferentiableOn<Op, T>) spec::vjp<T>(op, g, x, gy, gx, caller);
}

}  // namespace cenote::compiled

#define CENOTE_INSTANTIATE_OPERATOR(Op)                                                                              \
  template void forward<Scalar_, Op>(const Op&, const Geometry&, const View<const Scalar_>&, const View<Scalar_>&,   \
                                     std::string_view);                                                              \
  template void jvp<Scalar_, Op>(const Op&, const Geometry&, const View<const Scalar_>&, const View<const Scalar_>&, \
                                 const View<Scalar_>&, std::string_view);                                            \
  template void vjp<Scalar_, Op>(const Op&, const Geometry&, const View<const Scalar_>&, const View<const Scalar_>&, \
                                 const View<Scalar_>&, std::string_view);

#define CENOTE_INSTANTIATE(type)                \
  namespace cenote::compiled {                  \
  using Scalar_ = type;                         \
  CENOTE_OPERATORS(CENOTE_INSTANTIATE_OPERATOR) \
  }
