// There is no global state: verbs run side by side on shared inputs, geometries and linearisations.
#include <thread>

#include "support/laws.hpp"

namespace cenote::test {
namespace {

TEST(Concurrent, VerbsOnSharedInputsGiveTheSameResultsInEveryThread) {
  const Geometry g = resolve({4, 16, 16}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1});
  Tensor<float> x(g.in());
  Index i = 0;
  for (float& cell : x.data()) cell = static_cast<float>(i++ * 7 % 11);
  const Tensor<float> gy(g.out(), 1.0F);
  Tensor<float> y(g.out());
  const auto lin = spec::linearize<float>(Max{}, g, x.view(), y.view());
  std::vector<Tensor<float>> pulled(4);
  std::vector<std::thread> threads;
  std::vector<int> errors(4);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for_each_operator<float>([&](const auto& op) { (void)pull(op, g, x, gy); });
        Tensor<float> gx(g.in());
        lin.pull(gy.view(), gx.view());
        pulled[t] = gx;
        try {
          max_pool(x, {.kernel = {0, 1}});
        } catch (const ShapeError&) {
          ++errors[t];
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(pulled[t], pull(Max{}, g, x, gy));
    EXPECT_EQ(errors[t], 20);
  }
}

}  // namespace
}  // namespace cenote::test
