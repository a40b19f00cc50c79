// S6 for whole windows of smooth max and Lp, added by trees of several shapes, against fifty digits on every target.
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "kernels/math.hpp"
#include "support/sanitizers.hpp"

namespace cenote::test {
namespace {

// Sixteen windows side by side: rows[tap] has one cell of each.
using Rows = std::vector<Column>;

// A sum of pairs, with a tangent or tails: three columns.
using Add = Result (*)(const Result&, const Result&);

Result fold_forward(const std::vector<Result>& terms, Add add) {
  Result sum = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) sum = add(sum, terms[i]);
  return sum;
}

Result fold_backward(const std::vector<Result>& terms, Add add) {
  Result sum = terms.back();
  for (std::size_t i = terms.size() - 1; i-- > 0;) sum = add(terms[i], sum);
  return sum;
}

Result fold_by_halves(const std::vector<Result>& terms, Add add) {
  std::vector<Result> level = terms;
  while (level.size() > 1) {
    std::vector<Result> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(add(level[i], level[i + 1]));
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = std::move(next);
  }
  return level[0];
}

// Four running sums, as a kernel keeps to hide latency.
Result fold_by_four(const std::vector<Result>& terms, Add add) {
  std::vector<Result> sums(terms.begin(),
                           terms.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(4, terms.size())));
  for (std::size_t i = 4; i < terms.size(); ++i) sums[i % 4] = add(sums[i % 4], terms[i]);
  return fold_forward(sums, add);
}

constexpr Result (*folds[])(const std::vector<Result>&, Add) = {fold_forward, fold_backward, fold_by_halves,
                                                                fold_by_four};

Result add_pairs(const Result& x, const Result& y) { return apply(Op::add, 0, {x.a, x.b, y.a, y.b}); }
Result add_triples(const Result& x, const Result& y) {
  return apply(Op::add_triple, 0, {x.a, x.b, x.c, y.a, y.b, y.c});
}
Result add_precise(const Result& x, const Result& y) {
  return apply(Op::add_precise, 0, {x.a, x.b, x.c, y.a, y.b, y.c});
}

// Windows of one kind per column: narrow, wide, with an outlier, constant, tiny, tuned to y near 0.
template <class T>
Rows windows(Random& random, std::size_t taps, double beta) {
  Rows rows(taps, Column(widest));
  for (std::size_t w = 0; w < widest; ++w) {
    const double shared = random.uniform(-3, 3);
    const auto odd_one = static_cast<std::size_t>(random.integer(0, static_cast<double>(taps) - 1));
    for (std::size_t i = 0; i < taps; ++i) {
      double x = random.uniform(-3, 3);
      if (w % 8 == 1) x = random.spread(-30, 4);
      if (w % 8 == 2 && i == odd_one) x = (w < 8 ? 1e6 : -1e6) + x;
      if (w % 8 == 3) x = shared;
      if (w % 8 == 4) x = random.spread(-140, -100);
      if (w % 8 == 5) x = -std::log(static_cast<double>(taps)) / beta * (1 + random.spread(-40, -3));
      if (w % 8 == 6) x = 1e6 + x;
      if (w % 8 == 7) x = -0.5 * std::log(static_cast<double>(taps)) / beta * (1 + random.spread(-50, -20));
      rows[i][w] = static_cast<double>(static_cast<T>(x));
    }
  }
  return rows;
}

struct ExactWindow {
  Precise y;
  Precise scale;  // the larger of |y| and the largest magnitude
  Precise tangent, tangent_scale;
  std::vector<Precise> weights;
  std::vector<double> distance;  // |beta * (x - extreme)|
};

ExactWindow exact_smooth_max(const Rows& rows, const Rows& tangents, std::size_t w, double beta) {
  double extreme = rows[0][w];
  double largest = 0;
  for (const Column& row : rows) {
    extreme = beta > 0 ? std::max(extreme, row[w]) : std::min(extreme, row[w]);
    largest = std::max(largest, std::abs(row[w]));
  }
  ExactWindow out;
  Precise sum = 0;
  for (const Column& row : rows) {
    const Precise away = Precise(beta) * (Precise(row[w]) - Precise(extreme));
    out.weights.push_back(exp(away));
    out.distance.push_back(std::abs(static_cast<double>(away)));
    sum += out.weights.back();
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.weights[i] /= sum;
    out.tangent += out.weights[i] * Precise(tangents[i][w]);
    out.tangent_scale += out.weights[i] * Precise(std::abs(tangents[i][w]));
  }
  out.y = Precise(extreme) + log(sum) / Precise(beta);
  out.scale = std::max(Precise(abs(out.y)), Precise(largest));
  return out;
}

constexpr std::size_t window_sizes[] = {2, 3, 4, 9, 25, 64, address_sanitizer ? 128 : 1024};

template <class T>
void smooth_max_of_windows(const char* what) {
  constexpr bool precise = std::is_same_v<T, double>;
  Random random;
  for (const std::size_t taps : window_sizes) {
    const double size = taps > 64 ? random.uniform(-10, 10) : random.spread(-10, 10);
    for (const double beta : {size, random.spread(-10, 10), 1.0, -1e3}) {
      if (taps > 64 && beta != size) continue;
      const Rows rows = windows<T>(random, taps, beta);
      Rows tangents;
      for (std::size_t i = 0; i < taps; ++i)
        tangents.push_back(random.column(widest, [&] { return as_float(random.uniform(-1, 1)); }));
      std::vector<ExactWindow> exact;
      for (std::size_t w = 0; w < widest; ++w) exact.push_back(exact_smooth_max(rows, tangents, w, beta));
      on_every_target([&] {
        SCOPED_TRACE(std::string(what) + ", taps " + std::to_string(taps) + ", beta " + std::to_string(beta));
        Worst worst(precise ? "smooth max f64: y in ulp" : "smooth max f32: y in ulp");
        Worst worst_weight(precise ? "smooth max f64: weight, share of its bound" : "smooth max f32: weight, share");
        std::vector<Result> terms;
        std::vector<Result> with_tangents;
        for (std::size_t i = 0; i < taps; ++i) {
          terms.push_back(apply(precise ? Op::exp_precise : Op::exp, beta, {rows[i]}));
          with_tangents.push_back(terms.back());
          for (std::size_t w = 0; w < widest; ++w)
            with_tangents.back().c[w] = with_tangents.back().b[w] * tangents[i][w];
        }
        for (const auto fold : folds) {
          const Result sum = fold(terms, precise ? add_precise : add_pairs);
          const Column y = apply(precise ? Op::finish_precise : Op::finish, beta, {sum.a, sum.b, sum.c}).a;
          for (std::size_t w = 0; w < widest; ++w)
            ASSERT_LE(worst(ulps(static_cast<T>(y[w]), exact[w].y, exact[w].scale)), precise ? 2.5 : 1)
                << "window " << w;
          for (std::size_t i = 0; i < taps; ++i) {
            Column mantissa(widest);
            Column exponent(widest);
            for (std::size_t w = 0; w < widest; ++w) {
              mantissa[w] = terms[i].b[w] / (precise ? sum.b[w] + sum.c[w] : sum.b[w]);
              exponent[w] = terms[i].a[w] - sum.a[w];
            }
            const Column weight = apply(Op::scale, 0, {mantissa, exponent}).a;
            for (std::size_t w = 0; w < widest; ++w) {
              const Precise& e = exact[w].weights[i];
              const double bound = 4 + exact[w].distance[i];
              ASSERT_LE(worst_weight(ulps(static_cast<T>(weight[w]), e, e) / bound), precise ? 1 : 0.5)
                  << "window " << w << " tap " << i;
            }
          }
          const Result pushed = fold(with_tangents, add_triples);
          for (std::size_t w = 0; w < widest; ++w) {
            const double got = pushed.c[w] / pushed.b[w];
            ASSERT_LE(static_cast<double>(abs(Precise(got) - exact[w].tangent) / exact[w].tangent_scale),
                      precise ? 64 * unit * std::sqrt(static_cast<double>(taps)) : 1e-9)
                << "window " << w;
          }
        }
      });
    }
  }
}

TEST(MathWindows, S6_SmoothMaxOfF32) { smooth_max_of_windows<float>("f32"); }
TEST(MathWindows, S6_SmoothMaxOfF64) { smooth_max_of_windows<double>("f64"); }

// S3: cells whose exponentials no number can hold.
TEST(MathWindows, S3_SmoothMaxOfTheLargestF32) {
  const double largest = std::numeric_limits<float>::max();
  const Column x = padded({largest, -largest, 1e30, -1e30, 0x1p-149});
  on_every_target([&] {
    for (const double beta : {1e3, -1e3, 1e200, -1e200, 1.7e308}) {
      const Result term = apply(Op::exp, beta, {x});
      const Result sum = add_pairs(term, term);
      const Column y = apply(Op::finish, beta, {sum.a, sum.b}).a;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (std::abs(x[i]) > 1 || std::abs(beta) > 1e199) {
          EXPECT_EQ(static_cast<float>(y[i]), static_cast<float>(x[i])) << beta;
        }
    }
  });
}

TEST(MathWindows, SmoothMaxBeyondThePreciseLimit) {
  on_every_target([] {
    Random random;
    Worst worst("smooth max f64 beyond the limit: y in ulp");
    for (const double beta : {1.0, 0.73, -1e-3, 1e3}) {
      const Column x = random.column(480, [&] { return random.spread(45, 900) / std::abs(beta); });
      Column other = x;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (i % 3 != 0) other[i] = x[i] + random.integer(-3, 3) * ulp_of(x[i]);
      const Result sum = add_precise(apply(Op::exp_precise, beta, {x}), apply(Op::exp_precise, beta, {other}));
      const Column y = apply(Op::finish_precise, beta, {sum.a, sum.b, sum.c}).a;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Precise extreme = beta > 0 ? std::max(x[i], other[i]) : std::min(x[i], other[i]);
        const Precise away = -abs(Precise(beta) * (Precise(x[i]) - Precise(other[i])));
        const Precise exact = extreme + log(1 + exp(away)) / Precise(beta);
        ASSERT_LE(worst(ulps(y[i], exact, exact)), 5) << beta << " " << x[i];
      }
    }
  });
}

// As S6: y within 4 ulp, a weight within 4 + p / 32 ulp (the definition's is within a few p).
template <class T>
void lp_of_windows() {
  constexpr bool precise = std::is_same_v<T, double>;
  Random random;
  for (const std::size_t taps : window_sizes)
    for (const double p : {1.0, 2.0, 3.0, 1.37, 12.5, 200.0}) {
      if (taps > 64 && p != 3 && p != 2) continue;
      Rows rows(taps, Column(widest));
      for (std::size_t w = 0; w < widest; ++w) {
        const int size = static_cast<int>(precise ? random.integer(-1070, 1000) : random.integer(-120, 100));
        for (std::size_t i = 0; i < taps; ++i) {
          double x = random.uniform(0, 3);
          if (w % 4 == 1) x = std::abs(random.spread(-30, 4));
          if (w % 4 == 2) x = random.uniform(0, 1) < 0.5 ? 0 : x;
          if (w % 4 == 3) x = std::ldexp(x, size);
          rows[i][w] = static_cast<double>(static_cast<T>(x));
        }
      }
      std::vector<Precise> exact;
      std::vector<std::vector<Precise>> exact_weights;
      for (std::size_t w = 0; w < widest; ++w) {
        std::vector<Precise> logs;
        Precise sum = 0;
        for (const Column& row : rows) {
          logs.push_back(row[w] == 0 ? Precise(-1e9) : Precise(log(Precise(row[w]))));
          if (row[w] != 0) sum += exp(Precise(p) * logs.back());
        }
        const Precise log_y = sum == 0 ? Precise(-1e9) : Precise(log(sum) / Precise(p));
        exact.push_back(exp(log_y));
        exact_weights.emplace_back();
        for (const Precise& log_x : logs) exact_weights.back().push_back(exp((Precise(p) - 1) * (log_x - log_y)));
      }
      on_every_target([&] {
        SCOPED_TRACE("taps " + std::to_string(taps) + ", p " + std::to_string(p));
        Worst worst(precise ? "Lp f64: y in ulp" : "Lp f32: y in ulp");
        Worst worst_special("Lp f64, p = 1 or 2: y in ulp");
        Worst worst_weight(precise ? "Lp f64: weight in ulp, over 1 + p / 128" : "Lp f32: weight in ulp");
        std::vector<Result> terms;
        std::vector<Result> special;
        for (const Column& row : rows) {
          terms.push_back(apply(precise ? Op::pow_precise : Op::pow, p, {row}));
          special.push_back(apply(p == 2 ? Op::square : Op::magnitude, 0, {row}));
        }
        for (const auto fold : folds) {
          const Result sum = fold(terms, precise ? add_precise : add_pairs);
          const Column y = apply(precise ? Op::finish_lp_precise : Op::finish_lp, p, {sum.a, sum.b, sum.c}).a;
          for (std::size_t w = 0; w < widest; ++w) {
            ASSERT_LE(worst(ulps(static_cast<T>(y[w]), exact[w], exact[w])), precise ? 2 : 1) << w;
          }
          if (precise && p <= 2 && p == std::rint(p)) {
            const Result total = fold(special, add_precise);
            Column rounded(widest);
            for (std::size_t w = 0; w < widest; ++w) rounded[w] = total.b[w] + total.c[w];
            const Column z = p == 2 ? apply(Op::square_root, 0, {total.a, total.b, total.c}).a
                                    : apply(Op::scale, 0, {rounded, total.a}).a;
            for (std::size_t w = 0; w < widest; ++w) {
              ASSERT_LE(worst_special(ulps(z[w], exact[w], exact[w])), 1.01) << w;
            }
          }
          const Result inverse = apply(precise ? Op::inverse_lp_precise : Op::inverse_lp, p, {sum.a, sum.b, sum.c});
          for (std::size_t i = 0; i < taps; ++i) {
            const Result power = apply(precise ? Op::pow_precise : Op::pow, p - 1, {rows[i]});
            Column mantissa(widest);
            Column exponent(widest);
            for (std::size_t w = 0; w < widest; ++w) {
              mantissa[w] = power.b[w] * inverse.b[w];
              exponent[w] = power.a[w] + inverse.a[w];
            }
            const Column weight = apply(Op::scale, 0, {mantissa, exponent}).a;
            for (std::size_t w = 0; w < widest; ++w) {
              if (rows[i][w] == 0) continue;  // the sign is 0
              const Precise& e = exact_weights[w][i];
              const double error = ulps(static_cast<T>(weight[w]), e, e);
              ASSERT_LE(worst_weight(precise ? error / (1 + p / 128) : error), precise ? 4 : 1) << w << " " << i;
            }
          }
        }
      });
    }
}

TEST(MathWindows, LpOfF32) { lp_of_windows<float>(); }
TEST(MathWindows, LpOfF64) { lp_of_windows<double>(); }

}  // namespace
}  // namespace cenote::test
