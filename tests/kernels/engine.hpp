// The comparison for one scalar: agree.cpp and its neighbours instantiate it, a few scalars each.
#pragma once

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "cenote/run.hpp"
#include "kernels/memory.hpp"
#include "kernels/reference.hpp"

namespace cenote::agree {

// The scalars are split over several files to keep each of them quick to compile.
template <class T>
std::string disagreement_of(const Case& c);

#ifdef CENOTE_AGREE_INSTANTIATE

// ---- values -----------------------------------------------------------------------------------------------------

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
T from_bits(std::uint64_t pattern) {
  return std::bit_cast<T>(static_cast<Bits<T>>(pattern));
}
template <class T>
std::uint64_t to_bits(const T& x) {
  return std::bit_cast<Bits<T>>(x);
}

// A quiet NaN: what happens to a signalling one depends on the compiler.
template <class T>
T nan_with(std::uint64_t payload) {
  constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  const std::uint64_t quiet = to_bits(std::numeric_limits<T>::infinity()) | std::uint64_t{1} << (mantissa - 1);
  const std::uint64_t sign = (payload & 1) << (8 * sizeof(T) - 1);
  return from_bits<T>(quiet | sign | (payload >> 1 & ((std::uint64_t{1} << (mantissa - 1)) - 1)));
}

template <class T>
T sample(Values values, Random& random, Index i) {
  using Limits = std::numeric_limits<T>;
  const std::uint64_t r = random.next();
  const auto small = static_cast<Index>(r >> 32 & 3);
  if (values == Values::mixed) values = static_cast<Values>(r >> 8 & 15);
  if constexpr (std::integral<T>) {
    switch (values) {
      case Values::ties: return static_cast<T>(small);
      case Values::zeros: return static_cast<T>((r & 7) == 0 ? 1 : 0);
      case Values::lowest: return Limits::lowest();
      case Values::highest: return Limits::max();
      case Values::huge:
      case Values::infinities:
        return static_cast<T>((r & 1) != 0 ? Limits::max() - static_cast<T>(small)
                                           : Limits::lowest() + static_cast<T>(small));
      case Values::rising: return static_cast<T>(i);
      case Values::falling: return static_cast<T>(100 - i);
      default: return static_cast<T>(r >> 16);
    }
  } else {
    const double sign = (r & 1) != 0 ? -1 : 1;
    const double unit = static_cast<double>(r >> 12) * 0x1p-52;
    const T number = T(sign * (unit + 0.01) * ((r & 6) == 0 ? 30 : 2));
    switch (values) {
      case Values::positive: return T(0.5 + unit);
      case Values::ties: return T(static_cast<double>(small - 1));
      case Values::zeros: return T((r & 0xf0) == 0 ? sign : sign * 0.0);
      case Values::one_nan: return (r & 0x70) == 0 ? nan_with<T>(0x54) : number;
      case Values::nans: return (r & 0x30) == 0 ? nan_with<T>(r >> 16) : number;
      case Values::infinities:
        return (r & 0x70) == 0 ? ((r & 1) != 0 ? -Limits::infinity() : Limits::infinity()) : number;
      case Values::lowest: return -Limits::infinity();
      case Values::highest: return Limits::infinity();
      case Values::subnormal: return from_bits<T>(to_bits(T(sign * 0.0)) | (r >> 16 & 0x7f));
      case Values::huge:
        return from_bits<T>(to_bits((r & 1) != 0 ? Limits::lowest() : Limits::max()) -
                            static_cast<std::uint64_t>(small));
      case Values::rising: return T(static_cast<double>(i) - 20);
      case Values::falling: return T(20 - static_cast<double>(i));
      case Values::bytes: return (r & 0xff0) == 0 ? number : T(static_cast<double>(r >> 16 & 255));
      default: return number;
    }
  }
}

template <class T>
void fill(const View<T>& view, Values values, std::uint64_t seed) {
  Random random{seed};
  Index i = 0;
  for_each_index(view.dims(), [&](const Dims& index) { view[index] = sample<T>(values, random, i++); });
}

template <class T>
std::string show(const T& x) {
  char text[64];
  if constexpr (std::integral<T>)
    return std::to_string(x);
  else
    std::snprintf(text, sizeof text, "%.17g (0x%llx)", static_cast<double>(x),
                  static_cast<unsigned long long>(to_bits(x)));
  return text;
}

// ---- verdicts ---------------------------------------------------------------------------------------------------

template <class T>
constexpr Precision precision_of() {
  using Work = std::conditional_t<std::same_as<T, double>, double, float>;
  return {std::numeric_limits<Work>::digits, std::numeric_limits<Work>::min_exponent};
}

enum class Quantity : std::uint8_t { y, dy, gx, winners };

// What one verb gave: dense, in the bytes of T or of the winners.
template <class T>
struct Outcome {
  const char* verb;
  Quantity quantity;
  std::vector<T> elements;
  std::vector<std::uint8_t> winners;
};

// What the definition says, and how closely it is to be met.
template <class T>
struct Expected {
  std::vector<T> y, dy, gx;
  std::vector<std::uint8_t> winners;
  Reference bounds;
  bool bitwise = false;  // else within `bounds`
  bool linear = false;
  Exact divided = 1;                                // gradients may be added before they are divided by so much
  bool loose_nan_dy = false, loose_nan_gx = false;  // two different NaNs may have been added: either may remain
  [[nodiscard]] const std::vector<T>& of(Quantity q) const {
    return q == Quantity::y ? y : (q == Quantity::dy ? dy : gx);
  }
  [[nodiscard]] bool any_nan(Quantity q) const {
    return !bitwise || (q == Quantity::dy && loose_nan_dy) || (q == Quantity::gx && loose_nan_gx);
  }
};

template <class T>
bool same_bits(const T& a, const T& b, bool any_nan) {
  if (to_bits(a) == to_bits(b)) return true;
  if constexpr (!std::integral<T>) return any_nan && is_nan(a) && is_nan(b);
  return false;
}

// Whether a rounded result is close enough to the exact one, and of the same kind as the definition's.
template <class T>
bool close(const T& got, const T& defined, const Bounded& q, std::size_t i, Quantity quantity,
           const Expected<T>& expected) {
  const bool linear = expected.linear;
  const Exact exact = q.exact[i];
  const Exact largest(static_cast<double>(std::numeric_limits<T>::max()));
  const Exact number(static_cast<double>(got));
  if (linear && q.scale[i] == 0) return to_bits(got) == to_bits(defined);  // A5: the sign of zero
  Exact slack = q.slack[i];
  if constexpr (Half<T>) {
    const Precision half{std::numeric_limits<T>::digits, std::numeric_limits<T>::min_exponent};
    slack += half.ulp(std::max(std::abs(exact), std::min(std::abs(number), largest))) / 2;
  }
  // A VJP adds in the type itself, or in f32, in an order of its own: what is near the end of the range may leave it on
  // the way, and an infinity then meets another.
  const bool may_overflow = quantity == Quantity::gx && q.finite_scale[i] > largest / 2 / expected.divided;
  if (!q.finite_parts[i]) {  // an infinity or NaN went in: what comes out is decided by the definition
    if (may_overflow) return is_nan(got) || is_infinite(got);
    if (linear || quantity == Quantity::y) {
      if (is_nan(defined)) return is_nan(got);
      if (is_infinite(defined)) return got == defined;
      return !is_nan(got) && !is_infinite(got);  // it did not reach the result, as -inf in a smooth maximum
    }
    return is_nan(defined) || is_infinite(defined) ? is_nan(got) || is_infinite(got) : !is_nan(got);
  }
  // Halfway to the next power of two is where rounding overflows.
  if (is_nan(got)) return may_overflow;
  if (is_infinite(got))
    return may_overflow || (std::abs(exact) + slack >= largest && (got > T(Index{0})) == (exact > 0));
  return std::abs(number - exact) <= slack;
}

// The first element that is not as expected.
template <class T>
std::string verdict(const Outcome<T>& got, const Expected<T>& expected) {
  if (got.quantity == Quantity::winners) {
    if (got.winners == expected.winners) return {};
    std::size_t i = 0;
    while (i < got.winners.size() && i < expected.winners.size() && got.winners[i] == expected.winners[i]) ++i;
    return "winners differ at byte " + std::to_string(i) + ": " +
           std::to_string(i < got.winners.size() ? got.winners[i] : -1) + " instead of " +
           std::to_string(i < expected.winners.size() ? expected.winners[i] : -1);
  }
  const std::vector<T>& defined = expected.of(got.quantity);
  const Bounded& bounds = got.quantity == Quantity::y    ? expected.bounds.y
                          : got.quantity == Quantity::dy ? expected.bounds.dy
                                                         : expected.bounds.gx;
  for (std::size_t i = 0; i < defined.size(); ++i) {
    if (expected.bitwise) {
      if (same_bits(got.elements[i], defined[i], expected.any_nan(got.quantity))) continue;
      return "element " + std::to_string(i) + " is " + show(got.elements[i]) + " instead of " + show(defined[i]);
    }
    if constexpr (!std::integral<T>) {
      if (close(got.elements[i], defined[i], bounds, i, got.quantity, expected)) continue;
      char text[64];
      std::snprintf(text, sizeof text, ", exactly %.20Lg +- %.3Lg", bounds.exact[i], bounds.slack[i]);
      return "element " + std::to_string(i) + " is " + show(got.elements[i]) + " instead of " + show(defined[i]) + text;
    }
  }
  return {};
}

// The same bits as another run.
template <class T>
std::string difference(const Outcome<T>& got, const Outcome<T>& other, bool any_nan) {
  if (got.winners != other.winners) return "winners differ";
  for (std::size_t i = 0; i < got.elements.size(); ++i)
    if (!same_bits(got.elements[i], other.elements[i], any_nan))
      return "element " + std::to_string(i) + " is " + show(got.elements[i]) + " there and " + show(other.elements[i]) +
             " in the run before";
  return {};
}

// ---- runs -------------------------------------------------------------------------------------------------------

template <class T>
struct Inputs {
  const View<const T> x, dx, gy;
};

// Every verb once. `problem` receives what goes wrong other than wrong numbers.
template <class T, class Op>
class Runner {
 public:
  Runner(const Case& c, const Op& op, bool strided, std::string& problem)
      : c_(c), op_(op), strided_(strided), problem_(problem) {}

  std::vector<Outcome<T>> run(const Inputs<T>& in, const Execution& exec) {
    const Geometry& g = c_.geometry;
    if (asked(forward_verb)) {
      Buffer<T> y = output(g.out(), c_.y_layout);
      cenote::forward<T>(op_, g, in.x, y.view(), exec);
      give("forward", Quantity::y, y);
    }
    if constexpr (Selecting<Op>) {
      if (asked(winners_verb)) give("winners", cenote::winners<T>(op_, g, in.x, exec));
      if (asked(forward_with_winners_verb)) {
        Buffer<T> y = output(g.out(), c_.y_layout);
        const Winners winners = cenote::forward_with_winners<T>(op_, g, in.x, y.view(), exec);
        give("forward_with_winners", Quantity::y, y);
        give("forward_with_winners", winners);
      }
    }
    if constexpr (DifferentiableOn<Op, T>) derivatives(in, exec);
    return std::move(outcomes_);
  }

 private:
  [[nodiscard]] bool asked(Verbs verb) const { return (c_.verbs & verb) != 0; }

  Buffer<T> output(const Dims& dims, const Layout& layout) const {
    return Buffer<T>(dims, strided_ ? layout : Layout{}, c_.placement, 0xa5);
  }
  void give(const char* verb, Quantity quantity, const Buffer<T>& buffer) {
    if (problem_.empty() && !buffer.gaps_are_untouched()) problem_ = std::string(verb) + " wrote between the elements";
    outcomes_.push_back({verb, quantity, buffer.elements(), {}});
  }
  void give(const char* verb, const Winners& winners) {
    outcomes_.push_back({verb, Quantity::winners, {}, {winners.bytes().begin(), winners.bytes().end()}});
  }

  void derivatives(const Inputs<T>& in, const Execution& exec) {
    const Geometry& g = c_.geometry;
    if (asked(jvp_verb)) {
      Buffer<T> dy = output(g.out(), c_.dy_layout);
      cenote::jvp<T>(op_, g, in.x, in.dx, dy.view(), exec);
      give("jvp", Quantity::dy, dy);
    }
    if (asked(forward_and_jvp_verb)) {
      Buffer<T> y = output(g.out(), c_.y_layout);
      Buffer<T> dy = output(g.out(), c_.dy_layout);
      cenote::forward_and_jvp<T>(op_, g, in.x, in.dx, y.view(), dy.view(), exec);
      give("forward_and_jvp", Quantity::y, y);
      give("forward_and_jvp", Quantity::dy, dy);
    }
    if (asked(vjp_verb)) {
      Buffer<T> gx = output(g.in(), c_.gx_layout);
      cenote::vjp<T>(op_, g, in.x, in.gy, gx.view(), exec);
      give("vjp", Quantity::gx, gx);
      if constexpr (Op::linear) {
        Buffer<T> by_shape = output(g.in(), c_.gx_layout);
        cenote::vjp<T>(op_, g, in.gy, by_shape.view(), exec);
        give("vjp without x", Quantity::gx, by_shape);
      }
    }
    if (asked(linearize_verb)) {
      Buffer<T> y = output(g.out(), c_.y_layout);
      const auto line = cenote::linearize<T>(op_, g, in.x, y.view(), exec);
      give("linearize", Quantity::y, y);
      Buffer<T> dy = output(g.out(), c_.dy_layout);
      line.push(in.dx, dy.view());
      give("push", Quantity::dy, dy);
      Buffer<T> gx = output(g.in(), c_.gx_layout);
      line.pull(in.gy, gx.view());
      give("pull", Quantity::gx, gx);
      if constexpr (Selecting<Op>) give("linearize", line.winners());
    }
  }

  const Case& c_;
  const Op& op_;
  bool strided_;
  std::string& problem_;
  std::vector<Outcome<T>> outcomes_;
};

template <class T>
std::vector<Exact> exactly(const std::vector<T>& from) {
  std::vector<Exact> out;
  out.reserve(from.size());
  for (const T& x : from) out.push_back(static_cast<Exact>(static_cast<double>(x)));
  return out;
}

template <class T, class Op>
Expected<T> expectation(const Case& c, const Op& op, const std::vector<T>& x, const std::vector<T>& dx,
                        const std::vector<T>& gy) {
  const Geometry& g = c.geometry;
  const View<const T> xs(x.data(), g.in());
  const auto out_cells = static_cast<std::size_t>(volume(g.out()));
  Expected<T> out;
  out.bitwise = Op::selects || std::integral<T>;
  out.linear = Op::linear;
  // Divisors that differ along an axis are weights of that axis: f64, which has nothing wider, adds along another
  // first.
  if constexpr (std::same_as<Op, Average> && std::same_as<T, double>)
    if (op.divisor.kind != Divisor::Kind::fixed) out.divided = static_cast<Exact>(volume(c.geometry.window_box()));
  if constexpr (Selecting<Op>) {
    out.loose_nan_dy = op.ties != Ties::first && c.dx != Values::one_nan;
    out.loose_nan_gx = c.gy != Values::one_nan;
  }
  if (!c.defined) return out;
  out.y.resize(out_cells);
  spec::forward<T>(op, g, xs, View<T>(out.y.data(), g.out()));
  if constexpr (Selecting<Op>) {
    if ((c.verbs & (winners_verb | forward_with_winners_verb | linearize_verb)) != 0) {
      const Winners winners = spec::winners<T>(op, g, xs);
      out.winners.assign(winners.bytes().begin(), winners.bytes().end());
    }
  }
  if constexpr (DifferentiableOn<Op, T>) {
    const bool jvp = (c.verbs & (jvp_verb | forward_and_jvp_verb | linearize_verb)) != 0;
    const bool vjp = (c.verbs & (vjp_verb | linearize_verb)) != 0;
    if (jvp) {
      out.dy.resize(out_cells);
      spec::jvp<T>(op, g, xs, View<const T>(dx.data(), g.in()), View<T>(out.dy.data(), g.out()));
    }
    if (vjp) {
      out.gx.resize(x.size());
      spec::vjp<T>(op, g, xs, View<const T>(gy.data(), g.out()), View<T>(out.gx.data(), g.in()));
    }
    if (!Op::selects)
      out.bounds = reference(op, g, exactly(x), jvp ? exactly(dx) : std::vector<Exact>{},
                             vjp ? exactly(gy) : std::vector<Exact>{}, precision_of<T>());
  }
  return out;
}

template <class T, class Op>
std::string compare(const Case& c, const Op& op) {
  const Geometry& g = c.geometry;
  // Strided first, because a repeated axis decides what the elements are.
  const auto filler = std::array<unsigned char, 4>{0xff, 0x7f, 0x80, 0x00}[c.seed % 4];
  const bool strides = !c.strided_threads.empty();
  const auto input = [&](const Dims& dims, const Layout& layout, Values values, std::uint64_t salt) {
    auto out = std::make_unique<Buffer<T>>(dims, strides ? layout : Layout{}, c.placement, filler);
    fill(out->view(), values, c.seed * 3 + salt);
    return out;
  };
  const auto x = input(g.in(), c.x_layout, c.x, 0);
  const auto dx = input(g.in(), c.dx_layout, c.dx, 1);
  const auto gy = input(g.out(), c.gy_layout, c.gy, 2);
  const auto dense = [&](const Buffer<T>& from) {
    auto out = std::make_unique<Buffer<T>>(from.view().dims(), Layout{}, c.placement, filler);
    copy_elements<T>(from.view(), out->view());
    return out;
  };
  const auto dense_x = dense(*x);
  const auto dense_dx = dense(*dx);
  const auto dense_gy = dense(*gy);
  const std::array inputs{x.get(), dx.get(), gy.get(), dense_x.get(), dense_dx.get(), dense_gy.get()};
  std::vector<std::vector<std::byte>> before;
  for (const Buffer<T>* buffer : inputs)
    before.emplace_back(buffer->block().data(), buffer->block().data() + buffer->block().size());

  const Expected<T> expected = expectation<T>(c, op, x->elements(), dx->elements(), gy->elements());

  std::vector<Outcome<T>> first_target;
  for (const std::string& name : c.targets.empty() ? targets() : c.targets) {
    limit_target(name);
    std::vector<Outcome<T>> first;
    const auto run = [&](bool strided, int threads) -> std::string {
      std::string problem;
      const auto& [sx, sdx, sgy, px, pdx, pgy] = inputs;
      const Inputs<T> in =
          strided ? Inputs<T>{sx->view(), sdx->view(), sgy->view()} : Inputs<T>{px->view(), pdx->view(), pgy->view()};
      auto outcomes = Runner<T, Op>(c, op, strided, problem).run(in, Execution{.threads = threads});
      for (std::size_t i = 0; i < outcomes.size() && problem.empty(); ++i) {
        const Outcome<T>& got = outcomes[i];
        const bool any_nan = expected.any_nan(got.quantity);
        if (c.defined) problem = verdict(got, expected);
        if (problem.empty() && !first.empty()) problem = difference(got, first[i], any_nan);
        if (problem.empty() && Op::linear && !first_target.empty()) problem = difference(got, first_target[i], any_nan);
        if (!problem.empty()) problem = std::string(got.verb) + ": " + problem;
      }
      for (std::size_t i = 0; i < inputs.size() && problem.empty(); ++i)
        if (!before[i].empty() && std::memcmp(before[i].data(), inputs[i]->block().data(), before[i].size()) != 0)
          problem = "an input was written to";
      if (first.empty()) first = std::move(outcomes);
      if (problem.empty()) return {};
      return problem + " [" + name + ", " + std::to_string(threads) + " threads, " + (strided ? "strided" : "dense") +
             "]";
    };
    for (const int threads : c.threads)
      if (std::string problem = run(false, threads); !problem.empty()) return problem;
    for (const int threads : c.strided_threads)
      if (std::string problem = run(true, threads); !problem.empty()) return problem;
    if (first_target.empty()) first_target = std::move(first);
  }
  return {};
}

template <class T>
std::string disagreement_of(const Case& c) {
  return std::visit(
      [&]<class Op>(const Op& op) -> std::string {
        if constexpr (OperatorOn<Op, T>) return compare<T>(c, op);
        return "no such operator for this scalar";
      },
      c.op);
}

#endif

}  // namespace cenote::agree
