// One program on several threads at once, each with a workspace of its own: every result is that of one thread.
#include <gtest/gtest.h>

#include <thread>

#include "cenote/graph.hpp"

namespace cenote {
namespace {

TEST(GraphThreads, N7_OneProgramRunsOnSeveralThreads) {
  Graph<float> g;
  const Handle x = g.input("x", {2, 3, 40, 40});
  const Handle h = relu(g, conv(g, x, g.input("w", {4, 3, 3, 3}), {.padding = 1}));
  const Sliding windows{.kernel = {2, 2}};
  const Handle y = concatenate(
      g, {max_pool(g, h, windows), avg_pool(g, h, windows), smooth_max_pool(g, h, windows, {.beta = 2})}, 1);
  g.output("y", mean(g, mul(g, y, y), {0, 1, 2, 3}));
  const Program<float> program(g);

  constexpr std::size_t threads = 4;
  const auto inputs = [](std::size_t seed) {
    Tensors<float> out;
    float next = static_cast<float>(seed);
    for (const Dims& dims : {Dims{2, 3, 40, 40}, Dims{4, 3, 3, 3}}) {
      Tensor<float>& t = out.emplace_back(dims);
      for (float& v : t.data()) v = std::sin(next += 0.37F);
    }
    return out;
  };
  const Tensor<float> one(Dims{}, 1.0F);
  const auto gradients = [&](std::size_t seed, int repeats) {
    const auto arrays = inputs(seed);
    const auto views = detail::views(arrays);
    Workspace<float> workspace(program);
    Tensors<float> out;
    for (int i = 0; i < repeats; ++i) {
      (void)program.evaluate(workspace, views);
      out = detail::owned<float>(program.vjp(workspace, views, std::vector<View<const float>>{one.view()}));
    }
    return out;
  };
  std::vector<Tensors<float>> found(threads);
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < threads; ++t) running.emplace_back([&, t] { found[t] = gradients(t, 5); });
  for (std::thread& thread : running) thread.join();
  for (std::size_t t = 0; t < threads; ++t) EXPECT_EQ(found[t], gradients(t, 1)) << t;
}

}  // namespace
}  // namespace cenote
