// Cases from a sequence of choices: a random number generator's in the tests, a fuzzer's bytes in the fuzzer.
#pragma once

#include "kernels/agree.hpp"

namespace cenote::agree {

// How large a case may get. Its cost is about outputs x taps, and both stay below `work`.
struct Limits {
  Index work = 30'000;
  int max_axes = 5;
};

// `Choose` answers below(n) with a number in 0 .. n-1.
template <class Choose>
class CaseMaker {
 public:
  CaseMaker(Choose& choose, const Limits& limits) : choose_(choose), limits_(limits) {}

  Operator make_operator(Type type) {
    switch (below(is_integer(type) ? 8 : 12)) {
      case 0:
      case 1: return Max{};
      case 2: return Max{static_cast<Ties>(below(3))};
      case 3: return Min{};
      case 4: return Min{static_cast<Ties>(below(3))};
      case 5: return Average{};
      case 6: {
        constexpr std::array divisors{Divisor::real, Divisor(3), Divisor(-2), Divisor(1), Divisor(1000)};
        return Average{divisors[below(divisors.size())]};
      }
      case 7: return Sum{};
      case 8:
      case 9:
      case 10: {
        constexpr std::array betas{2.0, 0.25, -1.5, 20.0, 1.0, -0.01};
        return SmoothMax{betas[below(betas.size())], static_cast<Padding>(below(2))};
      }
      default: {
        constexpr std::array powers{2.0, 1.0, 3.5, 7.0};
        return Lp{powers[below(powers.size())]};
      }
    }
  }

  // A legal geometry, or none if the choices led to an illegal or too large one.
  std::optional<Geometry> make_geometry() {
    const int pooled = static_cast<int>(1 + below(static_cast<std::uint64_t>(std::min(limits_.max_axes, 4))));
    const int rank = pooled + static_cast<int>(below(static_cast<std::uint64_t>(limits_.max_axes - pooled + 1)));
    Dims in;
    Dims axes;
    for (int a = 0; a < rank; ++a) in.push_back(0);
    for (int i = 0; i < pooled; ++i) {  // distinct axes, mostly the last ones
      Index a = below(4) == 0 ? signed_below(rank) : rank - pooled + i;
      while (in[static_cast<int>(a)] != 0) a = (a + 1) % rank;
      in[static_cast<int>(a)] = pooled == 1 ? size(200) : pooled == 2 ? size(40) : size(9);
      axes.push_back(a);
    }
    for (int a = 0; a < rank; ++a)  // identity axes: seldom empty, sometimes as many as two vectors hold
      if (in[a] == 0) in[a] = below(16) == 0 ? signed_below(2) : (below(3) == 0 ? size(70) : size(4));
    Resolved resolved;
    switch (below(8)) {
      case 0: {
        Dims output;
        for (const Index a : axes) output.push_back(1 + signed_below(in[static_cast<int>(a)] * 3 / 2 + 1));
        resolved = try_resolve(in, Adaptive{.output = output, .axes = axes});
        break;
      }
      case 1: resolved = try_resolve(in, Global{.axes = axes, .keep = below(2) == 0}); break;
      default: resolved = try_resolve(in, sliding(in, axes));
    }
    if (resolved.problem || too_large(resolved.geometry)) return {};
    return resolved.geometry;
  }

  Layout make_layout(int rank, bool input) {
    Layout layout;
    if (below(4) == 0) return layout;
    if (below(2) == 0) {
      for (int a = 0; a < rank; ++a) layout.order.push_back(a);
      for (int a = rank - 1; a > 0; --a)
        std::swap(layout.order[a], layout.order[static_cast<int>(below(static_cast<std::uint64_t>(a) + 1))]);
    }
    if (below(3) == 0) layout.reversed = static_cast<unsigned>(below(32));
    if (input && below(5) == 0) layout.repeated = static_cast<unsigned>(below(32));
    if (below(4) == 0) layout.step = 1 + signed_below(3);
    if (below(3) == 0) layout.gap = signed_below(5);
    layout.offset = signed_below(4);
    return layout;
  }

  void choose_layouts(Case& c) {
    const int rank = c.geometry.rank();
    const int out_rank = c.geometry.out().rank;
    c.x_layout = make_layout(rank, true);
    c.dx_layout = make_layout(rank, true);
    c.gy_layout = make_layout(out_rank, true);
    c.y_layout = make_layout(out_rank, false);
    c.dy_layout = make_layout(out_rank, false);
    c.gx_layout = make_layout(rank, false);
  }
  void choose_values(Case& c) {
    const auto any = [&] { return static_cast<Values>(below(values_count)); };
    c.x = any();
    c.dx = below(2) == 0 ? Values::spread : any();
    c.gy = below(2) == 0 ? Values::spread : any();
    c.seed = below(1U << 30);
  }

  std::optional<Case> make() {
    Case c;
    c.type = all_types[below(3) == 0 ? below(all_types.size()) : below(4)];
    c.op = make_operator(c.type);
    const auto geometry = make_geometry();
    if (!geometry) return {};
    c.geometry = *geometry;
    choose_values(c);
    choose_layouts(c);
    return c;
  }

  std::uint64_t below(std::uint64_t n) { return choose_.below(n); }

 private:
  Index signed_below(Index n) { return static_cast<Index>(below(static_cast<std::uint64_t>(n))); }
  // Small sizes more often than large ones.
  Index size(Index most) { return 1 + signed_below(below(3) == 0 ? most : std::min<Index>(most, 12)); }

  Sliding sliding(const Dims& in, const Dims& axes) {
    Sliding s{.axes = axes};
    Dims kernel;
    Dims stride;
    Dims dilation;
    Pads padding;
    for (int i = 0; i < axes.rank; ++i) {
      const Index n = in[static_cast<int>(axes[i])];
      const Index most = axes.rank == 1 ? 20 : axes.rank == 2 ? 9 : 3;
      const Index k = below(12) == 0 ? 1 + signed_below(n + 4) : 1 + signed_below(below(3) == 0 ? most : 3);
      kernel.push_back(k);
      stride.push_back(below(8) == 0 ? k + 1 + signed_below(4) : 1 + signed_below(5));
      dilation.push_back(below(3) == 0 ? 1 + signed_below(4) : 1);
      const Index most_pad = below(10) == 0 ? k + 3 : k / 2;
      padding.push_back({signed_below(most_pad + 1), signed_below(most_pad + 1)});
    }
    s.kernel = kernel;
    if (below(4) != 0) s.stride = stride;
    if (below(2) == 0) s.dilation = dilation;
    if (below(2) == 0) s.padding = padding;
    if (below(10) == 0) s.padding = below(2) == 0 ? same : same_lower;
    s.rounding = below(3) == 0 ? Rounding::ceil : Rounding::floor;
    return s;
  }

  [[nodiscard]] bool too_large(const Geometry& g) const {
    Index cost = 1;
    Index cells = 1;
    for (int a = 0; a < g.rank(); ++a) {
      cost *= std::max<Index>(g.axis(a).out * std::min(g.axis(a).kernel, g.axis(a).in), 1);
      cells *= std::max<Index>(g.axis(a).in, 1);
      if (cost > limits_.work || cells > limits_.work) return true;
    }
    return false;
  }

  Choose& choose_;
  Limits limits_;
};

}  // namespace cenote::agree
