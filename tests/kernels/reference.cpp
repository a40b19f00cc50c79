#include "kernels/reference.hpp"

#include <cmath>

#include "cenote/spec.hpp"

namespace cenote::agree {

Exact Precision::ulp(Exact x) const {
  int exponent = min_exponent;
  if (x != 0) std::frexp(std::abs(x), &exponent);
  return std::ldexp(Exact{1}, std::max(exponent, min_exponent) - digits);
}
Exact Precision::smallest_normal() const { return std::ldexp(Exact{1}, min_exponent - 1); }

namespace {

// How far a tap's weight may be off, in ulp: S6. The distance from the extreme is at most -log(weight).
struct Tolerance {
  Exact value = 4, weight = 4, per_log = 0;
  bool may_underflow = false;  // weights below the normal numbers count as 0
};
Tolerance tolerance(const SmoothMax&) { return {4, 4, 1, true}; }
Tolerance tolerance(const Lp& op) { return {8 + 2 * op.p, 8 + 4 * op.p, op.p, true}; }
template <class Op>
Tolerance tolerance(const Op&) {
  return {};
}

template <class Op>
Reference of(const Op& op, const Geometry& g, const std::vector<Exact>& x, const std::vector<Exact>& dx,
             const std::vector<Exact>& gy, const Precision& precision) {
  const auto outputs = static_cast<std::size_t>(volume(g.out()));
  const Exact eps = std::ldexp(Exact{1}, 1 - precision.digits);
  const Tolerance allowed = tolerance(op);
  const Exact tiny = allowed.may_underflow ? precision.smallest_normal() : 0;
  Reference out;
  const auto clear = [](Bounded& q, std::size_t n) {
    q.exact.assign(n, 0);
    q.slack.assign(n, 0);
    q.scale.assign(n, 0);
    q.finite_scale.assign(n, 0);
    q.finite_parts.assign(n, true);
  };
  clear(out.y, outputs);
  if (!dx.empty()) clear(out.dy, outputs);
  if (!gy.empty()) clear(out.gx, x.size());
  std::vector<Exact> counts(out.gx.exact.size());

  // Adds weight * number to entry i, `off` being the weight's relative error.
  const auto add = [&](Bounded& to, std::size_t i, Exact weight, Exact number, Exact off) {
    const Exact part = weight * number;
    to.exact[i] += part;
    to.scale[i] += std::abs(part);
    if (off > 0 && !std::isnan(part)) to.slack[i] += off * std::abs(part) + tiny * std::abs(number);
    if (std::isfinite(part))
      to.finite_scale[i] += std::abs(part);
    else
      to.finite_parts[i] = false;
  };
  // Adding n numbers costs up to n/2 ulp in the type itself; A7 asks for no more than 4 where sums are wide.
  const auto round = [&](Bounded& to, std::size_t i, Exact ulps) {
    if (std::isfinite(to.scale[i])) to.slack[i] += ulps * precision.ulp(to.scale[i]);
  };

  const View<const Exact> view(x.data(), g.in());
  Walk<Exact>(g, view, {row_major(g.in())}, row_major(g.out_kept())).each([&](const Window<Exact>& window, Index o) {
    const auto at = static_cast<std::size_t>(o);
    Exact largest = 0;
    window.each([&](const Tap<Exact>& tap) {
      if (std::abs(tap.value) > largest) largest = std::abs(tap.value);
      if (!std::isfinite(tap.value)) out.y.finite_parts[at] = false;
    });
    Exact taps = 0;
    op.weights(window, [&](const Tap<Exact>& tap, const auto& given) {
      const Exact weight = weigh(given, Exact{1});
      const auto cell = static_cast<std::size_t>(tap.mark);
      const Exact off = Op::linear || weight == 0
                            ? (Op::linear ? Exact{0} : eps)
                            : (allowed.weight + allowed.per_log * std::abs(std::log(std::abs(weight)))) * eps;
      taps += 1;
      if (Op::linear) out.y.scale[at] += std::abs(weight * tap.value);
      if (!dx.empty()) add(out.dy, at, weight, dx[cell], off);
      if (gy.empty()) return;
      add(out.gx, cell, weight, gy[at], off);
      counts[cell] += 1;
    });
    out.y.exact[at] = op.value(window);
    if (!Op::linear) {
      out.y.scale[at] = std::abs(out.y.exact[at]);
      if (std::is_same_v<Op, SmoothMax> && largest > out.y.scale[at]) out.y.scale[at] = largest;
    }
    round(out.y, at, allowed.value);
    if (!dx.empty()) round(out.dy, at, Op::linear ? Exact{4} : std::max(Exact{4}, taps / 2));
  });
  for (std::size_t i = 0; i < counts.size(); ++i) round(out.gx, i, std::max(Exact{4}, counts[i] / 2));
  return out;
}

}  // namespace

Reference reference(const Operator& op, const Geometry& g, const std::vector<Exact>& x, const std::vector<Exact>& dx,
                    const std::vector<Exact>& gy, const Precision& precision) {
  return std::visit(
      [&]<class Op>(const Op& chosen) {
        if constexpr (Op::selects)
          return Reference{};
        else
          return of(chosen, g, x, dx, gy, precision);
      },
      op);
}

}  // namespace cenote::agree
