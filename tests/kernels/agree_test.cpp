// The compiled library agrees with the definition on every target, thread count and memory layout: a table of
// geometries that kernels tend to get wrong, and random ones. CENOTE_CASES multiplies the random ones, CENOTE_SEED
// starts them elsewhere.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/cases.hpp"

namespace cenote::agree {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Fails at most a few times, so that a broken kernel does not bury the first message.
void expect_agreement(const Case& c) {
  if (testing::Test::HasFailure() || !is_due()) return;
  const std::string problem = disagreement(c);
  EXPECT_TRUE(problem.empty()) << problem;
}

const std::vector<Operator>& operators() {
  static const std::vector<Operator> all{Max{},
                                         Max{Ties::all},
                                         Max{Ties::split},
                                         Min{},
                                         Min{Ties::split},
                                         Average{},
                                         Average{Divisor::real},
                                         Average{3},
                                         Average{-2},
                                         Sum{},
                                         SmoothMax{2},
                                         SmoothMax{-1.5, Padding::ignore},
                                         Lp{2},
                                         Lp{3.5}};
  return all;
}

// The layouts that have names.
std::vector<Layout> layouts(int rank) {
  Dims transposed;  // the last axis outermost
  Dims channels_last;
  for (int a = rank - 1; a >= 0; --a) transposed.push_back(a);
  for (int a = 0; a < rank; ++a) channels_last.push_back(a == 0 ? 0 : (a == rank - 1 ? 1 : a + 1));
  if (rank < 2) channels_last = {};
  return {{},
          {.offset = 1},
          {.gap = 3},
          {.step = 2},
          {.order = transposed},
          {.order = channels_last, .gap = 1, .offset = 3},
          {.reversed = ~0U},
          {.order = transposed, .reversed = 2, .step = 3, .gap = 2, .offset = 2}};
}

struct Row {
  Dims in;
  Sliding window;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {{7}, {.kernel = {3}, .stride = 2}},
      {{1}, {.kernel = {1}}},
      {{5}, {.kernel = {5}}},
      {{9}, {.kernel = {4}, .stride = 3, .padding = {{1, 2}}}},
      {{4}, {.kernel = {2}, .stride = 1, .padding = 4}},  // windows of padding alone
      {{3}, {.kernel = {9}, .stride = 1, .padding = 5}},  // kernel larger than the input
      {{11}, {.kernel = {3}, .stride = 7}},               // stride beyond the kernel
      {{13}, {.kernel = {3}, .stride = 2, .dilation = 4}},
      {{5}, {.kernel = {2}, .stride = 1, .padding = 3, .dilation = 7}},  // dilation steps over the input
      {{10}, {.kernel = {4}, .stride = 3, .padding = {{0, 1}}, .rounding = Rounding::ceil}},
      {{5}, {.kernel = {8}, .stride = 4, .rounding = Rounding::ceil}},  // overhang alone makes it legal
      {{130}, {.kernel = {31}, .stride = 1}},
      {{130}, {.kernel = {63}, .stride = 2, .padding = 20}},
      {{130}, {.kernel = {127}, .stride = 1, .padding = {{3, 40}}}},
      {{2, 8, 8}, {.kernel = {2, 2}}},
      {{3, 7, 9}, {.kernel = {3, 3}, .stride = 2, .padding = 1}},
      {{2, 9, 33}, {.kernel = {3, 3}, .stride = 1, .padding = 1}},
      {{1, 6, 70}, {.kernel = {5, 5}, .stride = 1}},
      {{2, 6, 7}, {.kernel = {2, 3}, .stride = {3, 1}, .padding = {{1, 0}, {0, 2}}, .dilation = {1, 2}}},
      {{2, 6, 7}, {.kernel = {3, 3}, .stride = 2, .padding = 1, .rounding = Rounding::ceil}},
      {{5, 6, 19}, {.kernel = {3, 2}, .stride = 2, .padding = 1, .axes = {0, 1}}},  // channels last
      {{4, 5, 67}, {.kernel = {2, 2}, .stride = 1, .axes = {0, 1}}},
      {{6, 3, 7}, {.kernel = {3, 3}, .stride = 1, .padding = 1, .axes = {0, 2}}},  // a channel in between
      {{8, 3, 4}, {.kernel = {2}, .axes = {0}}},
      {{2, 3, 5, 6, 7}, {.kernel = {2, 3, 2}, .stride = 2, .padding = 1}},
      {{4, 5, 6, 3}, {.kernel = {3, 2, 2}, .stride = 1, .axes = {0, 1, 2}}},
      {{3, 3, 4, 3, 4}, {.kernel = {2, 2, 2, 2, 2}, .stride = 1}},
      {{2, 3, 3, 3, 3}, {.kernel = {2, 2, 2, 2}, .stride = 1, .padding = 1}},
      {{0, 5, 5}, {.kernel = {2, 2}}},  // an empty batch
      {{2, 0, 5}, {.kernel = {2}}},
      {{1, 1, 1, 1}, {.kernel = {1, 1}}},
      {{70, 6}, {.kernel = {3}, .stride = 1}},
  };
  return all;
}

std::vector<Geometry> table() {
  std::vector<Geometry> out{Geometry{}};  // rank 0: every axis is there, none is pooled
  for (const Row& row : rows()) out.push_back(resolve(row.in, row.window));
  for (const Index m : {1, 2, 3, 5, 7, 10, 13, 17}) out.push_back(resolve({2, 10}, Adaptive{.output = {m}}));
  out.push_back(resolve({2, 7, 9}, Adaptive{.output = {3, 4}}));
  out.push_back(resolve({3, 2, 5}, Adaptive{.output = {5, 3}, .axes = {0, 2}}));
  out.push_back(resolve({5, 6, 17}, Adaptive{.output = {3, 8}, .axes = {0, 1}}));
  for (const bool keep : {true, false}) {
    out.push_back(resolve({3, 6, 7}, Global{.last = 2, .keep = keep}));
    out.push_back(resolve({6, 7, 19}, Global{.axes = {0, 1}, .keep = keep}));
    out.push_back(resolve({5, 4, 3}, Global{.axes = {1}, .keep = keep}));
    out.push_back(resolve({301}, Global{.last = 1, .keep = keep}));
  }
  return out;
}

TEST(KernelsAgree, OnTheTableForEveryScalarAndOperator) {
  std::uint64_t seed = 0;
  for (const Geometry& g : table())
    for (const Type type : all_types)
      for (const Operator& op : operators()) {
        if (!accepts(type, op)) continue;
        ++seed;
        Case c{.type = type, .op = op, .geometry = g, .seed = seed};
        c.x = static_cast<Values>(seed % values_count);
        c.gy = seed % 3 == 0 ? Values::one_nan : Values::spread;
        const auto all = layouts(g.rank());
        const auto of_results = layouts(g.out().rank);
        c.x_layout = c.dx_layout = all[seed % all.size()];
        c.gx_layout = all[seed / 3 % all.size()];
        c.y_layout = c.dy_layout = c.gy_layout = of_results[seed / 5 % of_results.size()];
        c.threads = {1, 2};
        c.strided_threads = {1, 3};
        expect_agreement(c);
      }
}

TEST(KernelsAgree, OnEveryKindOfValue) {
  const std::vector<Geometry> geometries{
      resolve({3, 40}, Sliding{.kernel = {3}, .stride = 1, .padding = 1}),
      resolve({2, 9, 35}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}),
      resolve({6, 5, 18}, Sliding{.kernel = {2, 2}, .stride = 1, .axes = {0, 1}}),
      resolve({3, 50}, Sliding{.kernel = {20}, .stride = 1}),
      resolve({3, 50}, Global{.last = 1}),
  };
  std::uint64_t seed = 1000;
  for (const Geometry& g : geometries)
    for (const Type type : all_types)
      for (const Operator& op : operators())
        for (int values = 0; values < values_count; ++values) {
          if (!accepts(type, op)) continue;
          Case c{.type = type, .op = op, .geometry = g, .x = static_cast<Values>(values), .seed = ++seed};
          c.dx = c.gy = seed % 2 == 0 ? static_cast<Values>(values) : Values::spread;
          c.threads = {1};
          expect_agreement(c);
        }
}

// Every remainder of the innermost axis by a vector, whether windows run along it or across it.
TEST(KernelsAgree, OnEveryTail) {
  const std::vector<Operator> few{Max{}, Average{}, SmoothMax{2}};
  std::uint64_t seed = 2000;
  for (Index tail = 1; tail <= 70; ++tail) {
    const std::vector<Resolved> geometries{
        try_resolve({2, tail}, Sliding{.kernel = {2}, .stride = 1}),
        try_resolve({2, tail}, Sliding{.kernel = {3}, .stride = 1, .padding = 1}),
        try_resolve({2, tail}, Sliding{.kernel = {2}, .stride = 2}),
        try_resolve({3, tail}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}),
        try_resolve({3, 2, tail}, Sliding{.kernel = {2, 2}, .stride = 1, .axes = {0, 1}}),
        try_resolve({tail, 3, 3}, Sliding{.kernel = {2, 2}, .stride = 1}),
        try_resolve({tail, 5}, Global{.last = 1}),
        try_resolve({2, tail}, Global{.last = 1}),
    };
    for (const Resolved& resolved : geometries)
      for (const Type type : all_types)
        for (const Operator& op : few) {
          if (resolved.problem || !accepts(type, op)) continue;
          Case c{.type = type, .op = op, .geometry = resolved.geometry, .x = Values::ties, .seed = ++seed};
          if (seed % 3 == 0) c.x = Values::nans;
          c.threads = {1 + static_cast<int>(seed % 3)};
          expect_agreement(c);
        }
  }
}

// Large enough that the work is divided.
TEST(KernelsAgree, OnTensorsLargeEnoughToDivide) {
  const std::vector<Geometry> geometries{
      resolve({80'000}, Sliding{.kernel = {3}, .stride = 2}),
      resolve({6, 64, 96}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}),
      resolve({1, 48, 48, 32}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1, .axes = {1, 2}}),
      resolve({64, 1200}, Global{.last = 1, .keep = false}),
      resolve({50'000}, Global{.last = 1}),
  };
  std::uint64_t seed = 3000;
  for (const Geometry& g : geometries)
    for (const Type type : {Type::f32, Type::f64, Type::bf16, Type::u8})
      for (const Operator& op : std::vector<Operator>{Max{}, Average{}, SmoothMax{1}}) {
        if (!accepts(type, op)) continue;
        Case c{.type = type, .op = op, .geometry = g, .x = Values::ties, .seed = ++seed};
        c.targets = {targets()[seed % targets().size()]};
        c.threads = {1, 2, 3};
        expect_agreement(c);
      }
}

// Large and aligned enough to be written past the caches.
TEST(KernelsAgree, OnGradientsBeyondTheCaches) {
  const std::vector<Geometry> geometries{
      resolve({9, 1024, 1024}, Sliding{.kernel = {2, 2}}),
      resolve({768, 768, 16}, Sliding{.kernel = {2, 2}, .axes = {0, 1}}),
      resolve({520, 16384}, Sliding{.kernel = {400}, .stride = 160}),
      resolve({2100, 64, 64}, Global{.last = 2}),
  };
  for (const Geometry& g : geometries) {
    Case c{.type = Type::f32, .op = Max{}, .geometry = g, .x = Values::ties, .verbs = linearize_verb};
    c.threads = {1, 2};
    c.placement = Placement::begins_at_guard;
    expect_agreement(c);
  }
}

TEST(KernelsAgree, OnRandomCases) {
  const std::uint64_t cases = 5'000 * from_environment("CENOTE_CASES", 1);
  Random random{from_environment("CENOTE_SEED", 20260101)};
  CaseMaker maker(random, {});
  for (std::uint64_t i = 0; i < cases; ++i) {
    auto c = maker.make();
    if (!c) continue;
    const auto all = targets();  // two of them each time
    c->targets = {all[i % all.size()], all[(i + 1 + i / all.size()) % all.size()]};
    c->threads = {1, 1 + static_cast<int>(i % 3)};
    c->strided_threads = {1 + static_cast<int>(i / 3 % 3)};
    expect_agreement(*c);
  }
}

}  // namespace
}  // namespace cenote::agree
