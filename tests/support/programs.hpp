// Programs as data: a list of instructions that builds the same graph for any scalar. Random ones for the laws, and
// those that PyTorch has run (tests/golden/graph.txt).
#pragma once

#include <sstream>

#include "cenote/graph.hpp"
#include "support/laws.hpp"

namespace cenote::test {

// `numbers` is what the operation needs besides inputs: sizes of an input, axes, windows (see `sliding`).
struct Instruction {
  std::string op;
  std::vector<int> in;
  std::vector<Index> numbers{};
  double real = 0;
};
struct ProgramText {
  std::vector<Instruction> code;
  std::vector<int> outputs;
};

inline std::string to_string(const ProgramText& program) {
  std::ostringstream out;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& step = program.code[i];
    out << i << ": " << step.op;
    for (const int from : step.in) out << " #" << from;
    for (const Index n : step.numbers) out << " " << n;
    if (step.real != 0) out << " " << step.real;
    out << "\n";
  }
  out << "outputs";
  for (const int o : program.outputs) out << " #" << o;
  return out.str();
}

inline Dims dims_of(const std::vector<Index>& numbers) { return Dims(std::span<const Index>(numbers)); }

// d, then kernel, stride, padding and dilation of d axes each, then 1 for ceil.
inline Sliding sliding(const std::vector<Index>& numbers) {
  const auto d = static_cast<int>(numbers[0]);
  const auto list = [&](int which) {
    Dims out;
    for (int a = 0; a < d; ++a) out.push_back(numbers[static_cast<std::size_t>(1 + which * d + a)]);
    return out;
  };
  Pads padding;
  for (const Index pad : list(2)) padding.push_back(pad);
  return {.kernel = list(0),
          .stride = list(1),
          .padding = padding,
          .dilation = list(3),
          .rounding = numbers[static_cast<std::size_t>(1 + 4 * d)] != 0 ? Rounding::ceil : Rounding::floor};
}
// d, then stride, padding and dilation of d axes each.
inline Convolution convolution(const std::vector<Index>& numbers) {
  std::vector<Index> as_sliding{numbers[0]};
  as_sliding.insert(as_sliding.end(), static_cast<std::size_t>(numbers[0]), 1);
  as_sliding.insert(as_sliding.end(), numbers.begin() + 1, numbers.end());
  as_sliding.push_back(0);
  const Sliding s = sliding(as_sliding);
  return {.stride = s.stride, .padding = s.padding, .dilation = s.dilation};
}

// Operations that need exp or log.
template <Transcendental T>
Handle build_smooth(Graph<T>& g, const Instruction& step, const std::vector<Handle>& x) {
  if (step.op == "tanh") return tanh(g, x[0]);
  if (step.op == "exp") return exp(g, x[0]);
  if (step.op == "log") return log(g, x[0]);
  if (step.op == "cross_entropy") return softmax_cross_entropy(g, x[0], x[1]);
  if (step.op == "smooth_max_pool") return smooth_max_pool(g, x[0], sliding(step.numbers), {.beta = step.real});
  if (step.op == "smooth_max_pool_ignore")
    return smooth_max_pool(g, x[0], sliding(step.numbers), {.beta = step.real, .padding = Padding::ignore});
  if (step.op == "lp_pool") return lp_pool(g, x[0], sliding(step.numbers), {.p = step.real});
  ADD_FAILURE() << "no operation " << step.op;
  return x[0];
}

template <class T>
Handle build_one(Graph<T>& g, const Instruction& step, const std::vector<Handle>& handles) {
  std::vector<Handle> x;
  for (const int from : step.in) x.push_back(handles[static_cast<std::size_t>(from)]);
  const auto& n = step.numbers;
  const std::string& op = step.op;
  if (op == "input") return g.input("x" + std::to_string(g.inputs().size()), dims_of(n));
  if (op == "detach") return g.detach(x[0]);
  if (op == "neg") return neg(g, x[0]);
  if (op == "relu") return relu(g, x[0]);
  if (op == "scale") return scale(g, x[0], T(n[0]) / T(Index{4}));
  if (op == "add") return add(g, x[0], x[1]);
  if (op == "sub") return sub(g, x[0], x[1]);
  if (op == "mul") return mul(g, x[0], x[1]);
  if (op == "matmul") return matmul(g, x[0], x[1]);
  if (op == "linear") return x.size() == 3 ? linear(g, x[0], x[1], x[2]) : linear(g, x[0], x[1]);
  if (op == "conv")
    return x.size() == 3 ? conv(g, x[0], x[1], x[2], convolution(n)) : conv(g, x[0], x[1], convolution(n));
  if (op == "reshape") return reshape(g, x[0], dims_of(n));
  if (op == "flatten") return flatten(g, x[0], static_cast<int>(n[0]));
  if (op == "concatenate") return concatenate(g, x, static_cast<int>(n[0]));
  if (op == "sum") return sum(g, x[0], dims_of(n));
  if (op == "mean") return mean(g, x[0], dims_of(n), true);
  if (op == "squared_error") return mean_squared_error(g, x[0], x[1]);
  if (op == "max_pool") return max_pool(g, x[0], sliding(n));
  if (op == "max_pool_split") return max_pool(g, x[0], sliding(n), {.ties = Ties::split});
  if (op == "min_pool") return min_pool(g, x[0], sliding(n));
  if (op == "avg_pool") return avg_pool(g, x[0], sliding(n));
  if (op == "avg_pool_real") return avg_pool(g, x[0], sliding(n), {.divisor = Divisor::real});
  if (op == "adaptive_max_pool") return adaptive_max_pool(g, x[0], {.output = dims_of(n)});
  if (op == "adaptive_avg_pool") return adaptive_avg_pool(g, x[0], {.output = dims_of(n)});
  if (op == "global_max_pool") return global_max_pool(g, x[0], {.last = static_cast<int>(n[0])}, {.ties = Ties::first});
  if (op == "global_avg_pool") return global_avg_pool(g, x[0], {.last = static_cast<int>(n[0]), .keep = false});
  if constexpr (Transcendental<T>) return build_smooth(g, step, x);
  ADD_FAILURE() << "no operation " << op;
  return x[0];
}

template <class T>
std::vector<Handle> build(Graph<T>& g, const ProgramText& program) {
  std::vector<Handle> handles;
  for (const Instruction& step : program.code) handles.push_back(build_one(g, step, handles));
  for (std::size_t k = 0; k < program.outputs.size(); ++k)
    g.output("y" + std::to_string(k), handles[static_cast<std::size_t>(program.outputs[k])]);
  return handles;
}

// ---- random programs --------------------------------------------------------------------------------------------

// Draws instructions on what is there already; a graph of doubles keeps track of the shapes.
class RandomProgram {
 public:
  explicit RandomProgram(bool algebraic) : algebraic_(algebraic) {
    add_input(random_shape());
    const Index steps = uniform(2, 12);
    for (Index i = 0; i < steps; ++i) draw();
    const Index outputs = uniform(1, 2);
    program_.outputs.push_back(last());
    if (outputs > 1) program_.outputs.push_back(any());
  }
  [[nodiscard]] const ProgramText& program() const { return program_; }

 private:
  static constexpr Index most = 96;  // elements of an array

  [[nodiscard]] const Dims& dims(int i) const { return graph_.dims(handles_[static_cast<std::size_t>(i)]); }
  [[nodiscard]] int any() const { return static_cast<int>(uniform(0, static_cast<Index>(handles_.size()) - 1)); }
  static Dims random_shape() {
    const int rank = static_cast<int>(uniform(1, 4));
    Dims out;
    for (int a = 0; a < rank; ++a) out.push_back(uniform(1, rank <= 2 ? 5 : 3));
    return out;
  }
  int push(Instruction step, bool tame, bool positive = false) {
    handles_.push_back(build_one(graph_, step, handles_));
    program_.code.push_back(std::move(step));
    tame_.push_back(tame);
    positive_.push_back(positive);
    return static_cast<int>(handles_.size()) - 1;
  }
  int add_input(const Dims& shape) { return push({"input", {}, std::vector<Index>(shape.begin(), shape.end())}, true); }
  // A node of this shape that is there, sometimes; otherwise a new input.
  int of_shape(const Dims& shape) {
    std::vector<int> same;
    for (int i = 0; i < static_cast<int>(handles_.size()); ++i)
      if (dims(i) == shape) same.push_back(i);
    if (!same.empty() && uniform(0, 3) > 0)
      return same[static_cast<std::size_t>(uniform(0, static_cast<Index>(same.size()) - 1))];
    return add_input(shape);
  }

  // The latest result: chosen most of the time, so that programs grow deep.
  [[nodiscard]] int last() const {
    int i = static_cast<int>(handles_.size()) - 1;
    while (i > 0 && program_.code[static_cast<std::size_t>(i)].op == "input") --i;
    return i;
  }

  void draw() {
    const int x = uniform(0, 2) > 0 ? last() : any();
    const bool tame = tame_[static_cast<std::size_t>(x)], positive = positive_[static_cast<std::size_t>(x)];
    switch (uniform(0, algebraic_ ? 12 : 17)) {
      case 0: push({"neg", {x}}, tame); break;
      case 1: push({"relu", {x}}, tame); break;
      case 2: push({"scale", {x}, {uniform(-6, 6)}}, false); break;
      case 3: push({chance() ? "add" : "sub", {x, of_shape(dims(x))}}, false); break;
      case 4: push({"mul", {x, of_shape(dims(x))}}, false); break;
      case 5: multiply(x); break;
      case 6: convolve(x); break;
      case 7: reshape_or_join(x, tame, positive); break;
      case 8: reduce(x); break;
      case 9: push({"squared_error", {x, of_shape(dims(x))}}, false); break;
      case 10: push({"detach", {x}}, tame, positive); break;
      case 11:
      case 12: windows(x, {"max_pool", "max_pool_split", "min_pool", "avg_pool", "avg_pool_real"}, 0, tame); break;
      case 13: push({"tanh", {x}}, true); break;
      case 14: tame ? push({"exp", {x}}, false, true) : push({"tanh", {x}}, true); break;
      case 15: positive ? push({"log", {x}}, true) : push({"tanh", {x}}, true); break;
      case 16: windows(x, {"smooth_max_pool", "smooth_max_pool_ignore"}, 1.5, tame); break;
      default: entropy(x); break;
    }
  }
  void multiply(int x) {
    const Dims shape = dims(x);
    if (shape.rank == 2 && chance()) {
      push({"matmul", {x, of_shape({shape[1], uniform(1, 4)})}}, false);
    } else if (shape.rank > 0) {
      const Index out = uniform(1, 4);
      if (volume(shape) / std::max(Index{1}, shape[shape.rank - 1]) * out > most) return;
      Instruction step{"linear", {x, of_shape({out, shape[shape.rank - 1]})}};
      if (chance()) step.in.push_back(of_shape({out}));
      push(std::move(step), false);
    }
  }
  void convolve(int x) {
    const Dims shape = dims(x);
    if (shape.rank < 2) return;
    const int space = shape.rank == 2 || chance() ? shape.rank - 1 : shape.rank - 2;
    const int channel = shape.rank - space - 1;
    const Index out = uniform(1, 3);
    Dims weights{out, shape[channel]};
    std::vector<Index> stride, padding, dilation;
    Index outputs = out;
    for (int a = 0; a < channel; ++a) outputs *= shape[a];
    for (int a = 0; a < space; ++a) {
      const Index size = shape[channel + 1 + a];
      padding.push_back(uniform(0, 1));
      const Index padded = size + 2 * padding.back();
      weights.push_back(uniform(1, std::min(Index{3}, padded)));
      const Index kernel = weights[weights.rank - 1];
      dilation.push_back(kernel > 1 && padded > 2 * (kernel - 1) ? uniform(1, 2) : 1);
      stride.push_back(uniform(1, 2));
      outputs *= (padded - dilation.back() * (kernel - 1) - 1) / stride.back() + 1;
    }
    if (outputs > most) return;
    Instruction step{"conv", {x, of_shape(weights)}, {space}};
    if (chance()) step.in.push_back(of_shape({out}));
    for (const auto& list : {stride, padding, dilation})
      step.numbers.insert(step.numbers.end(), list.begin(), list.end());
    push(std::move(step), false);
  }
  void reshape_or_join(int x, bool tame, bool positive) {
    const Dims shape = dims(x);
    switch (uniform(0, 2)) {
      case 0: push({"reshape", {x}, {volume(shape)}}, tame, positive); break;
      case 1:
        if (shape.rank > 0) push({"flatten", {x}, {uniform(0, shape.rank - 1)}}, tame, positive);
        break;
      default:
        if (shape.rank > 0 && volume(shape) * 3 <= most)
          push({"concatenate", {x, of_shape(shape), x}, {uniform(0, shape.rank - 1)}}, false);
    }
  }
  void reduce(int x) {
    const Dims shape = dims(x);
    if (shape.rank == 0) return;
    const Dims axes = random_axes(shape.rank, static_cast<int>(uniform(1, shape.rank)));
    push({chance() ? "sum" : "mean", {x}, std::vector<Index>(axes.begin(), axes.end())}, false);
  }
  void windows(int x, const std::vector<std::string>& names, double real, bool tame) {
    const Dims shape = dims(x);
    if (shape.rank == 0) return;
    const Index d = uniform(1, std::min(3, shape.rank));
    const Index kind = real == 0 ? uniform(0, 5) : 0;
    if (kind == 4) {
      push({chance() ? "global_max_pool" : "global_avg_pool", {x}, {d}}, tame);
      return;
    }
    std::vector<Index> kernel, stride, padding, dilation, output;
    for (Index a = shape.rank - d; a < shape.rank; ++a) {
      const Index size = shape[static_cast<int>(a)];
      output.push_back(uniform(1, 3));
      padding.push_back(uniform(0, 1));
      kernel.push_back(uniform(1, std::min(Index{3}, size + 2 * padding.back())));
      dilation.push_back(kernel.back() == 2 && size + 2 * padding.back() > 2 ? uniform(1, 2) : 1);
      stride.push_back(uniform(1, 2));
    }
    Index outputs = 1;
    for (int a = 0; a < shape.rank; ++a)
      outputs *=
          a < shape.rank - d ? shape[a] : std::max(shape[a] + 2, output[static_cast<std::size_t>(a - shape.rank + d)]);
    if (outputs > 3 * most) return;
    if (kind == 5) {
      push({chance() ? "adaptive_max_pool" : "adaptive_avg_pool", {x}, output}, tame);
      return;
    }
    Instruction step{names[static_cast<std::size_t>(uniform(0, static_cast<Index>(names.size()) - 1))], {x}, {d}, real};
    for (const auto& list : {kernel, stride, padding, dilation})
      step.numbers.insert(step.numbers.end(), list.begin(), list.end());
    step.numbers.push_back(uniform(0, 1));
    push(std::move(step), tame);
  }
  void entropy(int x) {
    if (dims(x).rank > 0) push({"cross_entropy", {x, of_shape(dims(x))}}, false);
  }

  bool algebraic_;
  ProgramText program_;
  Graph<double> graph_;
  std::vector<Handle> handles_;
  std::vector<bool> tame_, positive_;  // small enough for exp; fit for log
};

// Multiples of 1/8 between -2 and 2: exact in every scalar, with many ties.
template <class T>
Tensor<T> random_eighths(const Dims& dims) {
  Tensor<T> out(dims);
  for (T& x : out.data()) x = T(uniform(-16, 16)) / T(Index{8});
  return out;
}
template <class T>
Tensors<T> random_arrays(const std::vector<Dims>& shapes) {
  Tensors<T> out;
  for (const Dims& dims : shapes) out.push_back(random_eighths<T>(dims));
  return out;
}
template <class T>
std::vector<Dims> input_shapes(const Graph<T>& g) {
  std::vector<Dims> out;
  for (const int i : g.inputs()) out.push_back(g.record(i).node.shape);
  return out;
}
template <class T>
std::vector<Dims> output_shapes(const Graph<T>& g) {
  std::vector<Dims> out;
  for (const auto& output : g.outputs()) out.push_back(g.record(output.node).node.shape);
  return out;
}
template <class T>
T inner_product(const Tensors<T>& a, const Tensors<T>& b) {
  T sum(Index{0});
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].data().size(); ++i) sum = sum + a[k].data()[i] * b[k].data()[i];
  return sum;
}
inline double magnitude(const Tensors<double>& a, const Tensors<double>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].data().size(); ++i) sum += std::abs(a[k].data()[i] * b[k].data()[i]);
  return sum;
}
template <class T, class From, class F>
Tensors<T> mapped(const Tensors<From>& from, F&& f) {
  Tensors<T> out;
  for (const auto& tensor : from) {
    Tensor<T>& to = out.emplace_back(tensor.dims());
    for (std::size_t i = 0; i < tensor.data().size(); ++i) to.data()[i] = f(tensor.data()[i]);
  }
  return out;
}

// A random program with random arrays for everything it is given.
template <class T>
struct Case {
  ProgramText text;
  Graph<T> graph;
  Tensors<T> inputs, tangents, gradients;

  explicit Case(bool algebraic) : text(RandomProgram(algebraic).program()) {
    build(graph, text);
    inputs = random_arrays<T>(input_shapes(graph));
    tangents = random_arrays<T>(input_shapes(graph));
    gradients = random_arrays<T>(output_shapes(graph));
    RC_LOG() << to_string(text);
  }
};

// The same program at dual numbers: its values are (value, JVP).
template <class T>
OwnedJvp<T> by_duals(const Case<T>& c) {
  Graph<Dual<T>> graph;
  build(graph, c.text);
  Tensors<Dual<T>> points;
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    Tensor<Dual<T>>& point = points.emplace_back(c.inputs[k].dims());
    for (std::size_t i = 0; i < point.data().size(); ++i)
      point.data()[i] = {c.inputs[k].data()[i], c.tangents[k].data()[i]};
  }
  const auto values = evaluate(graph, points);
  return {mapped<T>(values, [](const Dual<T>& x) { return x.value; }),
          mapped<T>(values, [](const Dual<T>& x) { return x.tangent; })};
}

// Dual numbers pass through detach, so these programs have none.
inline bool detaches(const ProgramText& text) {
  return std::any_of(text.code.begin(), text.code.end(), [](const Instruction& step) { return step.op == "detach"; });
}

}  // namespace cenote::test
