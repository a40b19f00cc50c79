// A kept plan gives the bits of a single call, allocates nothing once it is warm, and serves several threads.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "cenote/run.hpp"
#include "support/allocations.hpp"

namespace cenote::test {
namespace {

template <class T>
std::vector<T> numbers(Index count) {
  std::vector<T> out;
  for (Index i = 0; i < count; ++i) out.push_back(static_cast<T>(i * 37 % 101));
  return out;
}

std::vector<Geometry> geometries() {
  return {
      resolve({1, 1, 8, 8}, Sliding{.kernel = {2, 2}, .stride = 2}),
      resolve({3, 6, 5}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}),
      resolve({2, 3, 40, 40}, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1}),
      resolve({5, 7, 7}, Global{.last = 2, .keep = false}),
      resolve({40, 40}, Sliding{.kernel = {15, 15}, .padding = 7}),
      resolve({4, 9, 20}, Adaptive{.output = {4, 6}}),
      resolve({300, 300}, Sliding{.kernel = {3, 3}, .stride = 2}),
      resolve({0, 8, 8}, Sliding{.kernel = {2, 2}}),
  };
}

template <class T, class Op>
void plan_equals_call(const Op& op) {
  for (const Geometry& g : geometries()) {
    const std::vector<T> x = numbers<T>(volume(g.in()));
    std::vector<T> once(static_cast<std::size_t>(volume(g.out())));
    std::vector<T> kept = once;
    forward<T>(op, g, View<const T>(x.data(), g.in()), View<T>(once.data(), g.out()));
    const Plan<Op, T> plan(op, g);
    for (int round = 0; round < 2; ++round) {
      kept.assign(kept.size(), T(Index{9}));
      plan.forward(x.data(), kept.data());
      EXPECT_EQ(kept, once) << to_string(g.in());
    }
  }
}

TEST(KeptPlan, GivesTheBitsOfASingleCall) {
  plan_equals_call<float>(Max{});
  plan_equals_call<float>(Min{});
  plan_equals_call<float>(Average{Divisor::real});
  plan_equals_call<double>(Average{});
  plan_equals_call<double>(Sum{});
  plan_equals_call<float>(SmoothMax{2});
  plan_equals_call<std::uint8_t>(Max{});
  plan_equals_call<std::int16_t>(Average{});
}

TEST(KeptPlan, ObeysStrides) {
  const Geometry g = resolve({4, 6, 32}, Sliding{.kernel = {2, 3}, .stride = 2, .axes = {0, 1}});
  const Dims reversed{-6 * 32, 32, 1};
  const std::vector<float> x = numbers<float>(volume(g.in()));
  const float* last = x.data() + 3 * 6 * 32;
  std::vector<float> once(static_cast<std::size_t>(volume(g.out())));
  std::vector<float> kept = once;
  forward<float>(Max{}, g, View<const float>(last, g.in(), reversed), View<float>(once.data(), g.out()));
  Plan<Max, float>(Max{}, g, reversed, row_major(g.out())).forward(last, kept.data());
  EXPECT_EQ(kept, once);
}

// On windows that are few and on windows that are many.
template <class T>
void expect_means_of(T huge) {
  for (const Index size : {2, 64}) {
    const Geometry g = resolve({size, size}, Sliding{.kernel = {2, 2}});
    const std::vector<T> x(static_cast<std::size_t>(volume(g.in())), huge);
    std::vector<T> y(static_cast<std::size_t>(volume(g.out())));
    Plan<Average, T>(Average{}, g).forward(x.data(), y.data());
    EXPECT_EQ(y, std::vector<T>(y.size(), huge));
  }
}
TEST(KeptPlan, KeepsOverflowedMeansRight) {
  expect_means_of(1.5e308);
  expect_means_of(3e38F);
}

TEST(KeptPlan, AllocatesNothingOnceWarm) {
  for (const Geometry& g : geometries()) {
    const std::vector<float> x = numbers<float>(volume(g.in()));
    std::vector<float> y(static_cast<std::size_t>(volume(g.out())));
    const Plan<Max, float> max(Max{}, g, {.threads = 1});
    const Plan<Average, float> average(Average{}, g, {.threads = 1});
    max.forward(x.data(), y.data());
    average.forward(x.data(), y.data());
    const std::size_t before = allocations;
    max.forward(x.data(), y.data());
    average.forward(x.data(), y.data());
    EXPECT_EQ(allocations, before) << to_string(g.in());
  }
}

TEST(KeptPlan, ServesSeveralThreadsAtOnce) {
  const Geometry g = resolve({2, 30, 50}, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1});
  const Plan<Max, float> plan(Max{}, g, {.threads = 1});
  std::array<int, 3> wrong{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      std::vector<float> x = numbers<float>(volume(g.in()));
      for (float& cell : x) cell += static_cast<float>(t);
      std::vector<float> once(static_cast<std::size_t>(volume(g.out())));
      std::vector<float> kept = once;
      spec::forward<float>(Max{}, g, View<const float>(x.data(), g.in()), View<float>(once.data(), g.out()));
      for (int round = 0; round < 200; ++round) {
        plan.forward(x.data(), kept.data());
        wrong[t] += kept == once ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 3>{}));
}

template <class F>
std::string message(F&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(KeptPlan, RefusesWhatACallWouldRefuse) {
  const Geometry g = resolve({4, 4}, Sliding{.kernel = {2, 2}, .stride = 2});
  std::vector<float> x(16);
  const Plan<Max, float> plan(Max{}, g);
  EXPECT_NE(message([&] { plan.forward(x.data(), x.data() + 3); }).find("y"), std::string::npos);
  EXPECT_NE(message([&] { Plan<Max, float>(Max{}, g, Dims{1}, row_major(g.out())); }).find("x_strides"),
            std::string::npos);
  EXPECT_NE(message([&] {
              Plan<Max, float>(Max{}, g, row_major(g.in()), Dims{0, 1});
            }).find("y_strides"),
            std::string::npos);
  EXPECT_NE(message([&] { Plan<Lp, float>(Lp{0.5}, g); }).find("p"), std::string::npos);
  EXPECT_NE(message([&] { Plan<Max, float>(Max{}, g, {.threads = -2}); }).find("threads"), std::string::npos);
}

}  // namespace
}  // namespace cenote::test
