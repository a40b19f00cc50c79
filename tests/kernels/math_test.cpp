// The vector mathematics of smooth max and Lp against fifty digits, on every target this machine has: the errors that
// kernels/math-inl.hpp states.
#include <gtest/gtest.h>

#include "kernels/math.hpp"

namespace cenote::test {
namespace {

TEST(MathExp, PairOfCellsThatWereF32) {
  on_every_target([] {
    Random random;
    Worst worst("ExpPair: error - |beta x| 2^-52");
    for (const double beta : {1.0, -1.0, 0.37, 1e-3, -1e3, 1e-30, 1e38, 1e200, -1e200, 1e308, 0x1p-1040}) {
      Column x = random.column(400, [&] { return as_float(random.spread(-149, 127)); });
      for (int i = 0; i < 400; ++i)
        x.push_back(as_float(random.spread(-6, 8) / std::clamp(std::abs(beta), 1e-30, 1e30)));
      for (const double extreme : {0.0, -0.0, 1e6, -1e6, 0x1p-149, -0x1p-149, 0x1.fffffep127, -0x1.fffffep127, 1.0})
        x.push_back(extreme);
      x = padded(x);
      const Result got = apply(Op::exp, beta, {x});
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(got.a[i], std::rint(got.a[i]));
        ASSERT_TRUE(got.b[i] >= 0.7 && got.b[i] <= 1.42) << beta << " " << x[i] << " " << got.b[i];
        if (std::abs(beta) > 1e250) continue;  // as 1e250
        const double exact = std::abs(beta * x[i]);
        const auto error = static_cast<double>(abs(log_of(got.a[i], got.b[i]) - Precise(beta) * Precise(x[i])));
        ASSERT_LE(worst(error - exact * 0x1p-52), 1e-12) << beta << " " << x[i];
      }
    }
    const Result zero = apply(Op::exp, 3, {Column(widest, 0.0)});
    EXPECT_EQ(zero.a[0], 0);
    EXPECT_EQ(zero.b[0], 1);
  });
}

TEST(MathExp, PrecisePair) {
  on_every_target([] {
    Random random;
    Worst worst("ExpPairPrecise: f + c, in 2^-53");
    Worst worst_head("ExpPairPrecise: f alone, in ulp");
    for (const double beta : {1.0, -1.0, 0.37, 1e-3, -1e3, 1e-290, 1e290, 3.3}) {
      Column x = random.column(1000, [&] { return random.spread(-60, 45) / std::abs(beta) * (1 - 0x1p-50); });
      for (int i = 0; i < 1000; ++i) x.push_back(random.uniform(-40, 40) / beta);
      for (int i = -40; i <= 40; ++i)  // where n changes
        for (const double away : {-1e-15, 0.0, 1e-15}) x.push_back((i + 0.5 + away) * 0.6931471805599453 / beta);
      for (const double extreme : {0.0, -0.0, 0x1p-1074, -0x1p-1074, 1e-310}) x.push_back(extreme);
      x = padded(x);
      const Result got = apply(Op::exp_precise, beta, {x});
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(got.a[i], std::rint(got.a[i]));
        ASSERT_TRUE(got.b[i] >= 0.69 && got.b[i] <= 1.45);
        const Precise exact = Precise(beta) * Precise(x[i]);
        const auto error = static_cast<double>(abs(log_of(got.a[i], got.b[i], got.c[i]) - exact));
        ASSERT_LE(worst(error / unit), 0.4) << beta << " " << x[i];
        const auto alone = static_cast<double>(abs(log_of(got.a[i], got.b[i]) - exact)) * got.b[i];
        ASSERT_LE(worst_head(alone / ulp_of(got.b[i])), 0.75) << beta << " " << x[i];
      }
    }
  });
}

TEST(MathExp, PrecisePairBeyondItsLimitStaysInRange) {
  on_every_target([] {
    Random random;
    Worst worst("ExpPairPrecise beyond its limit, in 2^-53 |beta x|");
    for (const double beta : {1.0, -7.3}) {
      const Column x = random.column(800, [&] { return random.spread(45, 990); });
      const Result got = apply(Op::exp_precise, beta, {x});
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(got.b[i] >= 0.69 && got.b[i] <= 1.45) << x[i] << " " << got.b[i];
        const Precise exact = Precise(beta) * Precise(x[i]);
        const auto error = static_cast<double>(abs(log_of(got.a[i], got.b[i], got.c[i]) - exact) / abs(exact));
        ASSERT_LE(worst(error / unit), 2.2) << x[i];
      }
    }
  });
}

TEST(MathAdd, PairsAndTriples) {
  on_every_target([] {
    Random random;
    const std::size_t count = 4000;
    const Column n = random.column(count, [&] { return random.integer(-1200, 1200); });
    Column m = random.column(count, [&] { return random.integer(-1200, 1200); });
    for (std::size_t i = 0; i < count / 2; ++i) m[i] = n[i] + random.integer(-60, 60);
    const Column f = random.column(count, [&] { return random.uniform(0.7, 1024); });
    const Column g = random.column(count, [&] { return random.uniform(0.7, 1.42); });
    const Column t = random.column(count, [&] { return random.spread(-20, 20); });
    const Column u = random.column(count, [&] { return random.spread(-20, 20); });
    const Result pair = apply(Op::add, 0, {n, f, m, g});
    const Result other = apply(Op::add, 0, {m, g, n, f});
    EXPECT_TRUE(same_bits(pair.a, other.a) && same_bits(pair.b, other.b));
    const Result triple = apply(Op::add_triple, 0, {n, f, t, m, g, u});
    EXPECT_TRUE(same_bits(pair.a, triple.a) && same_bits(pair.b, triple.b));
    for (std::size_t i = 0; i < count; ++i) {
      const double largest = std::max(n[i], m[i]);
      ASSERT_EQ(pair.a[i], largest);
      const auto down = [&](double x, double e) { return std::ldexp(x, static_cast<int>(e - largest)); };
      ASSERT_EQ(pair.b[i], down(f[i], n[i]) + down(g[i], m[i])) << n[i] << " " << m[i];
      ASSERT_EQ(triple.c[i], down(t[i], n[i]) + down(u[i], m[i])) << n[i] << " " << m[i];
    }
  });
}

TEST(MathAdd, ExponentsOfAnySize) {
  on_every_target([] {
    const double far = 0x1p800;
    const Column n = padded({far, -far, far, 1e300, -1e300, -1e300, 0});
    const Column m = padded({far, -far, 0, -1e300, -1e300, 5, -1e300});
    const Column sum = padded({2, 2, 1, 1, 2, 1, 1});
    const Column one(n.size(), 1.0);
    const Result got = apply(Op::add, 0, {n, one, m, one});
    EXPECT_TRUE(same_bits(got.b, sum));
    const Result precise = apply(Op::add_precise, 0, {n, one, Column(n.size(), 0.0), m, one, Column(n.size(), 0.0)});
    EXPECT_TRUE(same_bits(precise.b, sum));
    for (std::size_t i = 0; i < n.size(); ++i) EXPECT_EQ(got.a[i], std::max(n[i], m[i]));
  });
}

TEST(MathAdd, CompensatedSumsLoseNothing) {
  on_every_target([] {
    Random random;
    Worst worst("AddPairPrecise: 2^15 terms, in 2^-53");
    Result sum{Column(widest, zero_exponent), Column(widest), Column(widest)};
    std::vector<Precise> exact(widest, Precise(0));
    for (int tap = 0; tap < 1 << 15; ++tap) {
      const Column n = random.column(widest, [&] { return random.integer(-30, 0); });
      const Column f = random.column(widest, [&] { return random.uniform(0.7, 1.42); });
      const Column c = random.column(widest, [&] { return random.uniform(-unit / 2, unit / 2); });
      for (std::size_t i = 0; i < widest; ++i) exact[i] += ldexp(Precise(f[i]) + Precise(c[i]), static_cast<int>(n[i]));
      sum = apply(Op::add_precise, 0, {sum.a, sum.b, sum.c, n, f, c});
    }
    for (std::size_t i = 0; i < widest; ++i) {
      const Precise got = ldexp(Precise(sum.b[i]) + Precise(sum.c[i]), static_cast<int>(sum.a[i]));
      EXPECT_LE(worst(static_cast<double>(abs(got / exact[i] - 1)) / unit), 0x1p-13);
    }
  });
}

TEST(MathScale, IsLdexp) {
  on_every_target([] {
    Random random;
    Column f = random.column(6000, [&] { return random.spread(-60, 40); });
    Column e = random.column(6000, [&] { return random.integer(-1200, 1100); });
    for (const double far : {-1e300, 1e300, -2000.0, 2000.0, -1075.0, -1074.0, 1023.0})
      for (const double mantissa : {1.0, -1.41, 0.0, 0.75}) f.push_back(mantissa), e.push_back(far);
    f = padded(f);
    e = padded(e);
    const Result got = apply(Op::scale, 0, {f, e});
    for (std::size_t i = 0; i < f.size(); ++i) {
      const int exponent = static_cast<int>(std::clamp(e[i], -3000.0, 3000.0));
      ASSERT_EQ(got.a[i], std::ldexp(f[i], exponent)) << f[i] << " " << e[i];
    }
  });
}

TEST(MathLog, Pairs) {
  on_every_target([] {
    Random random;
    Worst worst("LogPair: relative to max(|log|, 0.35)");
    Worst worst_small("LogPair: relative, n = 0 and f near 1");
    Worst worst_precise("LogPairPrecise: in ulp of max(|log|, 0.35)");
    Column n = random.column(2000, [&] { return std::rint(random.spread(0, 51)); });
    Column f = random.column(2000, [&] { return std::abs(random.spread(-1, 20)); });
    for (int i = 0; i < 1000; ++i) {  // n * ln 2 and log f cancel
      const double k = random.integer(-20, 20);
      n.push_back(i % 2 == 0 ? -k : 0);
      f.push_back(std::ldexp(1 + random.spread(-52, -1), static_cast<int>(-n.back())));
    }
    for (const double large : {1e20, 1e100, 1e240, -1e240, 0x1p53, -0x1p46, 1e17 + 16})
      n.push_back(large), f.push_back(1.3);
    n = padded(n);
    f = padded(f);
    const Column c = random.column(n.size(), [&] { return random.uniform(-2, 2); });
    Column tail(n.size());
    for (std::size_t i = 0; i < n.size(); ++i) tail[i] = c[i] * ulp_of(f[i]);
    const Result fast = apply(Op::log, 0, {n, f});
    const Result precise = apply(Op::log_precise, 0, {n, f, tail});
    for (std::size_t i = 0; i < n.size(); ++i) {
      const Precise exact = log_of(n[i], f[i]);
      const Precise size = std::max(Precise(abs(exact)), Precise(0.35));
      ASSERT_LE(worst(static_cast<double>(abs(Precise(fast.a[i]) - exact) / size)), 2e-11) << n[i] << " " << f[i];
      if (n[i] == 0 && f[i] > 0.71 && f[i] < 1.41 && exact != 0) {
        ASSERT_LE(worst_small(static_cast<double>(abs(Precise(fast.a[i]) / exact - 1))), 2e-11) << f[i];
      }
      ASSERT_LE(worst_precise(ulps(precise.a[i], log_of(n[i], f[i], tail[i]), size)),
                std::abs(n[i]) < 0x1p52 ? 0.6 : 1.1)
          << n[i] << " " << f[i];
    }
  });
}

TEST(MathPow, Pairs) {
  on_every_target([] {
    Random random;
    Worst worst("PowPair: error - p (|log2 x| + 1) 2^-52");
    Worst worst_precise("PowPairPrecise: error - p 2^-58, in 2^-53");
    for (const double p : {1.0, 1.5, 2.0, 3.0, 7.25, 100.0, 1e4, 1e6, 0.5}) {
      Column x = random.column(600, [&] { return std::abs(as_float(random.spread(-149, 127))); });
      for (int i = 0; i < 400; ++i) x.push_back(as_float(1 + random.spread(-24, -1)));
      const std::size_t floats = padded(x).size();
      x = padded(x);
      for (int i = 0; i < 600; ++i) x.push_back(std::abs(random.spread(-1074, 1023)));
      for (int i = 0; i < 200; ++i) x.push_back(1 + random.spread(-52, -1));
      x.push_back(std::numeric_limits<double>::max());
      x.push_back(std::numeric_limits<double>::denorm_min());
      x = padded(x);
      const Result fast = apply(Op::pow, p, {x});
      const Result precise = apply(Op::pow_precise, p, {x});
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Precise exact = Precise(p) * log(Precise(x[i]));
        if (i < floats) {
          ASSERT_TRUE(fast.b[i] >= 0.7 && fast.b[i] <= 1.42);
          const auto error = static_cast<double>(abs(log_of(fast.a[i], fast.b[i]) - exact));
          ASSERT_LE(worst(error - p * (std::abs(std::log2(x[i])) + 1) * 0x1p-52), 1e-12) << p << " " << x[i];
        }
        ASSERT_TRUE(precise.b[i] >= 0.7 && precise.b[i] <= 1.42);
        const auto error = static_cast<double>(abs(log_of(precise.a[i], precise.b[i], precise.c[i]) - exact));
        ASSERT_LE(worst_precise((error - p * 0x1p-58) / unit), 0.4) << p << " " << x[i];
      }
      for (const Op op : {Op::pow, Op::pow_precise}) {
        const Result zero = apply(op, p, {Column(widest, 0.0)});
        EXPECT_EQ(zero.a[0], zero_exponent);
        EXPECT_EQ(zero.b[0], 0);
        EXPECT_EQ(zero.c[0], 0);
      }
    }
  });
}

TEST(MathPow, Products) {
  on_every_target([] {
    Random random;
    Worst worst("ProductPair: error / p, in 2^-53");
    for (int p = 3; p <= 16; ++p) {
      const Column x = padded(random.column(600, [&] { return std::abs(as_float(random.spread(-149, 127))); }));
      const Result product = apply(Op::product, p, {x});
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(product.b[i] >= 0x1p-8 && product.b[i] <= 0x1p8);
        const auto error =
            static_cast<double>(abs(log_of(product.a[i], product.b[i]) - Precise(p) * log(Precise(x[i]))));
        ASSERT_LE(worst(error / (p * unit)), 1) << p << " " << x[i];
      }
      const Result zero = apply(Op::product, p, {Column(widest, 0.0)});
      EXPECT_EQ(zero.a[0], zero_exponent);
      EXPECT_EQ(zero.b[0], 0);
    }
  });
}

TEST(MathPow, RootsOfPairs) {
  on_every_target([] {
    Random random;
    Worst worst("FinishLp: relative");
    Worst worst_precise("FinishLpPrecise: in ulp");
    Worst worst_inverse("InverseLpPair: error - p (|log2 y| + 1) 2^-52");
    Worst worst_inverse_precise("InverseLpPairPrecise: error - p 2^-58, in 2^-53");
    for (const double p : {1.0, 1.5, 2.0, 3.0, 7.25, 100.0, 1e4, 1e6}) {
      const std::size_t count = 800;
      const Column wide = random.column(count, [&] { return std::rint(p * random.uniform(-1080, 1000)); });
      const Column narrow = random.column(count, [&] { return std::rint(p * random.uniform(-149, 127)); });
      const Column f = random.column(count, [&] { return std::abs(random.spread(-1, 20)); });
      Column c(count);
      for (std::size_t i = 0; i < count; ++i) c[i] = random.uniform(-1, 1) * ulp_of(f[i]);
      const Result fast = apply(Op::finish_lp, p, {narrow, f});
      const Result precise = apply(Op::finish_lp_precise, p, {wide, f, c});
      const Result inverse = apply(Op::inverse_lp, p, {narrow, f});
      const Result inverse_precise = apply(Op::inverse_lp_precise, p, {wide, f, c});
      for (std::size_t i = 0; i < count; ++i) {
        const Precise log_fast = log_of(narrow[i], f[i]) / p;
        ASSERT_LE(worst(static_cast<double>(abs(Precise(fast.a[i]) / exp(log_fast) - 1))), 2.2e-11 / p + 1.1e-12);
        const Precise log_y = log_of(wide[i], f[i], c[i]) / p;
        const Precise y = exp(log_y);
        ASSERT_LE(worst_precise(ulps(precise.a[i], y, y)), 1) << p << " " << wide[i] << " " << f[i];
        const auto error = static_cast<double>(abs(log_of(inverse.a[i], inverse.b[i]) - (1 - Precise(p)) * log_fast));
        const double size = std::abs(static_cast<double>(log_fast)) * 1.4427;
        ASSERT_LE(worst_inverse(error - p * (size + 1) * 0x1p-52), 2.2e-11);
        const auto error_precise =
            static_cast<double>(abs(log_of(inverse_precise.a[i], inverse_precise.b[i]) - (1 - Precise(p)) * log_y));
        ASSERT_LE(worst_inverse_precise((error_precise - p * 0x1p-58) / unit), 1.1) << p << " " << wide[i];
      }
      const Column none(widest, zero_exponent);
      const Column zero(widest, 0.0);
      EXPECT_EQ(apply(Op::finish_lp, p, {none, zero}).a[0], 0);
      EXPECT_EQ(apply(Op::finish_lp_precise, p, {none, zero, zero}).a[0], 0);
    }
  });
}

TEST(MathPow, MagnitudesAndSquares) {
  on_every_target([] {
    Random random;
    Worst worst("FinishSquareRoot: in ulp");
    Column x = random.column(2000, [&] { return std::abs(random.spread(-1074, 1023)); });
    x.push_back(std::numeric_limits<double>::max());
    x.push_back(std::numeric_limits<double>::denorm_min());
    x.push_back(0);
    x = padded(x);
    const Result one = apply(Op::magnitude, 0, {x});
    EXPECT_TRUE(same_bits(apply(Op::scale, 0, {one.b, one.a}).a, x));
    const Result two = apply(Op::square, 0, {x});
    EXPECT_TRUE(same_bits(apply(Op::square_root, 0, {two.a, two.b, two.c}).a, x));
    const Result sum = apply(Op::add_precise, 0, {two.a, two.b, two.c, two.a, two.b, two.c});
    const Result root = apply(Op::square_root, 0, {sum.a, sum.b, sum.c});
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0 || x[i] > 1e308) continue;
      const Precise square = ldexp(Precise(two.b[i]) + Precise(two.c[i]), static_cast<int>(two.a[i]));
      ASSERT_LE(abs(square / (Precise(x[i]) * Precise(x[i])) - 1), Precise(0x1p-104));
      const Precise exact = sqrt(Precise(2)) * Precise(x[i]);
      ASSERT_LE(worst(ulps(root.a[i], exact, exact)), 1) << x[i];
    }
  });
}

// ---- lanes --------------------------------------------------------------------------------------------------------

// Arguments near a pair's, for whichever operation.
std::vector<Column> arguments(Random& random, std::size_t count) {
  std::vector<Column> in;
  for (int c = 0; c < 6; ++c)
    in.push_back(random.column(
        count, [&] { return random.uniform(0, 1) < 0.5 ? random.uniform(0.7, 1.42) : random.integer(-50, 50); }));
  return in;
}

TEST(MathLanes, PositionAndNumberOfLanesDoNotMatter) {
  on_every_target([] {
    Random random;
    const auto in = arguments(random, 160);
    for (int op = 0; op < static_cast<int>(Op::count); ++op) {
      const Result whole = apply(static_cast<Op>(op), 2.7, in);
      for (const int lanes : {1, 2}) {
        const Result narrow = apply(static_cast<Op>(op), 2.7, in, lanes);
        EXPECT_TRUE(same_bits(whole.a, narrow.a) && same_bits(whole.b, narrow.b) && same_bits(whole.c, narrow.c)) << op;
      }
      auto shifted = in;
      const auto rotate = [](Column& column) { std::rotate(column.begin(), column.begin() + 1, column.end()); };
      for (Column& column : shifted) rotate(column);
      Result turned = whole;
      for (Column* column : {&turned.a, &turned.b, &turned.c}) rotate(*column);
      const Result moved = apply(static_cast<Op>(op), 2.7, shifted);
      EXPECT_TRUE(same_bits(turned.a, moved.a) && same_bits(turned.b, moved.b) && same_bits(turned.c, moved.c)) << op;
    }
  });
}

// For the sanitizers: no argument is undefined behaviour.
TEST(MathLanes, AnyArgumentGivesSomething) {
  on_every_target([] {
    const Column strange = {infinity, -infinity, std::nan(""), 1e308, -1e308, 0x1p-1074, 0.0, -0.0};
    std::vector<Column> in(6);
    for (std::size_t i = 0; i < 512; ++i)
      for (std::size_t c = 0; c < 6; ++c) in[c].push_back(strange[(i >> c) % strange.size()]);
    for (int op = 0; op < static_cast<int>(Op::count); ++op)
      for (const double parameter : {1.0, -1e308, infinity, std::nan(""), 0.0})
        EXPECT_EQ(apply(static_cast<Op>(op), parameter, in).a.size(), 512U);
  });
}

}  // namespace
}  // namespace cenote::test
