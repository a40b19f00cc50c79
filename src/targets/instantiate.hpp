// What the compiled library exports for one scalar: every verb of every operator that accepts it. CENOTE_SCALAR names
// the scalar; its kernels have been compiled in the same unit.
#pragma once

#define CENOTE_COMPILED 1
#include "cenote/run.hpp"
#include "kernels/highway.hpp"
#include "plan/execute.hpp"
#include "plan/planar.hpp"
#include "plan/smooth.hpp"

namespace cenote {

HWY_EXPORT(KernelTable);
template <>
const Kernels& kernels<CENOTE_SCALAR>() {
  return CENOTE_DISPATCH(KernelTable)();
}

}  // namespace cenote

namespace cenote::compiled {

template <class T, class Op>
void forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y, Winners* winners,
             const Execution& exec, std::string_view caller) {
  if constexpr (OperatorOn<Op, T>) {
    threads::check(exec, caller);
    spec::detail::check_operator(caller, op);
    spec::detail::check_shape(caller, "x", x.dims(), g.in());
    spec::detail::check_shape(caller, "y", y.dims(), g.out());
    spec::detail::check_output(caller, "y", y, x);
    if (plan::scattered<T>(g, x, y)) {
      const plan::PlanarInput<T> from(g, x, exec);
      const plan::PlanarOutput<T> to(g, y, exec);
      forward<T>(op, g, from.view(), to.view(), winners, exec, caller);
      return to.finish();
    }
    if constexpr (plan::is_power_sum<Op>)
      if (plan::power_sum<T>(op, g, x, y, exec)) return;
    if (plan::forward<T>(op, g, x, &y, winners, exec)) return;
    spec::forward<T>(op, g, x, y, caller);
    if constexpr (Selecting<Op>)
      if (winners != nullptr) *winners = spec::winners<T>(op, g, x, caller);
  }
}
template <class T, class Op>
void jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>* y,
         const View<T>& dy, const Execution& exec, std::string_view caller) {
  if constexpr (DifferentiableOn<Op, T>) {
    threads::check(exec, caller);
    spec::detail::check_operator(caller, op);
    spec::detail::check_shape(caller, "x", x.dims(), g.in());
    spec::detail::check_shape(caller, "dx", dx.dims(), g.in());
    spec::detail::check_shape(caller, "dy", dy.dims(), g.out());
    spec::detail::check_output(caller, "dy", dy, x, dx);
    if (y != nullptr) {
      spec::detail::check_shape(caller, "y", y->dims(), g.out());
      spec::detail::check_output(caller, "y", *y, x, dx, dy);
    }
    if (plan::scattered<T>(g, x, dx, y != nullptr ? *y : dy, dy)) {
      const plan::PlanarInput<T> from(g, x, exec);
      const plan::PlanarInput<T> along(g, dx, exec);
      const plan::PlanarOutput<T> to(g, dy, exec);
      if (y == nullptr) {
        jvp<T>(op, g, from.view(), along.view(), nullptr, to.view(), exec, caller);
      } else {
        const plan::PlanarOutput<T> value(g, *y, exec);
        jvp<T>(op, g, from.view(), along.view(), &value.view(), to.view(), exec, caller);
        value.finish();
      }
      return to.finish();
    }
    if constexpr (plan::is_power_sum<Op>)
      if (plan::power_sum_jvp<T>(op, g, x, dx, y, dy, exec)) return;
    if (plan::jvp<T>(op, g, x, dx, y, dy, exec)) return;
    if (y != nullptr) spec::forward<T>(op, g, x, *y, caller);
    spec::jvp<T>(op, g, x, dx, dy, caller);
  }
}
template <class T, class Op>
void vjp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy, const View<T>& gx,
         const Execution& exec, std::string_view caller) {
  if constexpr (DifferentiableOn<Op, T>) {
    threads::check(exec, caller);
    spec::detail::check_operator(caller, op);
    spec::detail::check_shape(caller, "x", x.dims(), g.in());
    spec::detail::check_shape(caller, "gy", gy.dims(), g.out());
    spec::detail::check_shape(caller, "gx", gx.dims(), g.in());
    if constexpr (Op::linear)
      spec::detail::check_output(caller, "gx", gx, gy);
    else
      spec::detail::check_output(caller, "gx", gx, x, gy);
    // A linear operator reads no x.
    if (plan::scattered<T>(g, gy, gx) || (!Op::linear && plan::scattered<T>(g, x))) {
      const plan::PlanarInput<T> from(g, gy, exec);
      const plan::PlanarOutput<T> to(g, gx, exec);
      if constexpr (Op::linear)
        vjp<T>(op, g, x, from.view(), to.view(), exec, caller);
      else
        vjp<T>(op, g, plan::PlanarInput<T>(g, x, exec).view(), from.view(), to.view(), exec, caller);
      return to.finish();
    }
    if constexpr (plan::is_sum<Op>)
      if (plan::pull_sum<T>(op, g, gy, gx, exec)) return;
    if constexpr (plan::is_extreme<Op>) {
      if (op.ties == Ties::first) {
        Winners won(g);
        if (plan::forward<T>(op, g, x, static_cast<const View<T>*>(nullptr), &won, exec) &&
            plan::pull<T>(g, won, gy, gx, exec))
          return;
      }
    }
    if constexpr (plan::is_power_sum<Op>)
      if (plan::power_sum_vjp<T>(op, g, x, gy, gx, exec)) return;
    spec::vjp<T>(op, g, x, gy, gx, caller);
  }
}
template <class T, class Op>
Winners winners(const Op& op, const Geometry& g, const View<const T>& x, const Execution& exec,
                std::string_view caller) {
  if constexpr (OperatorOn<Op, T> && Selecting<Op>) {
    threads::check(exec, caller);
    spec::detail::check_shape(caller, "x", x.dims(), g.in());
    Winners out(g);
    const plan::PlanarInput<T> from(g, x, exec);
    if (plan::forward<T>(op, g, from.view(), static_cast<const View<T>*>(nullptr), &out, exec)) return out;
    return spec::winners<T>(op, g, x, caller);
  }
  return Winners(g);
}
template <class T, class Op>
std::unique_ptr<const Prepared<T>> prepare(const Op& op, const Geometry& g, const Dims& x_strides,
                                           const Dims& y_strides, const Execution& exec) {
  threads::check(exec, "Plan");
  if constexpr (OperatorOn<Op, T>)
    return std::make_unique<plan::Prepared<T, Op>>(op, g, x_strides, y_strides, exec);
  else
    return nullptr;
}
template <class T>
void push(const Geometry& g, const Winners& winners, const View<const T>& dx, const View<T>& dy,
          const Execution& exec) {
  if (!plan::push<T>(g, winners, dx, dy, exec)) spec::push<T>(g, winners, dx, dy);
}
template <class T>
void pull(const Geometry& g, const Winners& winners, const View<const T>& gy, const View<T>& gx,
          const Execution& exec) {
  const plan::PlanarInput<T> from(g, gy, exec);
  const plan::PlanarOutput<T> to(g, gx, exec);
  if (!plan::pull<T>(g, winners, from.view(), to.view(), exec)) spec::pull<T>(g, winners, from.view(), to.view());
  to.finish();
}

}  // namespace cenote::compiled

#define CENOTE_INSTANTIATE_OPERATOR(Op)                                                                              \
  template void forward<Scalar_, Op>(const Op&, const Geometry&, const View<const Scalar_>&, const View<Scalar_>&,   \
                                     Winners*, const Execution&, std::string_view);                                  \
  template void jvp<Scalar_, Op>(const Op&, const Geometry&, const View<const Scalar_>&, const View<const Scalar_>&, \
                                 const View<Scalar_>*, const View<Scalar_>&, const Execution&, std::string_view);    \
  template void vjp<Scalar_, Op>(const Op&, const Geometry&, const View<const Scalar_>&, const View<const Scalar_>&, \
                                 const View<Scalar_>&, const Execution&, std::string_view);                          \
  template Winners winners<Scalar_, Op>(const Op&, const Geometry&, const View<const Scalar_>&, const Execution&,    \
                                        std::string_view);                                                           \
  template std::unique_ptr<const Prepared<Scalar_>> prepare<Scalar_, Op>(const Op&, const Geometry&, const Dims&,    \
                                                                         const Dims&, const Execution&);

#define CENOTE_INSTANTIATE(type)                                                                                 \
  namespace cenote::compiled {                                                                                   \
  using Scalar_ = type;                                                                                          \
  CENOTE_OPERATORS(CENOTE_INSTANTIATE_OPERATOR)                                                                  \
  template void push<Scalar_>(const Geometry&, const Winners&, const View<const Scalar_>&, const View<Scalar_>&, \
                              const Execution&);                                                                 \
  template void pull<Scalar_>(const Geometry&, const Winners&, const View<const Scalar_>&, const View<Scalar_>&, \
                              const Execution&);                                                                 \
  }

CENOTE_INSTANTIATE(CENOTE_SCALAR)
