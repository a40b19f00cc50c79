// The friendly names give what the verbs of run.hpp give, for every machine scalar. This suite links cenote::cenote, so
// both go through the library's objects; tests/kernels hold those to the definition.
#include "cenote/pool.hpp"
#include "support/laws.hpp"

#ifndef CENOTE_COMPILED
#error "this suite is about the compiled library"
#endif

namespace cenote::test {
namespace {

template <class T>
class Names : public testing::Test {};

// The list with a leading comma each; the first entry is there to stand before the first comma.
#define CENOTE_TYPE(name, type) , type
template <class, class... T>
using AllBut = testing::Types<T...>;
#ifdef CENOTE_FEWER_TARGETS  // a float, a half and an integer stand for all of them
using Scalars = testing::Types<float, f16, std::uint8_t>;
#else
using Scalars = AllBut<void CENOTE_MACHINE_SCALARS(CENOTE_TYPE)>;
#endif
#undef CENOTE_TYPE
TYPED_TEST_SUITE(Names, Scalars);

template <class T>
Tensor<T> ramp(const Dims& dims) {
  Tensor<T> out(dims);
  Index i = 0;
  for (T& cell : out.data()) cell = T(i++ * 7 % 11);
  return out;
}

template <class T, class Op>
Tensor<T> by_forward(const Op& op, const Geometry& g, const Tensor<T>& x) {
  Tensor<T> y(g.out());
  forward<T>(op, g, x.view(), y.view());
  return y;
}
template <class T, class Op>
Tensor<T> by_jvp(const Op& op, const Geometry& g, const Tensor<T>& x, const Tensor<T>& dx) {
  Tensor<T> dy(g.out());
  jvp<T>(op, g, x.view(), dx.view(), dy.view());
  return dy;
}
template <class T, class Op>
Tensor<T> by_vjp(const Op& op, const Geometry& g, const Tensor<T>& x, const Tensor<T>& gy) {
  Tensor<T> gx(g.in());
  vjp<T>(op, g, x.view(), gy.view(), gx.view());
  return gx;
}

TYPED_TEST(Names, ForwardEqualsTheVerb) {
  using T = TypeParam;
  const auto x = ramp<T>({2, 5, 6});
  const Sliding s{.kernel = {3, 2}, .stride = 2, .padding = 1};
  const Geometry g = resolve(x.dims(), s);
  EXPECT_EQ(max_pool(x, s), by_forward(Max{}, g, x));
  EXPECT_EQ(min_pool(x, s), by_forward(Min{}, g, x));
  EXPECT_EQ(avg_pool(x, s), by_forward(Average{}, g, x));
  EXPECT_EQ(sum_pool(x, s), by_forward(Sum{}, g, x));
  const Geometry adaptive = resolve(x.dims(), Adaptive{.output = {2, 4}});
  EXPECT_EQ(adaptive_max_pool(x, {.output = {2, 4}}), by_forward(Max{}, adaptive, x));
  EXPECT_EQ(adaptive_min_pool(x, {.output = {2, 4}}), by_forward(Min{}, adaptive, x));
  EXPECT_EQ(adaptive_avg_pool(x, {.output = {2, 4}}), by_forward(Average{}, adaptive, x));
  EXPECT_EQ(adaptive_sum_pool(x, {.output = {2, 4}}), by_forward(Sum{}, adaptive, x));
  const Geometry global = resolve(x.dims(), Global{.last = 2, .keep = false});
  EXPECT_EQ(global_max_pool(x, {.last = 2, .keep = false}), by_forward(Max{}, global, x));
  EXPECT_EQ(global_min_pool(x, {.last = 2, .keep = false}), by_forward(Min{}, global, x));
  EXPECT_EQ(global_avg_pool(x, {.last = 2, .keep = false}), by_forward(Average{}, global, x));
  EXPECT_EQ(global_sum_pool(x, {.last = 2, .keep = false}), by_forward(Sum{}, global, x));
  if constexpr (Transcendental<T>) {
    EXPECT_EQ(smooth_max_pool(x, s, {.beta = 2}), by_forward(SmoothMax{2}, g, x));
    EXPECT_EQ(adaptive_smooth_max_pool(x, {.output = {2, 4}}, {.beta = 2}), by_forward(SmoothMax{2}, adaptive, x));
    EXPECT_EQ(global_smooth_max_pool(x, {.last = 2, .keep = false}, {.beta = 2}), by_forward(SmoothMax{2}, global, x));
    EXPECT_EQ(lp_pool(x, s, {.p = 3}), by_forward(Lp{3}, g, x));
    EXPECT_EQ(adaptive_lp_pool(x, {.output = {2, 4}}, {.p = 3}), by_forward(Lp{3}, adaptive, x));
    EXPECT_EQ(global_lp_pool(x, {.last = 2, .keep = false}, {.p = 3}), by_forward(Lp{3}, global, x));
  }
}

TYPED_TEST(Names, DerivativesEqualTheVerbs) {
  using T = TypeParam;
  if constexpr (Field<T>) {
    const auto x = ramp<T>({2, 5, 6});
    const auto dx = ramp<T>({2, 5, 6});
    const Sliding s{.kernel = {3, 2}, .stride = 2, .padding = 1};
    const Geometry g = resolve(x.dims(), s);
    const auto gy = ramp<T>(g.out());
    EXPECT_EQ(max_pool_jvp(x, dx, s), by_jvp(Max{}, g, x, dx));
    EXPECT_EQ(max_pool_vjp(x, gy, s), by_vjp(Max{}, g, x, gy));
    EXPECT_EQ(max_pool_vjp(x, gy, s, {.ties = Ties::split}), by_vjp(Max{Ties::split}, g, x, gy));
    EXPECT_EQ(avg_pool_jvp(x, dx, s), by_jvp(Average{}, g, x, dx));
    EXPECT_EQ(avg_pool_vjp(x, gy, s), by_vjp(Average{}, g, x, gy));
    EXPECT_EQ(avg_pool_vjp(x.dims(), gy, s), by_vjp(Average{}, g, x, gy));
    EXPECT_EQ(smooth_max_pool_jvp(x, dx, s, {.beta = 2}), by_jvp(SmoothMax{2}, g, x, dx));
    EXPECT_EQ(smooth_max_pool_vjp(x, gy, s, {.beta = 2}), by_vjp(SmoothMax{2}, g, x, gy));
    EXPECT_EQ(lp_pool_vjp(x, gy, s, {.p = 2}), by_vjp(Lp{2}, g, x, gy));
    EXPECT_EQ(min_pool_vjp(x, gy, s), by_vjp(Min{}, g, x, gy));
    EXPECT_EQ(sum_pool_vjp(x.dims(), gy, s), by_vjp(Sum{}, g, x, gy));
  }
}

TYPED_TEST(Names, PyTorchsNamesMeanTheSameWindows) {
  using T = TypeParam;
  const auto x = ramp<T>({2, 3, 6, 5});
  const Sliding s{.kernel = {3, 3}, .stride = 2, .padding = 1, .rounding = Rounding::ceil};
  EXPECT_EQ(max_pool2d(x, 3, {.stride = 2, .padding = 1, .ceil_mode = true}), max_pool(x, s));
  EXPECT_EQ(avg_pool2d(x, 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false}),
            avg_pool(x, s, {.divisor = Divisor::real}));
  EXPECT_EQ(avg_pool2d(x, {3, 3}, {.stride = 2, .padding = 1, .ceil_mode = true, .divisor_override = 5}),
            avg_pool(x, s, {.divisor = 5}));
  EXPECT_EQ(adaptive_max_pool2d(x, {2, 3}), adaptive_max_pool(x, {.output = {2, 3}}));
  EXPECT_EQ(adaptive_avg_pool3d(x, 1), global_avg_pool(x, {.last = 3}));
  EXPECT_EQ(max_pool2d_with_indices(x, 2).indices, max_pool_with_indices(x, {.kernel = {2, 2}}).indices);
}

// Shapes in types: the same numbers, and the shape in the result's type.
TEST(StaticNames, EqualTheRunTimeOnes) {
  Tensor<float, Shape<2, 4, 6>> x;
  Index i = 0;
  for (float& cell : x.data()) cell = static_cast<float>(i++ * 7 % 11);
  constexpr Sliding s{.kernel = {3, 3}, .stride = 2, .padding = 1};
  const auto y = max_pool<s>(x);
  static_assert(std::is_same_v<decltype(y), const Tensor<float, Shape<2, 2, 3>>>);
  const auto run_time = max_pool(x, s);
  EXPECT_TRUE(std::equal(y.data().begin(), y.data().end(), run_time.data().begin()));
  const auto gx = avg_pool_vjp<s>(x, y);
  static_assert(std::is_same_v<decltype(gx), const Tensor<float, Shape<2, 4, 6>>>);
  const auto run_time_gx = avg_pool_vjp(x, y, s);
  EXPECT_TRUE(std::equal(gx.data().begin(), gx.data().end(), run_time_gx.data().begin()));
  const auto dy = smooth_max_pool_jvp<s>(x, x, {.beta = 2});
  static_assert(std::is_same_v<decltype(dy), const Tensor<float, Shape<2, 2, 3>>>);
  const auto flat = global_max_pool<Global{.last = 2, .keep = false}>(x);
  static_assert(std::is_same_v<decltype(flat), const Tensor<float, Shape<2>>>);
  const auto adapted = adaptive_avg_pool<Adaptive{.output = {3, 2}}>(x);
  static_assert(std::is_same_v<decltype(adapted), const Tensor<float, Shape<2, 3, 2>>>);
}

// Every way to write a geometry is a constant too; g++ 12 is easily confused by parameters that change.
TEST(StaticNames, TakeEveryKindOfPaddingAndAxes) {
  const Tensor<float, Shape<2, 4, 6>> x;
  const auto same_size = min_pool<Sliding{.kernel = {3, 3}, .stride = 1, .padding = same}>(x);
  static_assert(std::is_same_v<decltype(same_size), const Tensor<float, Shape<2, 4, 6>>>);
  const auto lower = min_pool<Sliding{.kernel = {2, 2}, .stride = 3, .padding = same_lower}>(x);
  static_assert(std::is_same_v<decltype(lower), const Tensor<float, Shape<2, 2, 2>>>);
  const auto pairs = sum_pool<Sliding{.kernel = {2, 2}, .padding = {{0, 1}, {1, 0}}}>(x);
  static_assert(std::is_same_v<decltype(pairs), const Tensor<float, Shape<2, 2, 3>>>);
  const auto first = max_pool<Sliding{.kernel = 2, .padding = valid, .axes = {0, -1}}>(x);
  static_assert(std::is_same_v<decltype(first), const Tensor<float, Shape<1, 4, 3>>>);
  const auto dilated = max_pool<Sliding{.kernel = {2}, .dilation = 4, .rounding = Rounding::ceil}>(x);
  static_assert(std::is_same_v<decltype(dilated), const Tensor<float, Shape<2, 4, 2>>>);
}

TEST(StaticNames, LargeTensorsLiveOnTheHeap) {
  static_assert(sizeof(Tensor<float, Shape<64, 112, 112>>) <= 64);
  Tensor<float, Shape<64, 112, 112>> x;
  const auto y = max_pool<Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}>(x);
  static_assert(std::is_same_v<decltype(y), const Tensor<float, Shape<64, 56, 56>>>);
  EXPECT_EQ(y.data().size(), 64U * 56 * 56);
}

TEST(Reducers, AnyFunctionOfAWindowPools) {
  const Tensor<double> x({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto product = fold(1.0, [](double a, double b) { return a * b; });
  EXPECT_EQ(global_reduce_pool(x, {.last = 2, .keep = false}, product), Tensor<double>({2}, {720, 665280}));
  EXPECT_EQ(global_reduce_pool(x, {.last = 2}, product).dims(), (Dims{2, 1, 1}));
  const Reduce count{[](const Window<double>& window) { return static_cast<double>(window.real()); }};
  EXPECT_EQ(reduce_pool(x, {.kernel = {2, 2}, .stride = 1, .padding = 1}, count).data()[0], 1);
  EXPECT_EQ(adaptive_reduce_pool(x, {.output = {1, 2}}, count), Tensor<double>({2, 1, 2}, 4));
}

}  // namespace
}  // namespace cenote::test
