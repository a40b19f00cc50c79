// After its first run of a kind, a program allocates nothing: not for values, not for derivatives, not inside the
// nodes.
#include <gtest/gtest.h>

#include "cenote/graph.hpp"
#include "support/allocations.hpp"

namespace cenote {
namespace {

using test::allocations;

// Every kind of node, with axes long enough for tables on the heap.
Handle network(Graph<float>& g, const Handle& x) {
  const Handle h = relu(g, conv(g, x, g.input("w", {4, 2, 3, 3}), g.input("b", {4}), {.padding = 1}));
  const Sliding windows{.kernel = {3, 3}, .stride = 2, .padding = 1};
  const Handle pools = concatenate(
      g,
      {max_pool(g, h, windows), min_pool(g, h, windows), avg_pool(g, h, windows),
       avg_pool(g, h, windows, {.divisor = Divisor::real}), smooth_max_pool(g, h, windows, {.beta = 2}),
       lp_pool(g, h, windows, {.p = 2}), max_pool(g, h, windows, {.ties = Ties::split}), sum_pool(g, h, windows)},
      1);
  const Handle small = adaptive_max_pool(g, add(g, pools, tanh(g, scale(g, pools, 0.01F))), {.output = {5, 7}});
  const Handle mixed = sub(g, small, neg(g, mul(g, small, small)));
  const Handle positive = log(g, add(g, exp(g, tanh(g, mixed)), exp(g, tanh(g, mixed))));
  const Handle flat =
      flatten(g, concatenate(g, {global_avg_pool(g, positive, {.last = 2}), mean(g, positive, {2, 3}, true)}, 1));
  const Handle logits = matmul(g, linear(g, flat, g.input("v", {6, 64})), g.input("m", {6, 5}));
  return softmax_cross_entropy(g, logits, g.input("t", {2, 5}));
}

TEST(GraphAllocation, N7_RunsAfterTheFirstAllocateNothing) {
  Graph<float> g;
  const Handle x = g.input("x", {2, 2, 150, 140});
  const Handle loss = network(g, x);
  g.output("loss", loss);
  g.output("error", mean_squared_error(g, sum(g, x, {0, 1, 2, 3}), loss));
  const Program<float> program(g, {.exec = {.threads = 1}});
  Workspace<float> workspace(program);
  Tensors<float> inputs;
  float next = 0;
  for (const int i : g.inputs()) {
    Tensor<float>& t = inputs.emplace_back(g.record(i).node.shape);
    for (float& v : t.data()) v = std::sin(next += 0.37F);
  }
  const auto arrays = detail::views(inputs);
  const Tensor<float> one(Dims{}, 1.0F);
  const std::vector<View<const float>> seeds{one.view(), one.view()};

  const auto counted = [&](auto&& run) {
    run();
    const std::size_t before = allocations;
    for (int i = 0; i < 3; ++i) run();
    return allocations - before;
  };
  EXPECT_EQ(counted([&] { (void)program.evaluate(workspace, arrays); }), 0U);
  EXPECT_EQ(counted([&] { (void)program.jvp(workspace, arrays, arrays); }), 0U);
  EXPECT_EQ(counted([&] { (void)program.vjp(workspace, arrays, seeds); }), 0U);
  const auto map = program.linearize(workspace, arrays);
  EXPECT_EQ(counted([&] { (void)map.push(arrays); }), 0U);
  EXPECT_EQ(counted([&] { (void)map.pull(seeds); }), 0U);
  // In turn as well.
  EXPECT_EQ(counted([&] {
              (void)program.evaluate(workspace, arrays);
              (void)program.vjp(workspace, arrays, seeds);
              (void)program.jvp(workspace, arrays, arrays);
            }),
            0U);
}

}  // namespace
}  // namespace cenote
