// Running: the verbs as callers use them. With the compiled library (cenote::cenote) the machine scalars are served by
// its objects; everything else, and everything without it, is served by the definition in this header's includes.
#pragma once

#include "cenote/linearize.hpp"

namespace cenote {

#if defined(CENOTE_COMPILED)
namespace compiled {

// Instantiated in src/targets/ for every machine scalar and every operator that accepts it.
template <class T, class Op>
void forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y, std::string_view caller);
template <class T, class Op>
void jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>& dy,
         std::string_view caller);
template <class T, class Op>
void vjp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy, const View<T>& gx,
         std::string_view caller);

#define CENOTE_IS(name, type) || std::same_as<T, type>
template <class T>
concept MachineScalar = false CENOTE_MACHINE_SCALARS(CENOTE_IS);
#undef CENOTE_IS
#define CENOTE_IS(op) || std::same_as<Op, op>
template <class Op>
concept ListedOperator = false CENOTE_OPERATORS(CENOTE_IS);
#undef CENOTE_IS
template <class T, class Op>
concept Available = MachineScalar<T> && ListedOperator<Op>;

}  // namespace compiled
#define CENOTE_RUN(verb, ...)               \
  if constexpr (compiled::Available<T, Op>) \
    compiled::verb<T>(__VA_ARGS__);         \
  else                                      \
    spec::verb<T>(__VA_ARGS__)
#else
#define CENOTE_RUN(verb, ...) spec::verb<T>(__VA_ARGS__)
#endif

// y = f(x).
template <class T, class Op>
  requires OperatorOn<Op, T>
void forward(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x, const View<T>& y,
             std::string_view caller = "forward") {
  CENOTE_RUN(forward, op, g, x, y, caller);
}

// dy = J(x) dx.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
void jvp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
         const std::type_identity_t<View<const T>>& dx, const View<T>& dy, std::string_view caller = "jvp") {
  CENOTE_RUN(jvp, op, g, x, dx, dy, caller);
}

// gx = J(x)^T gy.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
void vjp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
         const std::type_identity_t<View<const T>>& gy, const View<T>& gx, std::string_view caller = "vjp") {
  CENOTE_RUN(vjp, op, g, x, gy, gx, caller);
}

#undef CENOTE_RUN

// The VJP of a linear operator from the input's shape alone (A6).
template <class T, class Op>
  requires DifferentiableOn<Op, T> && (Op::linear)
void vjp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& gy, const View<T>& gx,
         std::string_view caller = "vjp") {
  const T anything(Index{0});  // linear operators read no input
  vjp<T>(op, g, View<const T>(&anything, g.in(), Dims::filled(g.rank(), 0)), gy, gx, caller);
}

using spec::linearize;

}  // namespace cenote
