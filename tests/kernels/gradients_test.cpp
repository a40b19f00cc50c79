// Kernels of gradients choose an algorithm by window, width and number of planes, too: both sides of every threshold.
#include <gtest/gtest.h>

#include "cenote/run.hpp"
#include "kernels/agree.hpp"
#include "kernels/sweep.hpp"

namespace cenote::agree {
namespace {

// One comparison of gradients alone, if it is due. `lay_out` chooses the layouts of the case.
template <class LayOut>
void compare_gradients(std::uint64_t seed, const Resolved& g, Type type, const Operator& op, LayOut&& lay_out) {
  if (g.problem || testing::Test::HasFailure() || !is_due()) return;
  Random random{seed};
  Case c{.type = type, .op = op, .geometry = g.geometry, .seed = seed, .verbs = vjp_verb};
  c.gy = static_cast<Values>(random.below(values_count));
  c.strided_threads = {1, 2};
  lay_out(c, random);
  const std::string problem = disagreement(c);
  EXPECT_TRUE(problem.empty()) << problem;
}

// Gradients of averages are spread over their windows.
TEST(Gradients, OfAveragesInTwoDimensions) {
  Sweep sweep;
  for (Index k = 1; k <= 9; ++k)
    for (Index s = 1; s <= 5; ++s)
      for (const Index w : {17, 40, 131, 260}) {
        for (const Index low : {Index{0}, k / 2}) {
          const Resolved g = try_resolve({1, 3 * s + k, w}, Sliding{.kernel = {k, k}, .stride = s, .padding = low});
          sweep(g, Type::f32, Average{}, vjp_verb);
          sweep(g, Type::f32, Sum{}, vjp_verb);
          sweep(g, Type::f64, Sum{}, vjp_verb);
          sweep(g, Type::f32, Average{Divisor::real}, vjp_verb);
        }
        sweep(try_resolve({3, w}, Sliding{.kernel = {k}, .stride = s}), Type::f32, Average{}, vjp_verb);
      }
}

// Gradients are repeated where windows lie apart, in rows and in lanes, with holes between and inside windows.
TEST(Gradients, OfAveragesWhoseWindowsLieApart) {
  Sweep sweep;
  for (const Index s : {2, 3, 4, 5, 9, 16, 40})
    for (const Index k : {s, s - 1, Index{1}})
      for (const Index w : {s * 2, s * 5 + 1, s * 17 + 3, s * 33})
        for (const Type type : {Type::f32, Type::f64, Type::f16}) {
          const Sliding window{.kernel = {2, k}, .stride = {3, s}, .padding = {{0, 0}, {k / 2, 0}}};
          sweep(try_resolve({3, 7, w}, window), type, Average{7}, vjp_verb);
          sweep(try_resolve({3, 7, w}, window), type, Sum{}, vjp_verb);
          sweep(try_resolve({w, 19}, Sliding{.kernel = {k}, .stride = s, .axes = {0}}), type, Average{}, vjp_verb);
        }
  for (const Index parts : {1, 2, 6})
    sweep(try_resolve({5, 12, 24}, Adaptive{.output = {parts, parts}}), Type::f32, Average{}, vjp_verb);
  sweep(try_resolve({3, 90}, Sliding{.kernel = {3}, .stride = 8, .dilation = 3}), Type::f32, Average{}, vjp_verb);
}

// Windows that begin far from each other share cells, many of which hear from the same ones.
TEST(Gradients, OfAveragesInRuns) {
  Sweep sweep;
  for (const Index s : {15, 16, 17, 40})
    for (const Index k : {s + 1, 2 * s, 2 * s + 8, 5 * s, 7 * s})
      for (const Index low : {Index{0}, k / 2}) {
        const Resolved g = try_resolve({2, 9 * s + k}, Sliding{.kernel = {k}, .stride = s, .padding = low});
        sweep(g, Type::f32, Average{}, vjp_verb);
        sweep(g, Type::f32, Average{Divisor::real}, vjp_verb);
        sweep(g, Type::f64, Average{}, vjp_verb);
      }
}

// The same along several axes, with divisors that differ and that do not: in every layout the same bits, whichever
// kernel repeats the gradients or adds them.
TEST(Gradients, OfAveragesInRunsOfRows) {
  struct Shape {
    Dims space, kernel, stride;
  };
  const std::vector<Shape> shapes{{{32, 64}, {6, 12}, {6, 11}},         {{32, 64}, {12, 22}, {11, 22}},
                                  {{40, 37}, {17, 9}, {8, 8}},          {{50, 30}, {25, 2}, {9, 2}},
                                  {{30, 50}, {2, 25}, {2, 9}},          {{30, 11}, {20, 11}, {8, 11}},
                                  {{12, 20, 26}, {9, 3, 9}, {8, 3, 8}}, {{60, 20}, {11, 3}, {10, 4}},
                                  {{27, 27}, {10, 10}, {8, 9}},         {{14, 9}, {3, 2}, {3, 2}}};
  std::uint64_t seed = 0;
  for (const Shape& shape : shapes)
    for (const Index low : {0, 1})
      for (const Type type : {Type::f32, Type::f64, Type::bf16})
        for (const Operator& op : std::vector<Operator>{Average{Divisor::real}, Average{}, Sum{}}) {
          Dims dims{3};
          Sliding window{.kernel = shape.kernel, .stride = shape.stride, .padding = low};
          for (const Index size : shape.space) dims.push_back(size);
          for (const bool last : {false, true}) {
            if (last) {
              for (Index a = 1; a < dims.rank; ++a) window.axes.push_back(a);
              dims.push_back(9);
            }
            compare_gradients(++seed, try_resolve(dims, window), type, op, [](Case& c, Random& random) {
              c.gx_layout = random.below(2) == 0 ? Layout{.order = {2, 0, 1}} : Layout{.step = 2, .gap = 1};
              if (random.below(2) == 0) c.gy_layout = {.order = {1, 2, 0}};
            });
          }
        }
}

// Weights of gradients: of cells, rows and slices.
TEST(Gradients, OfWeightedAverages) {
  Sweep sweep;
  for (const Index k : {2, 3, 4})
    for (const Index s : {1, 2})
      for (const Index w : {9, 20, 66})
        for (const Type type : {Type::f32, Type::f64, Type::bf16}) {
          const Sliding cube{.kernel = {k, k, k}, .stride = s, .padding = k / 2};
          sweep(try_resolve({2, 4, 5, w}, cube), type, Average{Divisor::real}, vjp_verb);
          const Sliding last{.kernel = {k, k}, .stride = s, .padding = k / 2, .axes = {0, 1}};
          sweep(try_resolve({6, 5, w}, last), type, Average{Divisor::real}, vjp_verb);
          sweep(try_resolve({6, 5, w}, last), type, Average{}, vjp_verb);
        }
}

// Squares whose gradients are gathered row by row, on both sides of the width at which they are: rows of broken
// vectors, windows that end before the rows do, padding that moves them, and planes cut into blocks of rows.
TEST(Gradients, OfSmallSquares) {
  Sweep sweep;
  for (const auto& [k, s] : std::vector<std::pair<Index, Index>>{{2, 2}, {3, 2}, {3, 1}})
    for (const Index low : {Index{0}, Index{1}, Index{2}})
      for (const Index high : {Index{0}, Index{1}})
        for (const Index w : {19, 20, 22, 33, 40, 41, 42, 43, 64, 66, 95, 130})
          for (const Type type : {Type::f32, Type::f64}) {
            const Sliding window{.kernel = {k, k}, .stride = s, .padding = {{low, high}, {std::min(low, k - 1), low}}};
            sweep(try_resolve({2, 3 * w % 29 + 20, w}, window), type, Max{}, linearize_verb);
          }
  for (const Index lanes : {3, 4, 9})  // planes too small for it, one and several at a time
    for (const Index w : {4, 7, 13, 19})
      sweep(try_resolve({lanes, w + 50, w}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}), Type::f32, Max{},
            linearize_verb);
  Case c{.op = Max{}, .geometry = resolve({1, 1100, 700}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1})};
  c.verbs = linearize_verb;
  const std::string problem = disagreement(c);
  EXPECT_TRUE(problem.empty()) << problem;
}

// Planes of one or two vectors to a row: rows run over into those that follow, but not beyond the last plane, nor where
// rows or planes do not follow each other.
TEST(Gradients, OfSmallSquaresInNarrowPlanes) {
  std::uint64_t seed = 0;
  for (const Index s : {1, 2})
    for (const Index low : {0, 1, 2})
      for (const Index high : {0, 1, 3})
        for (Index w = 3; w <= 67; w += (w < 20 ? 1 : 3))
          for (const Index planes : {1, 2, 5, 40}) {
            const Sliding window{.kernel = {3, 3}, .stride = s, .padding = {{low, high}, {low, high}}};
            const Resolved g = try_resolve({planes, 1100 / (planes * w) + w % 7 + 3, w}, window);
            ++seed;
            if (g.problem || testing::Test::HasFailure() || !is_due()) continue;
            Random random{seed};
            Case c{.type = random.below(3) == 0 ? Type::f64 : Type::f32, .op = Max{}, .geometry = g.geometry};
            c.seed = seed;
            c.x = static_cast<Values>(random.below(values_count));
            c.gy = static_cast<Values>(random.below(values_count));
            const std::array<Layout, 3> layouts{Layout{}, Layout{.gap = 3}, Layout{.order = {1, 0, 2}}};
            c.gx_layout = layouts[random.below(3)];
            c.gy_layout = layouts[random.below(3)];
            c.placement = random.below(2) == 0 ? Placement::begins_at_guard : Placement::ends_at_guard;
            c.verbs = linearize_verb;
            c.strided_threads = {1, 2};
            const std::string problem = disagreement(c);
            EXPECT_TRUE(problem.empty()) << problem;
          }
}

// Planes whose windows lie apart send gradients by a pattern, if they are small and there are enough of them: rows that
// end in the middle of a vector, planes that do, planes that make no group, cells in no window, lanes that belong to
// planes, and nothing read or written around them.
TEST(Gradients, OfSmallPlanesByPattern) {
  struct Shape {
    Dims plane, kernel, stride;
    Index low = 0;
  };
  const std::vector<Shape> shapes{{{14, 14}, {2, 2}, {2, 2}},
                                  {{4, 30}, {2, 1}, {2, 1}},
                                  {{7, 5}, {1, 1}, {2, 2}},
                                  {{6, 6, 6}, {2, 2, 2}, {2, 2, 2}},
                                  {{13, 11}, {3, 3}, {3, 3}, 1},
                                  {{8, 8}, {2, 3}, {3, 4}},
                                  {{5}, {2}, {2}},
                                  {{117}, {10}, {10}},
                                  {{26, 42}, {2, 2}, {2, 2}},
                                  {{3, 2}, {3, 2}, {3, 2}},
                                  {{21, 9}, {2, 2}, {2, 3}, 1},
                                  {{64, 48}, {4, 2}, {4, 2}}};
  std::uint64_t seed = 0;
  const auto compare = [&](const Resolved& g, const Operator& op, unsigned verbs) {
    ++seed;
    if (g.problem || testing::Test::HasFailure() || !is_due()) return;
    Random random{seed};
    Case c{.type = random.below(4) == 0 ? Type::f64 : Type::f32, .op = op, .geometry = g.geometry};
    c.seed = seed;
    c.x = static_cast<Values>(random.below(values_count));
    c.gy = static_cast<Values>(random.below(values_count));
    c.gx_layout = random.below(2) == 0 ? Layout{.gap = 1} : Layout{};
    c.placement = random.below(2) == 0 ? Placement::begins_at_guard : Placement::ends_at_guard;
    c.verbs = verbs;
    c.strided_threads = {1, 2};
    const std::string problem = disagreement(c);
    EXPECT_TRUE(problem.empty()) << problem;
  };
  for (const Shape& shape : shapes)
    for (const Index planes : {1, 7, 8, 9, 16, 31, 67, 128, 131, 260})
      for (const auto& [op, verb] : std::vector<std::pair<Operator, unsigned>>{
               {Max{}, linearize_verb}, {Min{}, linearize_verb}, {Average{}, vjp_verb}, {Sum{}, vjp_verb}}) {
        if (planes > 31 && planes * volume(shape.plane) > 40'000) continue;
        Dims dims{planes};
        for (const Index size : shape.plane) dims.push_back(size);
        Sliding window{.kernel = shape.kernel, .stride = shape.stride, .padding = shape.low};
        compare(try_resolve(dims, window), op, verb);
        // The same windows with an axis behind them that is not pooled.
        for (Index a = 1; a < dims.rank; ++a) window.axes.push_back(a);
        dims.push_back(planes % 2 == 0 ? 3 : 10);
        compare(try_resolve(dims, window), op, verb);
      }
  for (const Index planes : {8, 40, 129})  // adaptive windows that lie apart
    compare(try_resolve({planes, 12, 10}, Adaptive{.output = {4, 5}}), Max{}, linearize_verb);
}

// One window holds everything.
TEST(Gradients, OfGlobalAverages) {
  Sweep sweep;
  for (const Index w : {1, 2, 7, 16, 33})
    for (const Type type : {Type::f32, Type::f64, Type::f16})
      for (const Resolved& g :
           {try_resolve({5, 3, w, 7}, Global{.last = 2}), try_resolve({5, w, 4}, Global{.axes = {0, 2}, .keep = false}),
            try_resolve({3, w, 9}, Global{.axes = {1}}), try_resolve({2, 6, 6}, Sliding{.kernel = {5, 5}, .stride = 3}),
            try_resolve({4, w}, Sliding{.kernel = {w + 2}, .padding = 1})})
        for (const Operator& op : std::vector<Operator>{Average{}, Average{Divisor::real}, Average{3}, Sum{}})
          sweep(g, type, op, vjp_verb);
}

// Windows that hold whole rows or planes and share cells in pairs: in every layout the same bits.
TEST(Gradients, OfAveragesOfPairsOfPlanes) {
  struct Shape {
    Dims space, kernel;
    Index stride, dilation;
  };
  const std::vector<Shape> shapes{{{10, 7, 7}, {2, 7, 7}, 1, 1},   {{9, 4, 4}, {2, 4, 4}, 1, 1},
                                  {{9, 5, 3}, {2, 5, 3}, 1, 1},    {{10, 20}, {2, 20}, 1, 1},
                                  {{11, 33}, {3, 33}, 2, 1},       {{11, 33}, {3, 33}, 1, 1},
                                  {{12, 5, 16}, {2, 2, 16}, 1, 1}, {{14, 40}, {2, 40}, 1, 3}};
  std::uint64_t seed = 0;
  for (const Shape& shape : shapes)
    for (const Index lanes : {1, 5, 40})
      for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16})
        for (const Operator& op : std::vector<Operator>{Average{}, Average{7}, Sum{}}) {
          Dims dims{lanes}, steps, apart;
          for (int a = 0; a < shape.space.rank; ++a) {
            dims.push_back(shape.space[a]);
            steps.push_back(a == 0 ? shape.stride : 1);
            apart.push_back(a == 0 ? shape.dilation : 1);
          }
          const Sliding window{.kernel = shape.kernel, .stride = steps, .dilation = apart};
          Dims inside;  // lanes become the innermost axis
          for (int a = 1; a < dims.rank; ++a) inside.push_back(a);
          inside.push_back(0);
          compare_gradients(++seed, try_resolve(dims, window), type, op, [&](Case& c, Random& random) {
            const std::array<Layout, 3> layouts{Layout{.order = inside}, Layout{.step = 2}, Layout{.gap = 3}};
            c.gx_layout = layouts[random.below(3)];
            c.gy_layout = layouts[random.below(3)];
          });
        }
}

// One window to a plane, that holds all of it or not, in planes whose rows follow each other or not; large planes of
// many windows that scatter several at a time.
TEST(Gradients, OfFewWindowsAndOfLargeVolumes) {
  struct Shape {
    Dims dims, kernel;
    Index stride, low;
  };
  std::vector<Shape> shapes{{{40, 4, 7, 7}, {4, 7, 7}, 1, 0}, {{40, 4, 7, 7}, {3, 5, 7}, 9, 0},
                            {{70, 14, 14}, {14, 14}, 1, 0},   {{30, 20, 20}, {20, 20}, 1, 0},
                            {{30, 20, 20}, {16, 17}, 30, 3},  {{50, 300}, {300}, 1, 0}};
  for (const Index lanes : {3, 4, 8, 12, 17}) {
    shapes.push_back({{lanes, 20, 30, 30}, {3, 3, 3}, 1, 1});
    shapes.push_back({{lanes, 12, 20, 20}, {3, 3, 3}, 1, 1});
    shapes.push_back({{lanes, 9, 21, 17}, {2, 3, 5}, 2, 1});
  }
  std::uint64_t seed = 0;
  for (const Shape& shape : shapes)
    for (const Type type : {Type::f32, Type::f64, Type::bf16}) {
      const Resolved g =
          try_resolve(shape.dims, Sliding{.kernel = shape.kernel, .stride = shape.stride, .padding = shape.low});
      ++seed;
      if (g.problem || testing::Test::HasFailure() || !is_due()) continue;
      Random random{seed};
      Case c{.type = type, .op = Max{}, .geometry = g.geometry, .seed = seed};
      c.x = static_cast<Values>(random.below(values_count));
      c.gy = static_cast<Values>(random.below(values_count));
      const std::array<Layout, 3> layouts{Layout{}, Layout{.gap = 3}, Layout{.reversed = 2}};
      c.gx_layout = layouts[random.below(3)];
      c.verbs = linearize_verb;
      c.threads = {1, 2};
      c.strided_threads = {1, 2};
      const std::string problem = disagreement(c);
      EXPECT_TRUE(problem.empty()) << problem;
    }
}

// Gradients so small that the divisor leaves nothing of them: what is left is +0 everywhere (A5).
TEST(Gradients, OfAveragesThatUnderflow) {
  Sweep sweep;
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16})
    for (const Index w : {3, 7, 40})
      for (const Index s : {1, 3, 5})
        for (const Resolved& g : {try_resolve({2, 9, w}, Sliding{.kernel = {3, 3}, .stride = s}),
                                  try_resolve({20, 9, w}, Sliding{.kernel = {3, 3}, .stride = s, .axes = {1, 2}}),
                                  try_resolve({9, w, 20}, Sliding{.kernel = {3, 3}, .stride = s, .axes = {0, 1}}),
                                  try_resolve({9, w, 20}, Global{.axes = {0, 1}})}) {
          Case c{.type = type, .op = Average{1000}, .geometry = g.geometry, .gy = Values::subnormal};
          c.seed = ++sweep.seed;
          c.gx_layout = {.order = {2, 0, 1}};
          c.gy_layout = {.order = {1, 2, 0}};
          c.threads = {1};
          c.strided_threads = {1};
          c.verbs = vjp_verb;
          const std::string problem = g.problem || !is_due() ? std::string() : disagreement(c);
          EXPECT_TRUE(problem.empty()) << problem;
        }
}

}  // namespace
}  // namespace cenote::agree
