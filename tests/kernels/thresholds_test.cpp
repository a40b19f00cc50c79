// Kernels choose an algorithm by kernel, stride and width. Every choice is crossed here, one step at a time, so that
// both sides of every threshold are compared with the definition wherever it lies.
#include <gtest/gtest.h>

#include "cenote/run.hpp"
#include "kernels/agree.hpp"
#include "kernels/sweep.hpp"

namespace cenote::agree {
namespace {

std::vector<Index> strides(Index k) {
  std::vector<Index> out{1, 2, 3};
  if (k > 3) out.push_back(k);
  if (k > 2) out.push_back(k + 1);
  return out;
}

// The first widths that fit, and widths round the sizes of vectors.
std::vector<Index> widths(Index k, bool thin) {
  std::vector<Index> out;
  for (const Index w : {k, k + 1, k + 2, k + 7}) out.push_back(w);
  for (const Index vector : {8, 16, 32, 64, 128})
    for (const Index more : {-1, 0, 1, 2})
      if (vector + more > k + 7 && (!thin || more == 1)) out.push_back(vector + more);
  return out;
}

constexpr unsigned values_and_winners = forward_verb | forward_with_winners_verb;

// The operators whose kernels differ, on windows of k x k taps; derivatives and exponentials on the smaller ones.
void sweep_operators(Sweep& sweep, const Resolved& g, Index k) {
  sweep(g, Type::f32, Max{}, values_and_winners);
  sweep(g, Type::f32, Average{}, forward_verb);
  sweep(g, Type::u8, Min{}, forward_verb | winners_verb);
  if (k < 10) sweep(g, Type::f32, SmoothMax{2}, forward_verb);
  if (k < 10) sweep(g, Type::f32, Average{}, vjp_verb);
  if (k < 10) sweep(g, Type::f32, Max{}, linearize_verb);
}

TEST(Thresholds, InOneDimension) {
  Sweep sweep;
  for (Index k = 1; k <= 40; ++k)
    for (const Index s : strides(k))
      for (const Index w : widths(k, false)) {
        const Resolved g = try_resolve({2, w}, Sliding{.kernel = {k}, .stride = s});
        const Resolved padded =
            try_resolve({1, w}, Sliding{.kernel = {k}, .stride = s, .padding = {{k / 2, (k - 1) / 2}}});
        sweep(g, Type::f32, Max{}, values_and_winners | vjp_verb);
        sweep(padded, Type::f32, Max{}, values_and_winners | jvp_verb);
        sweep(g, Type::f32, Average{}, forward_verb);
        sweep(padded, Type::f32, Average{}, forward_verb | vjp_verb);
        sweep(g, Type::u8, Min{}, forward_verb | winners_verb);
        sweep(g, Type::f32, SmoothMax{2}, forward_verb);
      }
}

// Slices of rows follow each other; their rows have the same numbers.
TEST(Thresholds, InThreeDimensions) {
  Sweep sweep;
  for (const Index k : {1, 2, 3, 4, 5, 7})
    for (const Index s : {1, 2, 3})
      for (const Index w : {20, 70, 133}) {
        const Resolved g =
            try_resolve({2, k + 2, k + s + 1, w}, Sliding{.kernel = {k, k, k}, .stride = s, .padding = k / 2});
        for (const Type type : {Type::f32, Type::f64, Type::u8, Type::i16, Type::bf16}) {
          sweep(g, type, Max{}, values_and_winners);
          sweep(g, type, Average{}, forward_verb);
        }
        sweep(g, Type::f32, Max{}, jvp_verb | linearize_verb);
        sweep(g, Type::f32, Average{}, vjp_verb);
        sweep(g, Type::f64, Sum{}, vjp_verb);
      }
}

// Planes of which one window holds everything, side by side in a vector or not, and too large for that.
TEST(Thresholds, GlobalWindows) {
  Sweep sweep;
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8, Type::i32})
    for (const Index planes : {1, 3, 4, 7, 8, 15, 16, 17, 33, 64, 70})
      for (const Dims& plane : std::vector<Dims>{{1, 1, 3}, {1, 1, 4}, {1, 7, 7}, {2, 3, 5}, {1, 1, 16}, {1, 3, 21}}) {
        const Resolved g = try_resolve({planes, plane[0], plane[1], plane[2]}, Global{.last = 3});
        sweep(g, type, Max{}, values_and_winners);
        sweep(g, type, Average{}, forward_verb);
      }
  for (const Index cells : {4095, 4096, 4097})
    for (const Operator& op : std::vector<Operator>{Max{}, Average{}})
      sweep(try_resolve({16, cells}, Global{.last = 1}), Type::f32, op, forward_verb);
}

// Windows that hold everything: every number of rows and columns round a vector, whatever lies where, and nothing
// behind a plane is touched.
TEST(Thresholds, GlobalWindowsOfEveryShape) {
  std::vector<Layout> layouts(4);
  layouts[0] = {.order = {1, 2, 0}};
  layouts[1] = {.reversed = 2};
  layouts[2] = {.order = {0, 2, 1}, .gap = 1};
  layouts[3] = {.step = 2, .gap = 3};
  std::uint64_t seed = 0;
  constexpr std::array types{Type::f32, Type::f32, Type::f32, Type::f64, Type::f16, Type::bf16};
  for (const Index planes : {1, 2, 9, 17, 530})
    for (const Index rows : {1, 2, 3, 6, 7, 8, 9, 16, 23})
      for (const Index columns : {1, 2, 3, 5, 7, 8, 9, 16, 17, 33, 70})
        for (const Operator& op : std::vector<Operator>{Average{}, Sum{}, Max{}, Min{}}) {
          ++seed;
          if (testing::Test::HasFailure() || (planes > 17 && rows * columns > 60) || !is_due()) continue;
          Random random{seed};
          const Resolved g = try_resolve({planes, rows, columns}, Global{.axes = {1, 2}});
          Case c{.type = types[random.below(types.size())], .op = op, .geometry = g.geometry, .seed = seed};
          c.x = static_cast<Values>(random.below(values_count));
          c.x_layout = layouts[random.below(4)];
          c.placement = random.below(3) == 0 ? Placement::begins_at_guard : Placement::ends_at_guard;
          c.verbs = forward_verb | winners_verb;
          c.threads = {1};
          c.strided_threads = {1, 2};
          const std::string problem = disagreement(c);
          EXPECT_TRUE(problem.empty()) << problem;
        }
  for (const Dims& deep : std::vector<Dims>{{9, 3, 7, 7}, {9, 2, 9, 20}, {3, 20, 1, 9}})
    for (const Operator& op : std::vector<Operator>{Average{}, Max{}}) {
      Case c{.type = Type::f32, .op = op, .geometry = try_resolve(deep, Global{.last = 3}).geometry, .seed = ++seed};
      c.x_layout = {.order = {1, 2, 3, 0}};
      c.verbs = forward_verb;
      c.threads = {1};
      c.strided_threads = {1};
      const std::string problem = disagreement(c);
      EXPECT_TRUE(problem.empty()) << problem;
    }
}

// A plane that is pooled alone, and perhaps by the way of small calls, has the bits of one among many.
TEST(Thresholds, APlaneAloneHasTheBitsOfOneAmongMany) {
  Random random{7};
  const auto same = [&](const Dims& plane, const auto& windows) {
    Dims all = plane;
    all.entries[0] = 40;
    Tensor<float> x(all);
    for (std::size_t i = 0; i < x.data().size(); ++i)
      x.data()[i] = static_cast<float>(random.below(1 << 24)) * 0x1p-20F - 8.0F;
    const Geometry many = resolve(all, windows);
    const Geometry alone = resolve(plane, windows);
    Tensor<float> y(many.out());
    Tensor<float> one(alone.out());
    forward<float>(Average{}, many, std::as_const(x).view(), y.view());
    const Index cells = volume(plane);
    const Index results = volume(alone.out());
    for (Index i = 0; i < 40; ++i) {
      forward<float>(Average{}, alone, View<const float>(x.data().data() + i * cells, plane), one.view());
      for (Index r = 0; r < results; ++r)
        ASSERT_EQ(one.data()[static_cast<std::size_t>(r)], y.data()[static_cast<std::size_t>(i * results + r)])
            << to_string(plane);
    }
  };
  for (const Dims& plane : std::vector<Dims>{{1, 7, 7}, {1, 8, 16}, {1, 1, 13}, {1, 13, 1}, {1, 9, 9}, {1, 20, 30}})
    same(plane, Global{.last = 2});
  same({1, 7, 9}, Sliding{.kernel = {7, 1}, .stride = 1});
  same({1, 7, 9}, Sliding{.kernel = {9}, .stride = 1});
  same({1, 1, 112}, Sliding{.kernel = {48}, .stride = 16});
  same({1, 1, 400}, Sliding{.kernel = {80}, .stride = 80});
  for (const Index k : {2, 3, 5})
    for (const Index s : {k, k + 1})
      for (const Dims& plane : std::vector<Dims>{{1, 11, 11}, {1, 16, 32}, {1, 4, 128}, {1, 24, 24}})
        same(plane, Sliding{.kernel = {k, k}, .stride = s, .padding = k / 2});
}

// Windows of many taps that lie apart find their winners first and read the tangents of these; smaller ones read all.
TEST(Thresholds, TangentsOfLargeWindows) {
  Sweep sweep;
  for (const Values x : {Values::spread, Values::ties, Values::nans, Values::lowest})
    for (const Type type : {Type::f32, Type::f64, Type::bf16})
      for (const Operator& op : std::vector<Operator>{Max{}, Min{}}) {
        const auto compare = [&](const Resolved& g) { sweep(g, type, op, jvp_verb | forward_and_jvp_verb, x); };
        compare(try_resolve({9, 16, 15}, Global{.last = 2}));
        compare(try_resolve({9, 16, 16}, Global{.last = 2}));
        compare(try_resolve({3, 70'000}, Global{.last = 1}));
        compare(try_resolve({2, 50, 40}, Sliding{.kernel = {16, 16}, .stride = 17, .padding = 8}));
        compare(try_resolve({3, 900}, Sliding{.kernel = {300}, .padding = 150}));
        compare(try_resolve({900, 5}, Sliding{.kernel = {300}, .axes = {0}}));
        compare(try_resolve({3, 20}, Sliding{.kernel = {300}, .padding = 700}));  // windows without a tap
      }
}

// Windows of one cell are copied, if each is a cell of its own and arrays are dense; others are not.
TEST(Thresholds, WindowsOfOneCell) {
  Sweep sweep;
  for (const Values x : {Values::nans, Values::zeros, Values::spread})
    for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8, Type::i32})
      for (const Operator& op :
           std::vector<Operator>{Max{}, Min{}, Average{}, Sum{}, Average{Divisor(1)}, Average{Divisor(3)}}) {
        const unsigned verbs = forward_verb | (is_integer(type) ? 0U : jvp_verb | forward_and_jvp_verb | vjp_verb);
        sweep(try_resolve({3, 300, 250}, Sliding{.kernel = {1, 1}}), type, op, verbs, x);
        sweep(try_resolve({3, 30, 25}, Sliding{.kernel = {1, 1}, .stride = 2}), type, op, verbs, x);
        sweep(try_resolve({3, 30, 25}, Sliding{.kernel = {1, 1}, .stride = 1, .padding = 1}), type, op, verbs, x);
        sweep(try_resolve({3, 30, 25}, Adaptive{.output = {30, 25}}), type, op, verbs, x);
        sweep(try_resolve({3, 1, 25}, Sliding{.kernel = {2, 1}, .padding = {{0, 1}, {0, 0}}}), type, op, verbs, x);
        sweep(try_resolve({2, 3}, Sliding{.kernel = {1}, .stride = 3, .padding = {{0, 6}}}), type, op, verbs, x);
      }
}

// Roots of sums of squares have a way of their own for windows of few taps.
TEST(Thresholds, RootsOfSquares) {
  std::uint64_t seed = 0;
  for (const auto& [k, s] : std::vector<std::pair<Index, Index>>{{2, 2}, {3, 1}, {3, 2}, {5, 1}, {5, 3}, {6, 2}})
    for (const Index low : {Index{0}, Index{1}})
      for (const Index w : {7, 8, 16, 17, 33, 64, 130}) {
        ++seed;
        if (testing::Test::HasFailure() || !is_due()) continue;
        const Sliding window{.kernel = {k, k}, .stride = s, .padding = low, .axes = {1, 2}};
        Case c{.type = Type::f32, .op = Lp{2}, .geometry = try_resolve({3, 9, w}, window).geometry, .seed = seed};
        Random random{seed};
        c.x = static_cast<Values>(random.below(values_count));
        c.x_layout = c.y_layout = random.below(2) == 0 ? Layout{.order = {1, 2, 0}} : Layout{.gap = 2};
        c.verbs = forward_verb | forward_and_jvp_verb;
        c.threads = {1};
        c.strided_threads = {1, 2};
        const std::string problem = disagreement(c);
        EXPECT_TRUE(problem.empty()) << problem;
      }
}

// Rows of exponentials and of powers stream where rows are long enough. They have the bits of tiles, which other
// layouts take, and of terms with an exponent of their own, which a single large cell asks for.
TEST(Thresholds, RowsOfTerms) {
  const std::vector<Operator> operators{
      SmoothMax{1}, SmoothMax{-3, Padding::ignore}, SmoothMax{400}, Lp{1}, Lp{3}, Lp{16}, Lp{2.5}, Lp{17}};
  std::uint64_t seed = 0;
  for (const auto& [k, s] : std::vector<std::pair<Index, Index>>{{2, 2}, {3, 1}, {3, 2}, {4, 4}, {5, 3}, {2, 5}})
    for (const Index low : {Index{0}, Index{1}})
      for (const Index w : {15, 16, 17, 33, 70, 130})
        for (const Operator& op : operators) {
          ++seed;
          if (testing::Test::HasFailure() || !is_due()) continue;
          Random random{seed};
          const Sliding window{.kernel = {k, k}, .stride = s, .padding = low, .axes = {1, 2}};
          const Resolved g = try_resolve({random.below(3) == 0 ? 17 : 2, random.below(5) == 0 ? 60 : 9, w}, window);
          Case c{.type = std::array{Type::f32, Type::f32, Type::f16, Type::bf16}[random.below(4)], .op = op};
          c.geometry = g.geometry;
          c.seed = seed;
          c.x = static_cast<Values>(random.below(values_count));
          c.x_layout = c.dx_layout = random.below(2) == 0 ? Layout{.order = {1, 2, 0}} : Layout{.gap = 2};
          c.y_layout = c.dy_layout = random.below(7) == 0 ? Layout{.step = 2} : Layout{};
          c.placement = random.below(3) == 0 ? Placement::begins_at_guard : Placement::ends_at_guard;
          c.verbs = forward_verb | jvp_verb | forward_and_jvp_verb;
          c.threads = {1, 2};
          c.strided_threads = {1};
          const std::string problem = disagreement(c);
          EXPECT_TRUE(problem.empty()) << problem;
        }
  // Rows longer than a block, and one axis alone.
  for (const Dims& dims : std::vector<Dims>{{3, 9000}, {1, 20'000}})
    for (const Operator& op : std::vector<Operator>{SmoothMax{1}, Lp{3}}) {
      Case c{.type = Type::f32, .op = op, .geometry = try_resolve(dims, Sliding{.kernel = {3}, .stride = 2}).geometry};
      c.seed = ++seed;
      c.verbs = forward_verb | forward_and_jvp_verb;
      const std::string problem = is_due() ? disagreement(c) : std::string();
      EXPECT_TRUE(problem.empty()) << problem;
    }
}

// Terms of the cells of pictures are looked up, up to the first other number of a row; what lies beyond plain terms,
// too.
TEST(Thresholds, RowsOfBytes) {
  Sweep sweep;
  for (const Operator& op : std::vector<Operator>{SmoothMax{1}, SmoothMax{2}, SmoothMax{10}, SmoothMax{-3},
                                                  SmoothMax{0.01, Padding::ignore}, Lp{2.5}, Lp{17}, Lp{300}, Lp{1.5}})
    for (const Index k : {2, 3})
      for (const Index w : {63, 64, 65, 130, 700})
        for (const Values x : {Values::bytes, Values::rising, Values::zeros}) {
          const Sliding window{.kernel = {k, k}, .stride = 2, .padding = k - 2};
          ++sweep.seed;
          sweep(try_resolve({3, 9, w}, window), Type::f32, op, forward_verb | forward_and_jvp_verb, x);
        }
}

// Small squares: rows of every width, more of them than are copied at a time, and a few planes on top of each other.
TEST(Thresholds, SmallSquares) {
  Sweep sweep;
  for (const auto& [k, s] : std::vector<std::pair<Index, Index>>{{2, 2}, {3, 2}, {3, 1}})
    for (const Index low : {Index{0}, Index{1}})
      for (const Index w : {3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 130, 260})
        for (const Type type : {Type::f32, Type::f64, Type::u8, Type::i8}) {
          const Sliding window{.kernel = {k, k}, .stride = s, .padding = low};
          sweep(try_resolve({2, 70, w}, window), type, Max{}, values_and_winners);
          sweep(try_resolve({1, 9, w}, window), type, Average{}, forward_verb);
          const Sliding lanes{.kernel = {k, k}, .stride = s, .padding = low, .axes = {0, 1}};
          sweep(try_resolve({9, 7, w}, lanes), type, Max{}, values_and_winners);
          sweep(try_resolve({9, 7, w}, lanes), type, Average{}, forward_verb);
          if (!is_integer(type)) sweep(try_resolve({2, 9, w}, window), type, Max{}, forward_and_jvp_verb);
          if (!is_integer(type)) sweep(try_resolve({9, 7, w}, lanes), type, Max{}, forward_and_jvp_verb);
        }
}

// Windows that consist of the same blocks, and such that nearly do: fewer blocks than a vector has lanes, or more, and
// cells behind the last one.
TEST(Thresholds, WindowsThatShareBlocks) {
  Sweep sweep;
  for (const auto& [k, s] : std::vector<std::pair<Index, Index>>{
           {17, 17}, {18, 16}, {32, 16}, {48, 16}, {30, 20}, {60, 20}, {64, 64}, {240, 80}, {400, 160}, {32, 160}})
    for (const Index more : {0, 1, 15})
      for (const Index windows : {2, 3, 9, 70})
        for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8, Type::i32}) {
          const Index w = (windows - 1) * s + k + more;
          const Resolved g = try_resolve({3, w}, Sliding{.kernel = {k}, .stride = s});
          sweep(g, type, Max{}, values_and_winners);
          sweep(g, type, Average{}, forward_verb);
          if (!is_integer(type)) sweep(g, type, Max{}, forward_and_jvp_verb);
          if (windows < 9)
            sweep(try_resolve({w, 19}, Sliding{.kernel = {k}, .stride = s, .axes = {0}}), type, Average{},
                  forward_verb);
        }
  for (const Operator& op : std::vector<Operator>{Max{}, Average{}})
    sweep(try_resolve({600'000}, Sliding{.kernel = {48}, .stride = 16}), Type::f32, op, forward_verb);
}

// Large windows one cell apart along rows, one or several across them: every number of runs, margins wider than a
// vector, rows that are all margin, planes of one block and of several.
TEST(Thresholds, LargeWindowsOneCellApart) {
  Sweep sweep;
  for (const Index k : {4, 5, 6, 7, 8, 12, 13, 15, 16, 17, 31, 33, 63, 64, 65, 80})
    for (const Index w : {17, 33, 64, 70, 131})
      for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8, Type::i16}) {
        const Index high = std::min(k, Index{17});
        for (const Index low : {Index{0}, k / 2, k - 1})
          for (const Index s : {1, 3}) {
            const Sliding window{.kernel = {high, k}, .stride = {s, 1}, .padding = {{std::min(low, high - 1), low}}};
            sweep(try_resolve({2, 19, w}, window), type, Max{}, forward_verb);
          }
        sweep(try_resolve({3, w}, Sliding{.kernel = {k}, .stride = 1, .padding = k / 2}), type, Min{}, forward_verb);
        sweep(try_resolve({20, 20, 18}, Sliding{.kernel = {3, k}, .stride = 1, .padding = {1, k / 2}}), type, Max{},
              forward_verb);
      }
  // Planes that the first-level cache does not hold, of whole and of broken vectors.
  for (const Index k : {5, 9, 24, 60, 100})
    for (const Index low : {Index{0}, k / 2, k - 1})
      for (const Index s : {1, 3, 30}) {
        const Sliding window{.kernel = {k, 5}, .stride = {s, 1}, .padding = {{low, 2}}};
        sweep(try_resolve({1, 61, 90}, window), Type::f32, Max{}, forward_verb, Values::nans);
        sweep(try_resolve({1, 110, 64}, window), Type::f64, Min{}, forward_verb);
        sweep(try_resolve({1, 64, 300}, window), Type::u8, Max{}, forward_verb);
      }
  sweep(try_resolve({1, 300, 900}, Sliding{.kernel = {5, 5}, .stride = 1, .padding = 2}), Type::f32, Max{},
        forward_verb, Values::nans);
  sweep(try_resolve({1, 2000, 300}, Sliding{.kernel = {4, 4}, .stride = 1}), Type::f64, Max{}, forward_verb);
}

// Sums and averages of large windows one cell apart, on both sides of where they are made of runs: every number of
// runs, blocks of rows that end inside the plane, behind it and with it, lanes that are neighbours, and planes cut for
// several threads, whose results must not know of the cuts.
TEST(Thresholds, SumsOfLargeWindowsOneCellApart) {
  Sweep sweep;
  for (const Index k : {5, 6, 7, 8, 12, 16, 17, 31, 64, 65, 70})
    for (const Index h : {k, k + 1, 2 * k - 1, 2 * k, 3 * k + 1})
      for (const Index w : {std::max(k, Index{63}), k + 63, Index{131}})
        for (const Type type : {Type::f32, Type::f16, Type::u8, Type::i32}) {
          const Index low = h % 3 == 0 ? 0 : h % 3 == 1 ? k / 2 : k - 1;
          const Sliding window{.kernel = {k, k}, .stride = {h % 2 + 1, 1}, .padding = {{low, k / 2}}};
          sweep(try_resolve({1, h, w}, window), type, Average{}, forward_verb);
          if (h % 4 == 0) sweep(try_resolve({1, h, w}, window), type, Average{Divisor::real}, forward_verb);
          if (!is_integer(type) && k < 20) sweep(try_resolve({1, h, w}, window), type, Sum{}, vjp_verb);
          if (k < 20) {
            const Sliding lanes{.kernel = {k, k}, .stride = 1, .padding = {{low, k / 2}}, .axes = {0, 1}};
            sweep(try_resolve({h, std::min(w, Index{70}), 19}, lanes), type, Average{}, forward_verb);
          }
        }
  for (const Index k : {7, 40, 200})
    sweep(try_resolve({2, 1000}, Sliding{.kernel = {k}, .stride = 1, .padding = k / 2}), Type::f32, Sum{},
          forward_verb | vjp_verb);
  for (const Dims& in : {Dims{1, 400, 600}, Dims{1, 70, 3000}}) {
    Case c{.op = Average{}, .geometry = resolve(in, Sliding{.kernel = {9, 21}, .stride = 1, .padding = {4, 10}})};
    c.x = Values::nans;
    c.verbs = forward_verb | vjp_verb;
    const std::string problem = disagreement(c);
    EXPECT_TRUE(problem.empty()) << problem;
  }
}

// Taps so far apart that the nearest real one to a tap beyond the row is in no vector at its end.
TEST(Thresholds, DilationsBeyondAVector) {
  Sweep sweep;
  for (const Index dilation : {2, 3, 4, 5, 8, 9, 12, 16, 17, 30})
    for (const Index s : {1, 2, 3})
      for (const Index low : {Index{0}, Index{1}, dilation, 2 * dilation})
        for (const Type type : {Type::f32, Type::f64, Type::i32}) {
          const Sliding window{
              .kernel = {3}, .stride = s, .padding = low, .dilation = dilation, .rounding = Rounding::ceil};
          sweep(try_resolve({3, 2 * dilation + 27}, window), type, Max{}, values_and_winners);
          sweep(try_resolve({3, 2 * dilation + 100}, window), type, Max{}, values_and_winners);
          if (!is_integer(type))
            sweep(try_resolve({3, 2 * dilation + 90}, window), type, Average{}, forward_verb | vjp_verb);
        }
}

// Blocks of them are cut along the rows before they run out of rows.
TEST(Thresholds, LongRows) {
  Sweep sweep;
  for (const Index k : {2, 5, 20})
    for (const Index h : {1, 7, 40, 130})
      for (const Operator& op : std::vector<Operator>{Average{}, SmoothMax{1.5}, Lp{3}})
        sweep(try_resolve({1, h, 9000}, Sliding{.kernel = {std::min(h, k), k}}), Type::f32, op,
              forward_verb | jvp_verb);
}

TEST(Thresholds, InTwoDimensionsWindowsAlongTheRows) {
  Sweep sweep;
  for (Index k = 1; k <= 40; ++k)
    for (const Index s : strides(k))
      for (const Index w : {k, k + 5, Index{33}, Index{65}}) {
        const Index rows = k + std::min<Index>(s, 4);
        const Sliding window{.kernel = {k, k}, .stride = s, .padding = k % 2};
        const Resolved g = try_resolve({1, rows, w}, window);
        if (k * k * w > 40'000) continue;
        sweep_operators(sweep, g, k);
      }
}

TEST(Thresholds, InTwoDimensionsChannelsLast) {
  Sweep sweep;
  for (Index k = 1; k <= 40; ++k)
    for (const Index s : strides(k))
      for (const Index channels : {1, 3, 16, 19, 67}) {
        const Index size = k + std::min<Index>(s, 4);
        const Sliding window{.kernel = {k, k}, .stride = s, .padding = k % 2, .axes = {0, 1}};
        const Resolved g = try_resolve({size, size, channels}, window);
        if (k * k * channels > 26'000) continue;
        sweep_operators(sweep, g, k);
      }
}

// Arrays whose neighbours are neither lanes nor cells are copied to planes first, from some size on: pictures of few
// channels, reversed rows, every other column, Fortran order.
TEST(Thresholds, ArraysCopiedToPlanes) {
  std::vector<Layout> layouts(4);
  layouts[1] = {.reversed = 2};
  layouts[2] = {.order = {2, 1, 0}};
  layouts[3] = {.order = {2, 0, 1}, .step = 2, .gap = 1};
  std::uint64_t seed = 0;
  for (const Type type : {Type::f32, Type::f64, Type::bf16, Type::u8, Type::i16})
    for (const Index channels : {2, 3, 4, 5, 15})
      for (const Index width : {2040 / (7 * channels), 2060 / (7 * channels) + 1, Index{150}})
        for (const Layout& layout : layouts)
          for (const Operator& op : {Operator(Max{}), Operator(Average{}), Operator(SmoothMax{2})}) {
            if (!accepts(type, op) || testing::Test::HasFailure() || !is_due()) continue;
            const Resolved g =
                try_resolve({7, width, channels}, Sliding{.kernel = {3, 2}, .stride = 2, .axes = {0, 1}});
            Case c{.type = type, .op = op, .geometry = g.geometry, .seed = ++seed};
            c.x_layout = c.dx_layout = c.gy_layout = c.y_layout = c.dy_layout = c.gx_layout = layout;
            c.threads = {1};
            c.strided_threads = {1, 2};
            const std::string problem = disagreement(c);
            EXPECT_TRUE(problem.empty()) << problem;
          }
}

// The width of a vector, and with it every threshold that counts in vectors, differs by scalar.
TEST(Thresholds, ForOtherScalars) {
  Sweep sweep;
  for (const Type type : {Type::f64, Type::f16, Type::bf16, Type::i16, Type::i32, Type::i64})
    for (const Index k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 24, 31, 32, 33, 40})
      for (const Index s : strides(k))
        for (const Index w : widths(k, true)) {
          const Resolved g = try_resolve({2, w}, Sliding{.kernel = {k}, .stride = s});
          const Resolved deep =
              try_resolve({k + 1, 2, 19}, Sliding{.kernel = {k, 2}, .stride = {s, 1}, .axes = {0, 1}});
          sweep(g, type, Max{}, values_and_winners | (k < 9 ? vjp_verb : 0U));
          sweep(g, type, Average{}, forward_verb);
          if (w == k + 1) sweep(deep, type, Min{}, values_and_winners);
          if (w == k + 1) sweep(deep, type, Average{}, forward_verb);
          if (!is_integer(type) && k < 10) sweep(g, type, SmoothMax{2}, forward_verb);
        }
}

// Windows of many taps, where winners need two bytes and sums need blocks.
TEST(Thresholds, InTheNumberOfTaps) {
  Sweep sweep;
  for (const Index taps : {254, 255, 256, 257, 1023, 1024, 1025, 4095, 4097, 65535, 65536, 65537, 70001})
    for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8, Type::i64}) {
      const Resolved whole = try_resolve({1, taps}, Global{.last = 1});
      const Resolved sliding = try_resolve({taps + 1}, Sliding{.kernel = {taps}, .stride = 1});
      const Resolved emptied =
          try_resolve({taps + 1}, Sliding{.kernel = {taps}, .stride = taps, .padding = {{taps, 0}}});
      sweep(whole, type, Max{}, values_and_winners);
      sweep(sliding, type, Max{}, values_and_winners);
      sweep(emptied, type, Min{}, values_and_winners);
      sweep(whole, type, Average{}, forward_verb, Values::positive);
      sweep(sliding, type, Average{}, forward_verb, Values::positive);
      if (!is_integer(type) && taps <= 1024) sweep(whole, type, SmoothMax{2}, forward_verb | jvp_verb);
    }
}

// Sums of small integers are clamped to their type wherever they lie beyond it, and so are averages by a small divisor.
TEST(Thresholds, IntegerSumsBeyondTheirType) {
  Sweep sweep;
  for (Index taps = 90; taps <= 300; ++taps)
    for (const Type type : {Type::u8, Type::i8, Type::u16, Type::i16})
      for (const Values x : {Values::highest, Values::lowest, Values::spread, Values::falling})
        for (const Operator& op : std::vector<Operator>{Sum{}, Average{1}, Average{-1}})
          sweep(try_resolve({taps % 2 == 0 ? 40 : 3, taps}, Global{.last = 1}), type, op, forward_verb, x);
}

// A7 holds for windows of up to 2^20 taps.
TEST(Thresholds, AveragesOfAMillionTapsStayAccurate) {
  Sweep sweep;
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16, Type::i32})
    for (const Resolved& g :
         {try_resolve({1 << 20}, Global{.last = 1}), try_resolve({1024, 1024, 1}, Global{.axes = {0, 1}})})
      for (const Operator& op : std::vector<Operator>{Average{}, Sum{}})
        sweep(g, type, op, forward_verb, Values::positive);
}

}  // namespace
}  // namespace cenote::agree
