// What the command line says, as plain values: the only thing that subcommands see of it.
#pragma once

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cenote/execution.hpp"
#include "cenote/geometry.hpp"
#include "cenote/ops.hpp"
#include "files/array.hpp"

namespace cenote::cli {

// Arguments that make no sense: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr std::array<std::string_view, 6> operator_names{"max", "min", "average", "sum", "smooth-max", "lp"};

struct OperatorArguments {
  std::string name;
  std::optional<std::string> ties, divisor, pads;
  std::optional<double> beta, p;
};

struct WindowArguments {
  std::string kernel, stride, padding, dilation, adaptive, axes;
  bool ceil = false, global = false, drop = false, channels_last = false;
};

struct RunArguments {
  int threads = 0;
  std::string target;
  Index memory = Index{256} << 20;
  bool quiet = false, verbose = false;
};

struct PoolArguments {
  OperatorArguments op;
  WindowArguments windows;
  RunArguments run;
  std::string input, output;
  std::optional<Element> dtype;
  std::optional<Format> format;
};

struct GradArguments {
  OperatorArguments op;
  WindowArguments windows;
  RunArguments run;
  std::string input, jvp, vjp, output, value, winners;
  bool flat_winners = false;
  std::optional<Element> dtype;
  std::optional<Index> memory;  // not said: as much as the arrays need
};

struct ExplainArguments {
  OperatorArguments op;
  WindowArguments windows;
  std::string input, shape, at, svg, colour = "auto";
};

struct CheckArguments {
  double seconds = 10;
  std::uint64_t seed = 0;
  bool quiet = false;
};

struct BenchArguments {
  RunArguments run;
  std::string verb = "forward", svg;
  bool json = false, quick = false;
};

struct TourArguments {
  std::string picture, output = "cenote-tour.png";
};

using Operator = std::variant<Max, Min, Average, Sum, SmoothMax, Lp>;

// The operator with its options; options that it does not have are errors.
Operator make_operator(const OperatorArguments& arguments, bool global);
// The geometry on an array; `caller` opens the library's messages.
Geometry make_geometry(const WindowArguments& arguments, const Header& header, std::string_view caller);
// "2x3", "2,3" or "2". `argument` is named in the error.
Dims make_dims(const std::string& text, std::string_view argument);
// "256M".
Index make_bytes(const std::string& text, std::string_view argument);

// Threads and instruction set, as the arguments say.
Execution make_execution(const RunArguments& arguments);

// Each subcommand; returns the exit code.
int pool(const PoolArguments& arguments);
int grad(const GradArguments& arguments);
int explain(const ExplainArguments& arguments);
int check(const CheckArguments& arguments);
int bench(const BenchArguments& arguments);
int tour(const TourArguments& arguments);

}  // namespace cenote::cli
