// What graphs do, one question after the other: docs/graph.md shows these pieces.
#include <cenote/fraction.hpp>
#include <cenote/graph.hpp>
#include <cenote/interval.hpp>
#include <cstdio>

using namespace cenote;

namespace {

template <class T>
void print(const char* what, const View<const T>& array) {
  std::printf("%s:", what);
  for (Index i = 0; i < array.size(); ++i) std::printf(" %g", static_cast<double>(array.data()[i]));
  std::printf("\n");
}

// A program is a function that adds nodes to a graph of any scalar.
template <class T>
void add_program(Graph<T>& g) {
  const auto x = g.input("x", {1, 4, 4});
  const auto w = g.input("w", {1, 1, 2, 2});
  const auto y = smooth_max_pool(g, conv(g, x, w), {.kernel = {2, 2}, .stride = 1}, {.beta = 2});
  g.output("y", mean(g, mul(g, y, y), {0, 1, 2}));
}

// x * sigmoid(x), a node of our own: a name, inputs, a shape and three payloads.
template <Transcendental T>
Handle swish(Graph<T>& g, const Handle& x) {
  const T one(Index{1});
  const auto sigmoid = [one](const T& a) { return T(one / (one + T(exp(T(Index{0}) - a)))); };
  const auto slope = [=](const T& a) {
    const T s = sigmoid(a);
    return T(s + a * s * (one - s));
  };
  return g.add({.name = "swish",
                .inputs = {x},
                .shape = g.dims(x),
                .forward =
                    [=](const Forward<T>& f) {
                      for (std::size_t i = 0; i < f.y.size(); ++i) f.y[i] = f.x[0][i] * sigmoid(f.x[0][i]);
                    },
                .jvp =
                    [=](const Jvp<T>& j) {
                      for (std::size_t i = 0; i < j.dy.size(); ++i) j.dy[i] = slope(j.x[0][i]) * j.dx[0][i];
                    },
                .vjp =
                    [=](const Vjp<T>& v) {
                      for (std::size_t i = 0; i < v.gy.size(); ++i) v.gx[0][i] = slope(v.x[0][i]) * v.gy[i];
                    },
                .reads = Reads::inputs});  // the derivatives look at x and not at y, so y need not be kept
}

void build_and_run() {
  Graph<float> g;
  const Handle x = g.input("x", {1, 4, 4});
  const Handle w = g.input("w", {2, 1, 3, 3});
  const Handle y = max_pool(g, relu(g, conv(g, x, w, {.padding = 1})), {.kernel = {2, 2}});
  g.output("y", y);
  g.output("total", sum(g, y, {0, 1, 2}));

  const Program<float> program(g);      // planned once,
  Workspace<float> workspace(program);  // memory for one thread
  const Tensor<float> tx({1, 4, 4}, {1, 5, 2, 0, 4, 3, 8, 6, 7, 9, 1, 1, 0, 2, 3, 4});
  const Tensor<float> tw({2, 1, 3, 3}, {0, 0, 0, 0, 1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 1});
  const auto values = program.evaluate(workspace, {tx.view(), tw.view()});
  print("y", values[0]);
  print("total", values[1]);

  // Gradients of `total` by both inputs: one array per output goes in, one per input comes out.
  const Tensor<float> none({2, 2, 2}), one({}, {1});
  const auto gradients = program.vjp(workspace, {tx.view(), tw.view()}, {none.view(), one.view()});
  print("gradient by x", gradients[0]);
  print("gradient by w", gradients[1]);

  // Evaluate once, push and pull many times.
  const auto map = program.linearize(workspace, {tx.view(), tw.view()});
  print("pushed", map.push({tx.view(), tw.view()})[1]);
  print("pulled", map.pull({none.view(), one.view()})[1]);

  std::printf("%s", describe(program).c_str());
}

void shapes_in_types() {
  Graph<double> g;
  const auto x = g.input<Shape<8, 1, 28, 28>>("x");
  const auto w = g.input<Shape<6, 1, 5, 5>>("w");
  const auto y = max_pool<Sliding{.kernel = {2, 2}}>(g, conv<Convolution{.padding = 2}>(g, x, w));
  static_assert(std::same_as<decltype(y), const Var<Shape<8, 6, 14, 14>>>);
  g.output("y", y);
}

void some_inputs_only() {
  Graph<double> g;
  const Handle data = g.input("data", {3, 2});
  const Handle w = g.input("w", {1, 2});
  const Handle target = g.input("target", {3, 1});
  g.output("loss", mean_squared_error(g, linear(g, data, w), target));
  const Program<double> program(g, {.by = {w}});  // no gradient by the data, and nothing kept for one
  Workspace<double> workspace(program);
  const Tensor<double> td({3, 2}, {1, 0, 0, 1, 1, 1}), tt({3, 1}, {1, 2, 3}), one({}, {1});
  Tensor<double> tw({1, 2}, {0, 0});
  for (int step = 0; step < 100; ++step) {
    const auto gradients = program.vjp(workspace, {td.view(), tw.view(), tt.view()}, {one.view()});
    for (std::size_t i = 0; i < 2; ++i) tw.data()[i] -= 0.5 * gradients[0].data()[i];
  }
  print("fitted", View<const double>(tw.view()));
}

void own_node() {
  Graph<double> g;
  g.output("y", swish(g, g.input("x", {3})));
  const Tensor<double> x({3}, {-1, 0, 2}), one({3}, {1, 1, 1});
  print("swish", View<const double>(evaluate(g, {x})[0].view()));
  print("its gradient", View<const double>(vjp(g, {x}, {one})[0].view()));
}

void second_order() {
  const Tensor<double> x({1, 4, 4}, {.1, .5, .2, 0, .4, .3, .8, .6, .7, .9, .1, .1, 0, .2, .3, .4});
  const Tensor<double> w({1, 1, 2, 2}, {1, -1, .5, .25});
  const Tensor<double> dx({1, 4, 4}), dw({1, 1, 2, 2}, {1, 0, 0, 0});
  const auto h = hessian_vector_product<double>([](auto& g) { add_program(g); }, {x, w}, {dx, dw});
  std::printf("value: %.6f\n", h.value);
  print("gradient by w", View<const double>(h.gradients[1].view()));
  print("Hessian by w, first column", View<const double>(h.products[1].view()));
}

void other_scalars() {
  // Exact: is the gradient of an average pool of a product what we think?
  Graph<Fraction> exact;
  const Handle a = exact.input("a", {4});
  exact.output("y", avg_pool(exact, mul(exact, a, a), {.kernel = {2}}));
  const Tensor<Fraction> ta({4}, {Fraction(1, 3), Fraction(2), Fraction(-1, 7), Fraction(5)});
  const auto gradient = vjp(exact, {ta}, {Tensor<Fraction>({2}, {Fraction(1), Fraction(1)})})[0];
  for (const Fraction& x : gradient.data()) std::printf("%ld/%ld ", long(x.numerator()), long(x.denominator()));
  std::printf("\n");

  // Bounds: what can the output be if every pixel is known to within 0.1?
  Graph<Interval> bounds;
  add_program(bounds);
  Tensor<Interval> image({1, 4, 4}),
      weights({1, 1, 2, 2}, {Interval(1.0), Interval(-1.0), Interval(0.5), Interval(0.25)});
  for (Interval& pixel : image.data()) pixel = Interval(0.4, 0.6);
  const Interval y = evaluate(bounds, {image, weights})[0].data()[0];
  std::printf("between %.4f and %.4f\n", y.lower(), y.upper());
}

void mistakes() {
  Graph<float> g;
  const Handle x = g.input("x", {2, 3});
  try {
    matmul(g, x, x);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
  g.output("y", relu(g, x));
  try {
    evaluate(g, {Tensor<float>({2, 4})});
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}

}  // namespace

int main() {
  build_and_run();
  shapes_in_types();
  some_inputs_only();
  own_node();
  second_order();
  other_scalars();
  mistakes();
}
