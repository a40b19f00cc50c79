// The vector mathematics of smooth max and Lp against fifty digits, on every target this machine has: the errors that
// kernels/math-inl.hpp states, and S6 for whole windows added by trees of several shapes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math_test.cpp"
#include "kernels/highway.hpp"
#include "kernels/math-inl.hpp"

#ifndef CENOTE_TESTS_MATH_OPS
#define CENOTE_TESTS_MATH_OPS

#include <cstddef>

namespace cenote::test {

enum class Op {
  exp,
  exp_precise,
  add,
  add_triple,
  add_precise,
  scale,
  log,
  log_precise,
  finish,
  finish_precise,
  pow,
  pow_precise,
  finish_lp,
  finish_lp_precise,
  inverse_lp,
  inverse_lp_precise,
  magnitude,
  square,
  square_root,
  count
};

// Six inputs and three outputs; an operation uses the first few of each.
struct Columns {
  const double* in[6];
  double* out[3];
  std::size_t count;  // a multiple of every vector's lanes
  double parameter;   // beta or p
};

}  // namespace cenote::test

#endif  // CENOTE_TESTS_MATH_OPS

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {
namespace {

template <class D>
void Apply(D d, test::Op op, const test::Columns& columns) {
  using test::Op;
  const auto parameter = hn::Set(d, columns.parameter);
  for (std::size_t i = 0; i < columns.count; i += hn::Lanes(d)) {
    const auto in = [&](int c) { return hn::LoadU(d, columns.in[c] + i); };
    auto a = in(0);
    auto b = hn::Zero(d);
    auto c = hn::Zero(d);
    switch (op) {
      case Op::exp: ExpPair(d, parameter, in(0), a, b); break;
      case Op::exp_precise: ExpPairPrecise(d, parameter, in(0), a, b, c); break;
      case Op::add: {
        const CommonExponent<D> common(d, in(0), in(2));
        a = common.n;
        b = common.Add(in(1), in(3));
        break;
      }
      case Op::add_triple: {
        const CommonExponent<D> common(d, in(0), in(3));
        a = common.n;
        b = common.Add(in(1), in(4));
        c = common.Add(in(2), in(5));
        break;
      }
      case Op::add_precise: {
        const CommonExponent<D> common(d, in(0), in(3));
        a = common.n;
        common.AddPrecise(in(1), in(2), in(4), in(5), b, c);
        break;
      }
      case Op::scale: a = ScalePair(d, in(0), in(1)); break;
      case Op::log: a = LogPair(d, in(0), in(1)); break;
      case Op::log_precise: a = LogPairPrecise(d, in(0), in(1), in(2)); break;
      case Op::finish: a = FinishSmoothMax(d, in(0), in(1), parameter); break;
      case Op::finish_precise: a = FinishSmoothMaxPrecise(d, in(0), in(1), in(2), parameter); break;
      case Op::pow: PowPair(d, parameter, in(0), a, b); break;
      case Op::pow_precise: PowPairPrecise(d, parameter, in(0), a, b, c); break;
      case Op::finish_lp: a = FinishLp(d, in(0), in(1), parameter); break;
      case Op::finish_lp_precise: a = FinishLpPrecise(d, in(0), in(1), in(2), parameter); break;
      case Op::inverse_lp: InverseLpPair(d, in(0), in(1), parameter, a, b); break;
      case Op::inverse_lp_precise: InverseLpPairPrecise(d, in(0), in(1), in(2), parameter, a, b); break;
      case Op::magnitude: MagnitudePair(d, in(0), a, b); break;
      case Op::square: SquarePair(d, in(0), a, b, c); break;
      case Op::square_root: a = FinishSquareRoot(d, in(0), in(1), in(2)); break;
      case Op::count: break;
    }
    hn::StoreU(a, d, columns.out[0] + i);
    hn::StoreU(b, d, columns.out[1] + i);
    hn::StoreU(c, d, columns.out[2] + i);
  }
}

// `lanes`: at most this many, 0 for whole vectors.
void ApplyLanes(test::Op op, const test::Columns& columns, int lanes) {
  if (lanes == 0) Apply(hn::ScalableTag<double>(), op, columns);
  if (lanes == 1) Apply(hn::CappedTag<double, 1>(), op, columns);
  if (lanes == 2) Apply(hn::CappedTag<double, 2>(), op, columns);
}

}  // namespace
}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/precise.hpp"
#include "support/sanitizers.hpp"

namespace cenote {
HWY_EXPORT(ApplyLanes);

namespace test {
namespace {

using Column = std::vector<double>;

constexpr double zero_exponent = -1e300;  // the exponent of zero in math-inl.hpp
constexpr double unit = 0x1p-53;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t widest = 16;  // columns are multiples of this

struct Result {
  Column a, b, c;
};

Result apply(Op op, double parameter, const std::vector<Column>& in, int lanes = 0) {
  const std::size_t count = in[0].size();
  EXPECT_EQ(count % widest, 0U);
  Result out{Column(count), Column(count), Column(count)};
  Columns columns{};
  for (std::size_t i = 0; i < 6; ++i) columns.in[i] = in[std::min(i, in.size() - 1)].data();
  columns.out[0] = out.a.data();
  columns.out[1] = out.b.data();
  columns.out[2] = out.c.data();
  columns.count = count;
  columns.parameter = parameter;
  HWY_DYNAMIC_DISPATCH(ApplyLanes)(op, columns, lanes);
  return out;
}

// Runs the body once for every target; failures name it.
void on_every_target(const std::function<void()>& body) {
  const auto targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const std::int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

class Random {
 public:
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  double sign() { return uniform(-1, 1) < 0 ? -1 : 1; }
  // Magnitudes 2^low to 2^high, all equally likely, both signs.
  double spread(double low, double high) { return sign() * std::exp2(uniform(low, high)); }
  double integer(double low, double high) { return std::floor(uniform(low, high + 1)); }
  template <class F>
  Column column(std::size_t count, F&& draw) {
    Column out(count);
    for (double& cell : out) cell = draw();
    return out;
  }

 private:
  std::mt19937_64 engine_{20240521};  // NOLINT: the same numbers in every run
};

Column padded(Column column) {
  while (column.size() % widest != 0) column.push_back(column.back());
  return column;
}

double as_float(double x) { return static_cast<double>(static_cast<float>(x)); }

double ulp_of(double x) {
  const double size = std::max(std::abs(x), std::numeric_limits<double>::min());
  return std::nextafter(size, infinity) - size;
}

// The distance of a machine number from the exact one, in units in the last place of `scale`.
template <class T>
double ulps(T got, const Precise& exact, const Precise& scale) {
  const T size = std::max(static_cast<T>(abs(scale)), std::numeric_limits<T>::min());
  const Precise unit_of_scale(std::nextafter(size, std::numeric_limits<T>::infinity()) - size);
  return static_cast<double>(abs(Precise(got) - exact) / unit_of_scale);
}

const Precise& ln2() {
  static const Precise value = log(Precise(2));
  return value;
}

// log of a pair: its absolute error is the relative error of the pair.
Precise log_of(double n, double f, double c = 0) { return Precise(n) * ln2() + log(Precise(f) + Precise(c)); }

bool same_bits(const Column& x, const Column& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  });
}

// ---- one function at a time ---------------------------------------------------------------------------------------

// The largest of many measured errors, reported when CENOTE_MATH_REPORT is set.
class Worst {
 public:
  explicit Worst(const char* what) : what_(what) {}
  Worst(const Worst&) = delete;
  Worst& operator=(const Worst&) = delete;
  ~Worst() {
    if (std::getenv("CENOTE_MATH_REPORT") != nullptr)
      std::printf("%-8s %-48s %.4g\n", hwy::TargetName(hwy::SupportedTargets()), what_, worst_);
  }
  double operator()(double error) {
    worst_ = std::max(worst_, error);
    return error;
  }

 private:
  const char* what_;
  double worst_ = 0;
};

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

// ---- whole windows ------------------------------------------------------------------------------------------------

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
}  // namespace test
}  // namespace cenote

#endif  // HWY_ONCE
