// What a program does besides computing: what it keeps, what it leaves out, how it adds, what it lets a user add.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cenote/graph.hpp"
#include "cenote/rational.hpp"

namespace cenote {
namespace {

using detail::owned;

// ---- handles whose shape is in their type -------------------------------------------------------------------------

TEST(GraphTypes, ShapesFollowFromTypes) {
  Graph<float> g;
  const auto x = g.input<Shape<2, 3, 8, 8>>("x");
  const auto w = g.input<Shape<4, 3, 3, 3>>("w");
  const auto b = g.input<Shape<4>>("b");
  const auto y = conv<Convolution{.stride = 2, .padding = 1}>(g, x, w, b);
  static_assert(std::same_as<decltype(y), const Var<Shape<2, 4, 4, 4>>>);
  const auto p = max_pool<Sliding{.kernel = {2, 2}}>(g, relu(g, y));
  static_assert(std::same_as<decltype(p), const Var<Shape<2, 4, 2, 2>>>);
  const auto joined = concatenate<1>(g, p, adaptive_avg_pool<Adaptive{.output = {2, 2}}>(g, y));
  static_assert(std::same_as<decltype(joined), const Var<Shape<2, 8, 2, 2>>>);
  const auto flat = flatten(g, joined);
  static_assert(std::same_as<decltype(flat), const Var<Shape<2, 32>>>);
  const auto out = linear(g, flat, g.input<Shape<5, 32>>("v"));
  static_assert(std::same_as<decltype(out), const Var<Shape<2, 5>>>);
  static_assert(std::same_as<decltype(matmul(g, out, g.input<Shape<5, 7>>("m"))), Var<Shape<2, 7>>>);
  static_assert(std::same_as<decltype(reshape<Shape<10>>(g, out)), Var<Shape<10>>>);
  static_assert(std::same_as<decltype(sum<Global{.axes = {1}, .keep = false}>(g, out)), Var<Shape<2>>>);
  static_assert(std::same_as<decltype(mean<Global{.axes = {0}}>(g, out)), Var<Shape<1, 5>>>);
  static_assert(std::same_as<decltype(global_max_pool<Global{.last = 2, .keep = false}>(g, y)), Var<Shape<2, 4>>>);
  static_assert(std::same_as<decltype(pool<Sliding{.kernel = {2, 2}}>(g, y, Lp{2})), Var<Shape<2, 4, 2, 2>>>);
  static_assert(std::same_as<decltype(mean_squared_error(g, out, out)), Var<Shape<>>>);
  static_assert(std::same_as<decltype(softmax_cross_entropy(g, out, out)), Var<Shape<>>>);
  static_assert(std::same_as<decltype(g.detach(out)), Var<Shape<2, 5>>>);
  // A typed handle stands wherever one of run-time shape does, and comes back with as<>().
  const Handle untyped = max_pool(g, y, {.kernel = {2, 2}});
  EXPECT_EQ(g.dims(untyped), (Dims{2, 4, 2, 2}));
  const auto typed = add(g, g.as<Shape<2, 4, 2, 2>>(untyped), p);
  static_assert(std::same_as<decltype(typed), const Var<Shape<2, 4, 2, 2>>>);
  static_assert(std::same_as<decltype(add(g, untyped, p)), Var<Shape<2, 4, 2, 2>>>);  // checked as it is added
  EXPECT_EQ(g.dims(typed), (Dims{2, 4, 2, 2}));
}

Tensor<double> ramp(const Dims& dims, double step = 0.37) {
  Tensor<double> out(dims);
  double x = 0;
  for (double& v : out.data()) v = std::sin(x += step) * 3;
  return out;
}

// ---- semantics ----------------------------------------------------------------------------------------------------

TEST(GraphRun, N5_FanOutAddsGradients) {
  Graph<Rational> g;
  const Handle x = g.input("x", {2});
  const Handle twice = add(g, x, x);
  g.output("y", add(g, mul(g, twice, x), twice));  // 2x^2 + 2x
  g.output("again", twice);
  g.output("x", x);
  const Tensor<Rational> tx({2}, {Rational(3), Rational(-5)}), one({2}, {Rational(1), Rational(1)});
  const auto gradient = vjp(g, {tx}, {one, one, one})[0];  // 4x + 2 + 2 + 1
  EXPECT_EQ(gradient, Tensor<Rational>({2}, {Rational(17), Rational(-15)}));
}

TEST(GraphRun, N5_OneNodeReturnedTwiceAddsBothGradients) {
  Graph<double> g;
  const Handle y = scale(g, g.input("x", {2}), 3);
  g.output("a", y);
  g.output("b", y);
  EXPECT_EQ(vjp(g, {Tensor<double>({2})}, {Tensor<double>({2}, {1, 2}), Tensor<double>({2}, {10, 20})})[0],
            Tensor<double>({2}, {33, 66}));
}

TEST(GraphRun, N6_NothingPassesADetachedNode) {
  Graph<double> g;
  const Handle x = g.input("x", {1}), c = g.constant(Tensor<double>({1}, {10}));
  g.output("y", add(g, mul(g, g.detach(x), x), mul(g, c, g.detach(mul(g, x, x)))));
  const Tensor<double> tx({1}, {3}), one({1}, {1});
  EXPECT_EQ(evaluate(g, {tx})[0].data()[0], 99);
  EXPECT_EQ(vjp(g, {tx}, {one})[0].data()[0], 3);  // of detach(x) * x alone
  EXPECT_EQ(jvp(g, {tx}, {one}).tangents[0].data()[0], 3);
}

TEST(GraphRun, N6_UnusedNodesAndUnaskedDerivativesAreNotRun) {
  Graph<double> g;
  int forwards = 0, pulls = 0;
  const auto counted = [&](const Handle& x, const char* name) {
    return pointwise<Reads::nothing>(
        g, name, x,
        [&](double v) {
          ++forwards;
          return v;
        },
        [&](double, double, double d) {
          ++pulls;
          return d;
        });
  };
  const Handle a = g.input("a", {1}), b = g.input("b", {1});
  const Handle used = counted(a, "used");
  counted(counted(a, "unused"), "unused as well");
  g.output("y", add(g, used, counted(b, "of b")));
  const Tensor<double> t({1}, {2});
  evaluate(g, {t, t});
  EXPECT_EQ(forwards, 2);
  EXPECT_EQ(vjp(g, {t, t}, {t}, {b})[0], t);
  EXPECT_EQ(pulls, 1);  // the gradient by `a` was not asked for
}

TEST(GraphRun, N6_InputsThatNothingDependsOnHaveZeroDerivatives) {
  Graph<double> g;
  const Handle x = g.input("x", {2});
  (void)g.input("idle", {3});
  g.output("y", g.detach(x));
  const Tensor<double> two({2}, {1, 2}), three({3}, {1, 2, 3});
  const auto gradients = vjp(g, {two, three}, {two});
  EXPECT_EQ(gradients[0], Tensor<double>({2}));
  EXPECT_EQ(gradients[1], Tensor<double>({3}));
  EXPECT_EQ(jvp(g, {two, three}, {two, three}).tangents[0], Tensor<double>({2}));
}

TEST(GraphRun, AnOutputMayBeAnInputOrAConstant) {
  Graph<double> g;
  const Handle x = g.input("x", {2});
  g.output("x", x);
  g.output("flat", reshape(g, x, {1, 2}));
  g.output("c", g.constant(Tensor<double>({1}, {7})));
  const Tensor<double> tx({2}, {1, 2});
  const auto values = evaluate(g, {tx});
  EXPECT_EQ(values[0], tx);
  EXPECT_EQ(values[1].dims(), (Dims{1, 2}));
  EXPECT_EQ(values[2].data()[0], 7);
  const auto gradient = vjp(g, {tx}, {tx, Tensor<double>({1, 2}, {10, 20}), Tensor<double>({1}, {5})})[0];
  EXPECT_EQ(gradient, Tensor<double>({2}, {11, 22}));
}

TEST(GraphRun, EveryPushIsOfItsOwnTangents) {
  Graph<double> g;
  const Handle x = g.input("x", {2});
  g.output("y", neg(g, reshape(g, x, {1, 2})));
  g.output("flat", reshape(g, x, {2, 1}));
  const Program<double> program(g);
  Workspace<double> workspace(program);
  const Tensor<double> tx({2}), first({2}, {1, 2}), second({2}, {3, 4});
  const auto map = program.linearize(workspace, {tx.view()});
  (void)map.push({first.view()});
  const auto pushed = owned<double>(map.push({second.view()}));
  EXPECT_EQ(pushed[0], Tensor<double>({1, 2}, {-3, -4}));
  EXPECT_EQ(pushed[1], Tensor<double>({2, 1}, {3, 4}));
}

TEST(GraphRun, EmptyArraysPassThrough) {
  Graph<double> g;
  const Handle x = g.input("x", {0, 4});
  g.output("y", max_pool(g, relu(g, x), {.kernel = {2}}));
  const auto result = value_and_vjp(g, {Tensor<double>({0, 4})}, {Tensor<double>({0, 2})});
  EXPECT_EQ(result.values[0].dims(), (Dims{0, 2}));
  EXPECT_EQ(result.gradients[0].dims(), (Dims{0, 4}));
}

TEST(GraphRun, ArraysWithGapsAreReadAsTheyAre) {
  Graph<double> g;
  const Handle left = g.input("a", {2, 3}), right = g.input("b", {3, 2});
  g.output("y", matmul(g, left, right));
  const Program<double> program(g);
  Workspace<double> workspace(program);
  const auto a = ramp({3, 2}), b = ramp({3, 4});
  const View<const double> turned = a.view().permuted({1, 0}), every_other(b.data().data(), {3, 2}, {4, 2});
  Tensor<double> dense_a({2, 3}), dense_b({3, 2});
  copy_elements(turned, dense_a.view());
  copy_elements(every_other, dense_b.view());
  const auto strided = owned<double>(program.evaluate(workspace, {turned, every_other}));
  EXPECT_EQ(strided, owned<double>(program.evaluate(workspace, {dense_a.view(), dense_b.view()})));
}

// The graph may grow or go away; programs run what they were made from.
TEST(GraphRun, AProgramOutlivesItsGraph) {
  auto g = std::make_unique<Graph<double>>();
  g->output("y", scale(*g, g->input("x", {1}), 2));
  const Program<double> program(*g);
  g.reset();
  Workspace<double> workspace(program);
  const Tensor<double> x({1}, {21});
  EXPECT_EQ(program.evaluate(workspace, {x.view()})[0].data()[0], 42);
}

// ---- memory -------------------------------------------------------------------------------------------------------

TEST(GraphMemory, N7_OnlyWhatDerivativesReadIsKept) {
  const auto kept = [](auto&& build) {
    Graph<float> g;
    const Handle y = build(g, neg(g, g.input("x", {4, 16, 16})));
    g.output("y", neg(g, y));
    std::size_t bytes = 0;
    for (const auto& node : detail::drawn(Program<float>(g))) bytes += node.kept;
    return bytes;
  };
  EXPECT_EQ(kept([](auto& g, auto x) { return max_pool(g, x, {.kernel = {2, 2}}); }), 4 * 8 * 8);  // a byte each
  EXPECT_EQ(kept([](auto& g, auto x) { return avg_pool(g, x, {.kernel = {2, 2}}); }), 0);
  EXPECT_EQ(kept([](auto& g, auto x) { return sum(g, x, {1, 2}); }), 0);
  EXPECT_EQ(kept([](auto& g, auto x) { return smooth_max_pool(g, x, {.kernel = {2, 2}}, {.beta = 1}); }), 4 * 1024);
  EXPECT_EQ(kept([](auto& g, auto x) { return relu(g, x); }), 4 * 1024);  // its output; the input goes
  EXPECT_EQ(kept([](auto& g, auto x) { return add(g, x, x); }), 0);
  EXPECT_EQ(kept([](auto& g, auto x) { return mul(g, x, x); }), 4 * 1024);
  // The gradient of a product by one factor reads the other, which is a constant here.
  EXPECT_EQ(kept([](auto& g, auto x) { return mul(g, x, g.constant(Tensor<float>({4, 16, 16}))); }), 0);
}

TEST(GraphMemory, N7_ArraysShareMemoryWhenTheyAreNotNeededTogether) {
  Graph<float> g;
  Handle y = g.input("x", {1024});
  for (int i = 0; i < 50; ++i) y = neg(g, y);
  g.output("y", y);
  const PeakMemory peak = Program<float>(g).peak_memory();
  EXPECT_EQ(peak.evaluate, 2 * 4096);  // one is read, one is written
  EXPECT_EQ(peak.jvp, 4 * 4096);       // and the same for tangents
  EXPECT_EQ(peak.vjp, 3 * 4096);       // gradients, and the value that is returned
  Workspace<float> workspace{Program<float>(g)};
  EXPECT_EQ(workspace.bytes(), 0U);  // taken when it is needed
}

// The output's gradient is the caller's: its parts are taken as they are needed, and not all at once.
TEST(GraphMemory, N7_PartsOfAnOutputsGradientAreTakenWhenNeeded) {
  Graph<float> g;
  Handle x = g.input("x", {1024});
  std::vector<Handle> all{x};
  for (int i = 0; i < 9; ++i) all.push_back(x = neg(g, x));
  g.output("y", concatenate(g, all, 0));
  const Program<float> program(g);
  // The value of 10 parts; then, at any time, a gradient, the one it becomes, and a part that is added.
  EXPECT_EQ(program.peak_memory().vjp, (10 + 9) * 4096U);  // forward: the nine parts are there beside their joint
  Workspace<float> workspace(program);
  const Tensor<float> tx({1024}, 1.0F), gy({10240}, 1.0F);
  for (int i = 0; i < 2; ++i) {
    const auto gradient = program.vjp(workspace, {tx.view()}, {gy.view()})[0];
    for (Index k = 0; k < 1024; ++k) ASSERT_EQ(gradient.data()[k], 0.0F);  // 1 - 1 + 1 ...
  }
}

TEST(GraphMemory, PeakMemoryIsWhatAWorkspaceTakes) {
  Graph<float> g;
  const Handle x = g.input("x", {2, 3, 9, 9}), w = g.input("w", {4, 3, 3, 3});
  g.output("y", max_pool(g, relu(g, conv(g, x, w)), {.kernel = {2, 2}}));
  const Program<float> program(g);
  const Tensor<float> tx({2, 3, 9, 9}), tw({4, 3, 3, 3}), gy({2, 4, 3, 3});
  Workspace<float> one(program), two(program), three(program), four(program);
  (void)program.evaluate(one, {tx.view(), tw.view()});
  EXPECT_EQ(one.bytes(), program.peak_memory().evaluate);
  (void)program.jvp(two, {tx.view(), tw.view()}, {tx.view(), tw.view()});
  EXPECT_EQ(two.bytes(), program.peak_memory().jvp);
  (void)program.vjp(three, {tx.view(), tw.view()}, {gy.view()});
  EXPECT_EQ(three.bytes(), program.peak_memory().vjp);
  (void)program.linearize(four, {tx.view(), tw.view()});
  EXPECT_EQ(four.bytes(), program.peak_memory().linearize);
}

// ---- a user's node ------------------------------------------------------------------------------------------------

// a * b^2 with the simplest payloads there are: every field of Node beyond these is left alone.
template <class T>
Handle weighted_square(Graph<T>& g, const Handle& a, const Handle& b) {
  return g.add({.name = "weighted_square",
                .inputs = {a, b},
                .shape = g.dims(a),
                .forward =
                    [](const Forward<T>& f) {
                      for (std::size_t i = 0; i < f.y.size(); ++i) f.y[i] = f.x[0][i] * f.x[1][i] * f.x[1][i];
                    },
                .jvp =
                    [](const Jvp<T>& j) {
                      for (std::size_t i = 0; i < j.dy.size(); ++i)
                        j.dy[i] = j.dx[0][i] * j.x[1][i] * j.x[1][i] + T(Index{2}) * j.x[0][i] * j.x[1][i] * j.dx[1][i];
                    },
                .vjp =
                    [](const Vjp<T>& v) {
                      for (std::size_t i = 0; i < v.gy.size(); ++i) {
                        v.gx[0][i] = v.gy[i] * v.x[1][i] * v.x[1][i];
                        v.gx[1][i] = v.gy[i] * T(Index{2}) * v.x[0][i] * v.x[1][i];
                      }
                    }});
}

TEST(GraphUser, ANodeOfTheUsersOwnIsLikeTheLibrarys) {
  Graph<Rational> g;
  const Handle a = g.input("a", {2}), b = g.input("b", {2});
  g.output("y", weighted_square(g, a, b));
  const Tensor<Rational> ta({2}, {Rational(2), Rational(3)}), tb({2}, {Rational(5), Rational(7)});
  const Tensor<Rational> one({2}, {Rational(1), Rational(1)});
  EXPECT_EQ(evaluate(g, {ta, tb})[0], Tensor<Rational>({2}, {Rational(50), Rational(147)}));
  // Not selective: derivatives by one input alone still hand it arrays for both.
  EXPECT_EQ(vjp(g, {ta, tb}, {one}, {a})[0], Tensor<Rational>({2}, {Rational(25), Rational(49)}));
  EXPECT_EQ(vjp(g, {ta, tb}, {one}, {b})[0], Tensor<Rational>({2}, {Rational(20), Rational(42)}));
  EXPECT_EQ(jvp(g, {ta, tb}, {one}, {b}).tangents[0], Tensor<Rational>({2}, {Rational(20), Rational(42)}));
}

// ---- second order -------------------------------------------------------------------------------------------------

double dot(const Tensors<double>& a, const Tensors<double>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].data().size(); ++i) sum += a[k].data()[i] * b[k].data()[i];
  return sum;
}
Tensors<double> moved(const Tensors<double>& x, const Tensors<double>& v, double by) {
  Tensors<double> out = x;
  for (std::size_t k = 0; k < x.size(); ++k)
    for (std::size_t i = 0; i < x[k].data().size(); ++i) out[k].data()[i] += by * v[k].data()[i];
  return out;
}

// H v against differences of gradients, and <u, H v> = <v, H u>.
void check_hessian(const auto& build, const Tensors<double>& x, const Tensors<double>& u, const Tensors<double>& v) {
  const auto hv = hessian_vector_product<double>(build, x, v), hu = hessian_vector_product<double>(build, x, u);
  EXPECT_NEAR(dot(u, hv.products), dot(v, hu.products), 1e-12 * (1 + std::abs(dot(u, hv.products))));
  Graph<double> g;
  build(g);
  const Tensors<double> one{Tensor<double>(Dims{}, 1.0)};
  const double h = 1e-5;
  const auto ahead = vjp(g, moved(x, v, h), one), behind = vjp(g, moved(x, v, -h), one);
  double largest = 0;
  for (std::size_t k = 0; k < x.size(); ++k)
    for (std::size_t i = 0; i < x[k].data().size(); ++i) {
      const double difference = (ahead[k].data()[i] - behind[k].data()[i]) / (2 * h);
      EXPECT_NEAR(hv.products[k].data()[i], difference, 1e-6 * (1 + std::abs(difference)));
      largest = std::max(largest, std::abs(difference));
    }
  EXPECT_GT(largest, 1e-3);  // something was compared
  EXPECT_EQ(hv.gradients.size(), x.size());
}

TEST(GraphSecondOrder, N8_HessianOfSmoothMax) {
  const auto build = [](auto& g) {
    const auto y =
        smooth_max_pool(g, g.input("x", {1, 6, 6}), {.kernel = {3, 3}, .stride = 2, .padding = 1}, {.beta = 2});
    g.output("y", sum(g, mul(g, y, y), {0, 1, 2}));
  };
  check_hessian(build, {ramp({1, 6, 6})}, {ramp({1, 6, 6}, 0.9)}, {ramp({1, 6, 6}, 1.7)});
}

TEST(GraphSecondOrder, N8_HessianOfANetwork) {
  const auto build = [](auto& g) {
    const auto x = g.input("x", {2, 1, 6, 6}), w = g.input("w", {3, 1, 3, 3}), b = g.input("b", {3});
    const auto h = smooth_max_pool(g, tanh(g, conv(g, x, w, b, {.padding = 1})), {.kernel = {2, 2}}, {.beta = 3});
    const auto a = avg_pool(g, max_pool(g, h, {.kernel = {2, 2}, .stride = 1}), {.kernel = {2, 2}});
    const auto v = g.input("v", {4, 3}), c = g.input("c", {4}), t = g.input("t", {2, 4});
    g.output("loss", softmax_cross_entropy(g, linear(g, flatten(g, a), v, c), t));
  };
  Tensors<double> x, u, v;
  for (const Dims& dims : {Dims{2, 1, 6, 6}, Dims{3, 1, 3, 3}, Dims{3}, Dims{4, 3}, Dims{4}, Dims{2, 4}}) {
    x.push_back(ramp(dims, 0.53));
    u.push_back(ramp(dims, 0.91));
    v.push_back(ramp(dims, 1.37));
  }
  check_hessian(build, x, u, v);
}

// ---- seeing -------------------------------------------------------------------------------------------------------

TEST(GraphDraw, TextHasALineForEveryNode) {
  Graph<float> g;
  const Handle x = g.input("x", {1, 4, 4});
  relu(g, x);
  g.output("y", max_pool(g, mul(g, x, x), {.kernel = {2, 2}}));
  EXPECT_EQ(describe(g),
            "node  name      shape  inputs  parameters                        keeps\n"
            "0     x         1x4x4          input\n"
            "1     relu      1x4x4  0       unused\n"
            "2     mul       1x4x4  0 0\n"
            "3     max_pool  1x2x2  2       sliding 2x2 stride 2, output `y`  4 B\n");
  EXPECT_EQ(describe(Program<float>(g)),
            "node  name      shape  inputs  parameters                        keeps\n"
            "0     x         1x4x4          input\n"
            "2     mul       1x4x4  0 0\n"
            "3     max_pool  1x2x2  2       sliding 2x2 stride 2, output `y`  4 B\n"
            "memory: evaluate 80 B, jvp 212 B, vjp 212 B, linearize 276 B\n");
}

TEST(GraphDraw, ThePictureHasABoxForEveryNodeAndAnArrowForEveryInput) {
  Graph<float> g;
  const Handle x = g.input("a < b & c", {4});
  const Handle y = add(g, neg(g, neg(g, x)), x);
  g.output("y", y);
  const std::string picture = svg(g);
  const auto count = [&](const std::string& what) {
    int n = 0;
    for (auto at = picture.find(what); at != std::string::npos; at = picture.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("<g "), 4);
  EXPECT_EQ(count("marker-end"), 4);
  EXPECT_EQ(count("a &lt; b &amp; c"), 1);
  EXPECT_EQ(picture.rfind("<svg ", 0), 0U);
  EXPECT_EQ(count("nan"), 0);
}

// docs/graph.svg. After a change of the drawing, write it again with CENOTE_WRITE_PICTURE=1 and look at it.
TEST(GraphDraw, ThePictureOfTheDocumentationIsUpToDate) {
  Graph<float> g;
  const auto x = g.input<Shape<32, 1, 8, 8>>("images");
  const auto w1 = g.input<Shape<8, 1, 3, 3>>("w1");
  const auto b1 = g.input<Shape<8>>("b1");
  const auto h = relu(g, conv<Convolution{.padding = 1}>(g, x, w1, b1));
  constexpr Sliding windows{.kernel = {2, 2}};
  const auto most = max_pool<windows>(g, h);
  const auto mean = avg_pool<windows>(g, h);
  const auto soft = smooth_max_pool<windows>(g, h, {.beta = 4});
  const auto w2 = g.input<Shape<10, 384>>("w2");
  const auto b2 = g.input<Shape<10>>("b2");
  const auto logits = linear(g, flatten(g, concatenate<1>(g, most, mean, soft)), w2, b2);
  const auto labels = g.input<Shape<32, 10>>("labels");
  g.output("logits", logits);
  g.output("loss", softmax_cross_entropy(g, logits, labels));
  const std::string picture = svg(Program<float>(g, {.by = {w1, b1, w2, b2}}));
  const char* const path = "docs/graph.svg";
  if (std::getenv("CENOTE_WRITE_PICTURE") != nullptr) std::ofstream(path) << picture;
  std::ostringstream drawn;
  drawn << std::ifstream(path).rdbuf();
  EXPECT_TRUE(picture == drawn.str());
}

}  // namespace
}  // namespace cenote
