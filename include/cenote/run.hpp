// Running: the verbs as callers use them. With the compiled library (cenote::cenote) the machine scalars are served by
// its kernels, on as many threads as `exec` allows; everything else, and everything without it, is served by the
// definition in this header's includes.
#pragma once

#include <memory>

#include "cenote/execution.hpp"
#include "cenote/linearize.hpp"

namespace cenote {

#if defined(CENOTE_COMPILED)
namespace compiled {

// Instantiated in src/targets/ for every machine scalar and every operator that accepts it. Each checks its arguments
// first. `winners` and `y` may be null.
template <class T, class Op>
void forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y, Winners* winners,
             const Execution& exec, std::string_view caller);
template <class T, class Op>
void jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>* y,
         const View<T>& dy, const Execution& exec, std::string_view caller);
template <class T, class Op>
void vjp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy, const View<T>& gx,
         const Execution& exec, std::string_view caller);
template <class T, class Op>
Winners winners(const Op& op, const Geometry& g, const View<const T>& x, const Execution& exec,
                std::string_view caller);
// A forward call that is made many times: what depends on geometry and layout alone has been done.
template <class T>
class Prepared {
 public:
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;
  virtual void forward(const T* x, T* y) const = 0;
};
template <class T, class Op>
std::unique_ptr<const Prepared<T>> prepare(const Op& op, const Geometry& g, const Dims& x_strides,
                                           const Dims& y_strides, const Execution& exec);
// The derivative of a selection whose winners are known. The arguments have been checked.
template <class T>
void push(const Geometry& g, const Winners& winners, const View<const T>& dx, const View<T>& dy, const Execution& exec);
template <class T>
void pull(const Geometry& g, const Winners& winners, const View<const T>& gy, const View<T>& gx, const Execution& exec);

#define CENOTE_IS(name, type) || std::same_as<T, type>
template <class T>
concept MachineScalar = false CENOTE_MACHINE_SCALARS(CENOTE_IS);  // NOLINT(readability-simplify-boolean-expr)
#undef CENOTE_IS
#define CENOTE_IS(op) || std::same_as<Op, op>
template <class Op>
concept ListedOperator = false CENOTE_OPERATORS(CENOTE_IS);  // NOLINT(readability-simplify-boolean-expr)
#undef CENOTE_IS
template <class T, class Op>
concept Available = MachineScalar<T> && ListedOperator<Op>;

}  // namespace compiled
#endif

namespace detail {

template <class T, class Op>
inline constexpr bool compiled_for =
#if defined(CENOTE_COMPILED)
    compiled::Available<T, Op>;
#else
    false;
#endif

// The verbs carried out by whoever is fastest.
struct Fastest {
  Execution exec{};

  template <class T, class Op>
  [[nodiscard]] Winners winners(const Op& op, const Geometry& g, const View<const T>& x,
                                std::string_view caller) const {
#if defined(CENOTE_COMPILED)
    if constexpr (compiled_for<T, Op>) return compiled::winners<T>(op, g, x, exec, caller);
#endif
    return spec::winners<T>(op, g, x, caller);
  }
  template <class T, class Op>
  void forward(const Op& op, const Geometry& g, const View<const T>& x, const View<T>& y,
               std::string_view caller) const {
#if defined(CENOTE_COMPILED)
    if constexpr (compiled_for<T, Op>) return compiled::forward<T>(op, g, x, y, nullptr, exec, caller);
#endif
    spec::forward<T>(op, g, x, y, caller);
  }
  template <class T, class Op>
  void jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>& dy,
           std::string_view caller) const {
#if defined(CENOTE_COMPILED)
    if constexpr (compiled_for<T, Op>)
      return compiled::jvp<T>(op, g, x, dx, static_cast<const View<T>*>(nullptr), dy, exec, caller);
#endif
    spec::jvp<T>(op, g, x, dx, dy, caller);
  }
  template <class T, class Op>
  void vjp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy, const View<T>& gx,
           std::string_view caller) const {
#if defined(CENOTE_COMPILED)
    if constexpr (compiled_for<T, Op>) return compiled::vjp<T>(op, g, x, gy, gx, exec, caller);
#endif
    spec::vjp<T>(op, g, x, gy, gx, caller);
  }
  template <class T>
  void push(const Geometry& g, const Winners& winners, const View<const T>& dx, const View<T>& dy) const {
#if defined(CENOTE_COMPILED)
    if constexpr (compiled::MachineScalar<T>) return compiled::push<T>(g, winners, dx, dy, exec);
#endif
    spec::push<T>(g, winners, dx, dy);
  }
  template <class T>
  void pull(const Geometry& g, const Winners& winners, const View<const T>& gy, const View<T>& gx) const {
#if defined(CENOTE_COMPILED)
    if constexpr (compiled::MachineScalar<T>) return compiled::pull<T>(g, winners, gy, gx, exec);
#endif
    spec::pull<T>(g, winners, gy, gx);
  }
};

}  // namespace detail

// y = f(x).
template <class T, class Op>
  requires OperatorOn<Op, T>
void forward(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x, const View<T>& y,
             const Execution& exec = {}, std::string_view caller = "forward") {
  detail::Fastest{exec}.forward<T>(op, g, x, y, caller);
}

// y = f(x), and the winners, into memory that is there: `winners` was made for this geometry. No allocation of its own.
template <class T, class Op>
  requires OperatorOn<Op, T> && Selecting<Op>
void forward_with_winners(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
                          const View<T>& y, Winners& winners, [[maybe_unused]] const Execution& exec = {},
                          std::string_view caller = "forward_with_winners") {
#if defined(CENOTE_COMPILED)
  if constexpr (detail::compiled_for<T, Op>) return compiled::forward<T>(op, g, x, y, &winners, exec, caller);
#endif
  spec::forward<T>(op, g, x, y, caller);
  spec::find_winners<T>(op, g, x, winners, caller);
}

// y = f(x), and the winners.
template <class T, class Op>
  requires OperatorOn<Op, T> && Selecting<Op>
Winners forward_with_winners(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
                             const View<T>& y, const Execution& exec = {},
                             std::string_view caller = "forward_with_winners") {
  Winners out(g);
  forward_with_winners<T>(op, g, x, y, out, exec, caller);
  return out;
}

// The winner of every output.
template <class T, class Op>
  requires OperatorOn<Op, T> && Selecting<Op>
Winners winners(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
                const Execution& exec = {}, std::string_view caller = "winners") {
  return detail::Fastest{exec}.winners<T>(op, g, x, caller);
}

// dy = J(x) dx.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
void jvp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
         const std::type_identity_t<View<const T>>& dx, const View<T>& dy, const Execution& exec = {},
         std::string_view caller = "jvp") {
  detail::Fastest{exec}.jvp<T>(op, g, x, dx, dy, caller);
}

// y = f(x) and dy = J(x) dx, in one read of the input.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
void forward_and_jvp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
                     const std::type_identity_t<View<const T>>& dx, const View<T>& y, const View<T>& dy,
                     const Execution& exec = {}, std::string_view caller = "forward_and_jvp") {
#if defined(CENOTE_COMPILED)
  if constexpr (detail::compiled_for<T, Op>) return compiled::jvp<T>(op, g, x, dx, &y, dy, exec, caller);
#endif
  detail::Fastest{exec}.forward<T>(op, g, x, y, caller);
  detail::Fastest{exec}.jvp<T>(op, g, x, dx, dy, caller);
}

// gx = J(x)^T gy.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
void vjp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
         const std::type_identity_t<View<const T>>& gy, const View<T>& gx, const Execution& exec = {},
         std::string_view caller = "vjp") {
  detail::Fastest{exec}.vjp<T>(op, g, x, gy, gx, caller);
}

// The VJP of a linear operator from the input's shape alone (A6).
template <class T, class Op>
  requires DifferentiableOn<Op, T> && (Op::linear)
void vjp(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& gy, const View<T>& gx,
         const Execution& exec = {}, std::string_view caller = "vjp") {
  const T anything(Index{0});  // linear operators read no input
  vjp<T>(op, g, View<const T>(&anything, g.in(), Dims::filled(g.rank(), 0)), gy, gx, exec, caller);
}

// y = f(x), and the derivative of f at x.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
auto linearize(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x, const View<T>& y,
               const Execution& exec = {}, std::string_view caller = "linearize") {
  using Result = Linearization<Op, T, detail::Fastest>;
  if constexpr (Selecting<Op>) {
    if (op.ties == Ties::first && !set_valued<T>)
      return Result(op, g, forward_with_winners<T>(op, g, x, y, exec, caller), {exec});
  }
  forward<T>(op, g, x, y, exec, caller);
  return Result(op, g, x, caller, {exec});
}

// y = f(x), many times, on arrays of one layout: arguments are checked and loops are planned once. A call allocates
// nothing on the calling thread once it has been made there, and may be made from several threads.
template <class Op, class T>
  requires OperatorOn<Op, T>
class Plan {
 public:
  // Of row-major arrays.
  Plan(const Op& op, const Geometry& g, const Execution& exec = {})
      : Plan(op, g, row_major(g.in()), row_major(g.out()), exec) {}
  Plan(const Op& op, const Geometry& g, const Dims& x_strides, const Dims& y_strides, const Execution& exec = {})
      : op_(op), g_(g), x_strides_(x_strides), y_strides_(y_strides) {
    static constexpr std::string_view caller = "Plan";
    spec::detail::check_operator(caller, op);
    spec::detail::check_rank(caller, "x_strides", x_strides, g.in());
    spec::detail::check_rank(caller, "y_strides", y_strides, g.out());
    if (!detail::has_distinct_elements(g.out(), y_strides)) raise({Rule::output_overlaps, "y_strides"}, caller);
    x_ = extent_of(g.in(), x_strides);
    y_ = extent_of(g.out(), y_strides);
#if defined(CENOTE_COMPILED)
    if constexpr (detail::compiled_for<T, Op>) prepared_ = compiled::prepare<T>(op, g, x_strides, y_strides, exec);
#endif
    if constexpr (!detail::compiled_for<T, Op>) (void)exec;
  }

  [[nodiscard]] const Geometry& geometry() const { return g_; }

  // x and y point to the first elements of arrays with the geometry's sizes and the plan's strides.
  void forward(const T* x, T* y) const {
    const auto at = [](const T* p, Index offset) {
      return reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(offset) * sizeof(T);
    };
    if (x_.size > 0 && y_.size > 0 && at(x, x_.low) < at(y, y_.low + y_.size) &&
        at(y, y_.low) < at(x, x_.low + x_.size))
      raise({Rule::output_aliases, "y"}, "Plan::forward");
#if defined(CENOTE_COMPILED)
    if constexpr (detail::compiled_for<T, Op>) return prepared_->forward(x, y);
#endif
    spec::forward<T>(op_, g_, View<const T>(x, g_.in(), x_strides_), View<T>(y, g_.out(), y_strides_), "Plan::forward");
  }

 private:
  // Where an array lies around its first element.
  struct Extent {
    Index low = 0, size = 0;
  };
  static Extent extent_of(const Dims& dims, const Dims& strides) {
    Extent extent{0, 1};
    for (int a = 0; a < dims.rank; ++a) {
      if (dims[a] == 0) return {};
      const Index reach = (dims[a] - 1) * strides[a];
      if (reach < 0) extent.low += reach;
      extent.size += reach < 0 ? -reach : reach;
    }
    return extent;
  }

  Op op_;
  Geometry g_;
  Dims x_strides_, y_strides_;
  Extent x_{}, y_{};
#if defined(CENOTE_COMPILED)
  std::shared_ptr<const compiled::Prepared<T>> prepared_;
#endif
};

}  // namespace cenote
