// Composed programs as PyTorch 2.13.0 ran them (tests/golden/graph.txt): values, forward mode and gradients.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "support/programs.hpp"

namespace cenote::test {
namespace {

struct Golden {
  ProgramText text;
  std::map<std::string, std::vector<std::vector<double>>> arrays;  // by "x", "dx", "gy", "y", "dy", "gx"
};

Instruction parsed(std::istringstream& line, const std::string& op) {
  Instruction step{op, {}};
  enum { inputs, numbers, real } reading = inputs;
  for (std::string word; line >> word;) {
    if (word == ":")
      reading = numbers;
    else if (word == "=")
      reading = real;
    else if (reading == inputs)
      step.in.push_back(std::stoi(word.substr(1)));
    else if (reading == numbers)
      step.numbers.push_back(std::stol(word));
    else
      step.real = std::stod(word);
  }
  return step;
}

std::vector<Golden> read_golden() {
  std::ifstream file("tests/golden/graph.txt");
  std::vector<Golden> out;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "program") {
      out.emplace_back();
    } else if (word == "outputs") {
      out.back().text.outputs = parsed(line, word).in;
    } else if (word == "x" || word == "dx" || word == "gy" || word == "y" || word == "dy" || word == "gx") {
      auto& values = out.back().arrays[word].emplace_back();
      for (double x = 0; line >> x;) values.push_back(x);
    } else {
      out.back().text.code.push_back(parsed(line, word));
    }
  }
  return out;
}

Tensors<double> shaped(const std::vector<std::vector<double>>& arrays, const std::vector<Dims>& shapes) {
  Tensors<double> out;
  for (std::size_t k = 0; k < shapes.size(); ++k) out.emplace_back(shapes[k], arrays[k]);
  return out;
}

// Results have 14 digits; sums and exp differ in the last bits, and programs are a dozen nodes deep.
void expect_close(const Tensors<double>& got, const Tensors<double>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t k = 0; k < got.size(); ++k) {
    double scale = 1;
    for (const double x : expected[k].data()) scale = std::max(scale, std::abs(x));
    for (std::size_t i = 0; i < got[k].data().size(); ++i)
      ASSERT_NEAR(got[k].data()[i], expected[k].data()[i], 1e-10 * scale) << what << " " << k << " at " << i;
  }
}

TEST(GraphGolden, ValuesTangentsAndGradientsArePyTorchs) {
  const auto programs = read_golden();
  std::map<std::string, int> seen;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    const Golden& golden = programs[p];
    SCOPED_TRACE("program " + std::to_string(p) + "\n" + to_string(golden.text));
    Graph<double> g;
    build(g, golden.text);
    for (const Instruction& step : golden.text.code) ++seen[step.op];
    const auto in = input_shapes(g), out = output_shapes(g);
    const auto array = [&](const char* name, const std::vector<Dims>& shapes) {
      return shaped(golden.arrays.at(name), shapes);
    };
    const auto pushed = jvp(g, array("x", in), array("dx", in));
    const auto pulled = value_and_vjp(g, array("x", in), array("gy", out));
    expect_close(pushed.values, array("y", out), "value");
    expect_close(pulled.values, array("y", out), "value");
    expect_close(pushed.tangents, array("dy", out), "tangent");
    expect_close(pulled.gradients, array("gx", in), "gradient");
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(programs.size(), 200U);
  for (const char* op : {"max_pool",
                         "avg_pool",
                         "avg_pool_real",
                         "smooth_max_pool",
                         "adaptive_max_pool",
                         "adaptive_avg_pool",
                         "global_max_pool",
                         "global_avg_pool",
                         "add",
                         "sub",
                         "mul",
                         "scale",
                         "neg",
                         "relu",
                         "tanh",
                         "exp",
                         "log",
                         "matmul",
                         "linear",
                         "conv",
                         "reshape",
                         "flatten",
                         "concatenate",
                         "sum",
                         "mean",
                         "cross_entropy",
                         "squared_error",
                         "detach"})
    EXPECT_GE(seen[op], 8) << op;
}

}  // namespace
}  // namespace cenote::test
