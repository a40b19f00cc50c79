#include "kernels/math.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math.cpp"
#include "kernels/highway.hpp"
#include "kernels/math-inl.hpp"

#ifndef CENOTE_TESTS_MATH_COLUMNS
#define CENOTE_TESTS_MATH_COLUMNS

namespace cenote::test {

// Six inputs and three outputs; an operation uses the first few of each.
struct Columns {
  const double* in[6];
  double* out[3];
  std::size_t count;  // a multiple of every vector's lanes
  double parameter;   // beta or p
};

}  // namespace cenote::test

#endif  // CENOTE_TESTS_MATH_COLUMNS

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
      case Op::product: {
        const bool fits = columns.parameter >= 3 && columns.parameter <= 16;
        ProductPair(d, fits ? static_cast<int>(columns.parameter) : 3, in(0), a, b);
        break;
      }
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

namespace cenote {
HWY_EXPORT(ApplyLanes);

namespace test {

Result apply(Op op, double parameter, const std::vector<Column>& in, int lanes) {
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

const char* target_name() { return hwy::TargetName(hwy::SupportedTargets()); }

}  // namespace test
}  // namespace cenote

#endif  // HWY_ONCE
