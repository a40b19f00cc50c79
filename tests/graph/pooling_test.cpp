// Pooling nodes: each builder against the functions of the same name, all three payloads.
#include <gtest/gtest.h>

#include "cenote/graph.hpp"

namespace cenote {
namespace {

Tensor<double> ramp(const Dims& dims, double step = 0.37) {
  Tensor<double> out(dims);
  double x = 0;
  for (double& v : out.data()) v = std::sin(x += step) * 3;
  return out;
}

// A graph of one pooling node against y = forward(x), dy = push(x, dx) and gx = pull(x, gy).
void expect_payloads(const Dims& in, const auto& build, const auto& forward, const auto& push, const auto& pull) {
  Graph<double> g;
  const Handle x = g.input("x", in);
  const Handle y = build(g, x);
  g.output("y", y);
  const auto tx = ramp(in), dx = ramp(in, 0.71), gy = ramp(g.dims(y), 1.3);
  const auto pushed = jvp(g, {tx}, {dx});
  const auto pulled = value_and_vjp(g, {tx}, {gy});
  EXPECT_EQ(pushed.values[0], forward(tx));
  EXPECT_EQ(pulled.values[0], forward(tx));
  EXPECT_EQ(evaluate(g, {tx})[0], forward(tx));
  EXPECT_EQ(pushed.tangents[0], push(tx, dx));
  EXPECT_EQ(pulled.gradients[0], pull(tx, gy));
}

// Windows in one, two and three dimensions, with and without padding.
struct Layer {
  Dims in;
  Sliding windows;
};
const std::array layers{Layer{{2, 9}, {.kernel = {3}, .stride = 2}}, Layer{{3, 8, 8}, {.kernel = {2, 3}, .stride = 1}},
                        Layer{{2, 4, 5, 6}, {.kernel = {2, 2, 3}, .stride = 2, .padding = 1}}};

TEST(FromTorchLean, GraphMaxPool) {
  for (const Layer& layer : layers) {
    const Sliding& windows = layer.windows;
    expect_payloads(
        layer.in, [&](auto& g, auto x) { return max_pool(g, x, windows); },
        [&](const auto& x) { return max_pool(x, windows); },
        [&](const auto& x, const auto& dx) { return max_pool_jvp(x, dx, windows); },
        [&](const auto& x, const auto& gy) { return max_pool_vjp(x, gy, windows); });
  }
}

TEST(FromTorchLean, GraphAvgPool) {
  for (const Layer& layer : layers) {
    const Sliding& windows = layer.windows;
    expect_payloads(
        layer.in, [&](auto& g, auto x) { return avg_pool(g, x, windows); },
        [&](const auto& x) { return avg_pool(x, windows); },
        [&](const auto& x, const auto& dx) { return avg_pool_jvp(x, dx, windows); },
        [&](const auto& x, const auto& gy) { return avg_pool_vjp(x, gy, windows); });
  }
}

TEST(FromTorchLean, GraphSmoothMaxPool) {
  const SmoothMax op{.beta = 1.5};
  for (const Layer& layer : layers) {
    const Sliding& windows = layer.windows;
    expect_payloads(
        layer.in, [&](auto& g, auto x) { return smooth_max_pool(g, x, windows, op); },
        [&](const auto& x) { return smooth_max_pool(x, windows, op); },
        [&](const auto& x, const auto& dx) { return smooth_max_pool_jvp(x, dx, windows, op); },
        [&](const auto& x, const auto& gy) { return smooth_max_pool_vjp(x, gy, windows, op); });
  }
}

TEST(FromTorchLean, GraphMaxPool2d) {
  expect_payloads(
      {3, 8, 8},
      [](auto& g, auto x) {
        return max_pool2d(g, x, {2, 2}, {.stride = 2});
      },
      [](const auto& x) {
        return max_pool2d(x, {2, 2}, {.stride = 2});
      },
      [](const auto& x, const auto& dx) {
        return max_pool2d_jvp(x, dx, {2, 2}, {.stride = 2});
      },
      [](const auto& x, const auto& gy) {
        return max_pool2d_vjp(x, gy, {2, 2}, {.stride = 2});
      });
}

TEST(FromTorchLean, GraphMaxPool2dPad) {
  const MaxPoolOptions options{.stride = 2, .padding = 1};
  expect_payloads(
      {3, 8, 8},
      [](auto& g, auto x) {
        return max_pool2d_pad(g, x, {3, 3}, 1, {.stride = 2});
      },
      [&](const auto& x) {
        return max_pool2d(x, {3, 3}, options);
      },
      [&](const auto& x, const auto& dx) {
        return max_pool2d_jvp(x, dx, {3, 3}, options);
      },
      [&](const auto& x, const auto& gy) {
        return max_pool2d_vjp(x, gy, {3, 3}, options);
      });
}

TEST(FromTorchLean, GraphAvgPool2d) {
  expect_payloads(
      {3, 8, 8},
      [](auto& g, auto x) {
        return avg_pool2d(g, x, {3, 2}, {.stride = 2});
      },
      [](const auto& x) {
        return avg_pool2d(x, {3, 2}, {.stride = 2});
      },
      [](const auto& x, const auto& dx) {
        return avg_pool2d_jvp(x, dx, {3, 2}, {.stride = 2});
      },
      [](const auto& x, const auto& gy) {
        return avg_pool2d_vjp(x, gy, {3, 2}, {.stride = 2});
      });
}

TEST(FromTorchLean, GraphAvgPool2dPad) {
  const AvgPoolOptions options{.stride = 2, .padding = 1};
  expect_payloads(
      {2, 3, 8, 8},
      [](auto& g, auto x) {
        return avg_pool2d_pad(g, x, {3, 3}, 1, {.stride = 2});
      },
      [&](const auto& x) {
        return avg_pool2d(x, {3, 3}, options);
      },
      [&](const auto& x, const auto& dx) {
        return avg_pool2d_jvp(x, dx, {3, 3}, options);
      },
      [&](const auto& x, const auto& gy) {
        return avg_pool2d_vjp(x, gy, {3, 3}, options);
      });
}

TEST(FromTorchLean, GraphSmoothMaxPool2d) {
  const Sliding windows{.kernel = {2, 2}, .stride = 2};
  const SmoothMax op{.beta = 2};
  expect_payloads(
      {3, 8, 8},
      [&](auto& g, auto x) {
        return smooth_max_pool2d(g, x, {2, 2}, op, {.stride = 2});
      },
      [&](const auto& x) { return smooth_max_pool(x, windows, op); },
      [&](const auto& x, const auto& dx) { return smooth_max_pool_jvp(x, dx, windows, op); },
      [&](const auto& x, const auto& gy) { return smooth_max_pool_vjp(x, gy, windows, op); });
}

// The other names, which are made in one way.
#define EXPECT_POOLING(name, ...)                                                   \
  expect_payloads(                                                                  \
      {2, 7, 7}, [](auto& g, auto x) { return name(g, x, __VA_ARGS__); },           \
      [](const auto& x) { return name(x, __VA_ARGS__); },                           \
      [](const auto& x, const auto& dx) { return name##_jvp(x, dx, __VA_ARGS__); }, \
      [](const auto& x, const auto& gy) { return name##_vjp(x, gy, __VA_ARGS__); })

TEST(GraphPooling, EveryOtherNameHasItsPayloads) {
  EXPECT_POOLING(min_pool, Sliding{.kernel = {2, 3}});
  EXPECT_POOLING(sum_pool, Sliding{.kernel = {2, 3}});
  EXPECT_POOLING(lp_pool, Sliding{.kernel = {2, 3}}, Lp{.p = 3});
  EXPECT_POOLING(adaptive_max_pool, Adaptive{.output = {3, 2}});
  EXPECT_POOLING(adaptive_min_pool, Adaptive{.output = {3, 2}});
  EXPECT_POOLING(adaptive_avg_pool, Adaptive{.output = {3, 2}});
  EXPECT_POOLING(adaptive_sum_pool, Adaptive{.output = {3, 2}});
  EXPECT_POOLING(adaptive_smooth_max_pool, Adaptive{.output = {3, 2}}, SmoothMax{.beta = 2});
  EXPECT_POOLING(adaptive_lp_pool, Adaptive{.output = {3, 2}}, Lp{.p = 2});
  EXPECT_POOLING(global_max_pool, Global{.last = 2});
  EXPECT_POOLING(global_min_pool, Global{.last = 2});
  EXPECT_POOLING(global_avg_pool, Global{.last = 2, .keep = false});
  EXPECT_POOLING(global_sum_pool, Global{.last = 2, .keep = false});
  EXPECT_POOLING(global_smooth_max_pool, Global{.last = 1}, SmoothMax{.beta = -2});
  EXPECT_POOLING(global_lp_pool, Global{.last = 1}, Lp{.p = 2});
}

TEST(GraphPooling, OneNodeServesAnyOperatorAndWindows) {
  expect_payloads(
      {2, 7, 7},
      [](auto& g, auto x) {
        return pool(g, x, Max{Ties::split}, Adaptive{.output = {3, 2}});
      },
      [](const auto& x) {
        return adaptive_max_pool(x, {.output = {3, 2}}, {Ties::split});
      },
      [](const auto& x, const auto& dx) {
        return adaptive_max_pool_jvp(x, dx, {.output = {3, 2}}, {Ties::split});
      },
      [](const auto& x, const auto& gy) {
        return adaptive_max_pool_vjp(x, gy, {.output = {3, 2}}, {Ties::split});
      });
}

}  // namespace
}  // namespace cenote
