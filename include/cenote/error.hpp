// Errors: the one table of everything a caller can get wrong, and the exceptions that say so.
// No rule is checked here; the checks live where the numbers are known.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cenote {

using Index = std::int64_t;

// One line per rule: name, id in docs/semantics.md, kind of exception, sentence.
// {argument} {axis} {got} {limit} {value} {text} are filled in when the rule is broken.
// clang-format off
#define CENOTE_ERROR_RULES(X)                                                                                           \
  X(kernel_positive,     "G1", Shape,     "{argument} is {got} on axis {axis}; it must be at least 1")                  \
  X(stride_positive,     "G1", Shape,     "{argument} is {got} on axis {axis}; it must be at least 1")                  \
  X(dilation_positive,   "G1", Shape,     "{argument} is {got} on axis {axis}; it must be at least 1")                  \
  X(padding_nonnegative, "G1", Shape,     "{argument} is {got} on axis {axis}; it must be at least 0")                  \
  X(window_fits,         "G2", Shape,     "{argument} spans {got} cells on axis {axis}, but the padded input has {limit}; the dilated kernel may not be larger than the padded input") \
  X(window_starts,       "G3", Shape,     "{argument} spans {got} cells on axis {axis}, but the padded input has {limit}; no window is left even with ceil rounding, use a smaller kernel or more padding") \
  X(output_positive,     "G4", Shape,     "{argument} is {got} on axis {axis}; it must be at least 1")                  \
  X(torch_padding,       "G6", Shape,     "{argument} is {got} on axis {axis}; PyTorch's names allow at most half the effective kernel, here {limit}") \
  X(rank_limit,          "G7", Shape,     "{argument} has {got} axes; at most {limit} are supported")                   \
  X(size_nonnegative,    "G7", Shape,     "{argument} is {got} on axis {axis}; a size must be at least 0")              \
  X(size_overflow,       "G7", Shape,     "{argument} overflows 64 bits on axis {axis} ({got} and {limit}); use smaller sizes") \
  X(pooled_axis_empty,   "G7", Shape,     "{argument} has size 0 on pooled axis {axis}; a pooled axis must have at least 1 cell") \
  X(kernel_missing,      "G7", Shape,     "{argument} names no axis; give one number per pooled axis, or one number together with axes") \
  X(axes_ambiguous,      "G7", Shape,     "{argument} is the single number {got}; name the axes it is meant for, or give one number per pooled axis") \
  X(axes_missing,        "G7", Shape,     "{argument} names no axis; say which axes to pool, or how many of the last ones")  \
  X(axes_conflict,       "G7", Shape,     "{argument} asks for {got} axes and axes names {limit}; give one of the two")   \
  X(axes_count,          "G7", Shape,     "{argument} names {got} axes, but the input has {limit}")                     \
  X(length_mismatch,     "G7", Shape,     "{argument} has {got} entries; expected 1 or {limit}, one per pooled axis")   \
  X(axis_range,          "G7", Shape,     "{argument} names axis {got}; the input has {limit} axes, so -{limit} to {limit}-1 are legal") \
  X(axis_unique,         "G7", Shape,     "{argument} names axis {got} twice; each axis may be pooled once")            \
  X(torch_rank,          "G7", Shape,     "{argument} has {got} axes; expected {limit} (unbatched) or one more (batched)") \
  X(rank_mismatch,       "G7", Shape,     "{argument} has {got} axes; expected {limit}")                                \
  X(shape_mismatch,      "G7", Shape,     "{argument} has size {got} on axis {axis}; expected {limit}")                 \
  X(data_missing,        "G7", Shape,     "{argument} is null; a shape of {limit} elements needs memory")                 \
  X(element_limit,       "G7", Shape,     "{argument} has {got} elements; memory can hold at most {limit} of them")       \
  X(element_count,       "G7", Shape,     "{argument} has {got} elements; the shape needs {limit}")                     \
  X(index_range,         "G7", Shape,     "{argument} is {got} on axis {axis}; legal are 0 to {limit}-1")               \
  X(padding_given,       "G7", Shape,     "{argument} is `same`, which needs a kernel to be worked out; give numbers")   \
  X(unpad_fits,          "G7", Shape,     "{argument} removes {got} cells on axis {axis}, but {limit} are left")   \
  X(output_overlaps,     "G7", Overlap,   "{argument} has two elements at one address; an output's elements must be distinct") \
  X(output_aliases,      "G7", Overlap,   "{argument} shares memory with an input; an output must have memory of its own") \
  X(divisor_nonzero,     "A3", Parameter, "{argument} is 0; any other integer is legal")                                \
  X(beta_legal,          "S4", Parameter, "{argument} is {value}; it must be finite and not 0 (positive: smooth maximum, negative: smooth minimum)") \
  X(p_legal,             "L1", Parameter, "{argument} is {value}; it must be finite and at least 1")                    \
  X(interval_legal,      "I1", Parameter, "{argument} is {value}; an interval needs lower <= upper, neither of them NaN")  \
  X(threads_nonnegative, "E1", Parameter, "{argument} is {got}; it must be at least 0, where 0 leaves the number to the library") \
  X(target_available,    "E2", Parameter, "{argument} is `{text}`; it must be one of targets(), or empty for no limit") \
  X(handle_unknown,      "N1", Graph,     "{argument} is no node; use a handle that this graph gave out")                \
  X(handle_foreign,      "N1", Graph,     "{argument} is a node of another graph; use a handle that this graph gave out") \
  X(name_unique,         "N1", Graph,     "{argument} is `{text}`, a name that is taken; inputs need different names, and so do outputs") \
  X(input_expected,      "N1", Graph,     "{argument} is {text}; derivatives are taken by inputs, each named once")      \
  X(node_incomplete,     "N2", Graph,     "{argument} is empty; a node has a name, forward, jvp and vjp")                \
  X(inputs_expected,     "N2", Graph,     "{argument} has {got} handles; expected at least {limit}")                     \
  X(outputs_missing,     "N3", Graph,     "{argument} are missing; name what the program returns with output()")         \
  X(input_missing,       "N3", Graph,     "{argument} is missing; {got} arrays were given for {limit} inputs")           \
  X(array_count,         "N3", Graph,     "{argument} has {got} arrays; expected {limit}, one for each of {text}")       \
  X(workspace_foreign,   "N3", Graph,     "{argument} belongs to another program; make one from this program")           \
  X(map_stale,           "N3", Graph,     "{argument} is out of date, because its workspace has run since; linearize again") \
  X(payload_threw,       "N4", Graph,     "{argument} threw: {text}")
// clang-format on

enum class Rule : std::uint8_t {
#define CENOTE_RULE(name, id, kind, text) name,
  CENOTE_ERROR_RULES(CENOTE_RULE)
#undef CENOTE_RULE
};

// The base of all errors of the library; `rule`, `argument`, `axis` and the numbers say the same as what().
class Error : public std::invalid_argument {
 public:
  Error(const std::string& what, Rule broken, std::string_view name, int which, Index saw, Index bound)
      : std::invalid_argument(what), rule(broken), argument(name), axis(which), got(saw), limit(bound) {}
  Rule rule;
  std::string argument;
  int axis;  // of the input; -1 where no axis is concerned
  Index got, limit;
};

struct ShapeError : Error {
  using Error::Error;
};
struct ParameterError : Error {
  using Error::Error;
};
struct OverlapError : Error {
  using Error::Error;
};
struct GraphError : Error {
  using Error::Error;
};

enum class ErrorKind : std::uint8_t { Shape, Parameter, Overlap, Graph };

struct ErrorRule {
  Rule rule;
  std::string_view name, id;
  ErrorKind kind;
  std::string_view text;
};

inline constexpr std::array error_rules{
#define CENOTE_RULE(name, id, kind, text) ErrorRule{Rule::name, #name, id, ErrorKind::kind, text},
    CENOTE_ERROR_RULES(CENOTE_RULE)
#undef CENOTE_RULE
};

// A broken rule as a value, so that constant expressions can hold one.
struct Problem {
  Rule rule;
  std::string_view argument;
  int axis = -1;
  Index got = 0, limit = 0;
  double value = 0;
  std::string_view text = {};
};

namespace detail {

[[gnu::cold]] inline std::string to_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

}  // namespace detail

// The sentence of a problem: "max_pool: kernel is 0 on axis 2; it must be at least 1".
[[gnu::cold, gnu::noinline]] inline std::string message(const Problem& problem, std::string_view caller,
                                                        std::string_view detail = {}) {
  const std::string_view text = error_rules[static_cast<std::size_t>(problem.rule)].text;
  std::string out = std::string(caller) + ": ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') {
      out += text[i];
      continue;
    }
    const std::string_view name = text.substr(i + 1, text.find('}', i) - i - 1);
    if (name == "argument") out += problem.argument;
    if (name == "axis") out += std::to_string(problem.axis);
    if (name == "got") out += std::to_string(problem.got);
    if (name == "limit") out += std::to_string(problem.limit);
    if (name == "value") out += detail::to_text(problem.value);
    if (name == "text") out += problem.text;
    i += name.size() + 1;
  }
  if (!detail.empty()) out += " (" + std::string(detail) + ")";
  return out;
}

[[gnu::cold, gnu::noinline, noreturn]] inline void raise(const Problem& problem, std::string_view caller,
                                                         std::string_view detail = {}) {
  const auto as = [&]<class E>(E*) {
    return E(message(problem, caller, detail), problem.rule, problem.argument, problem.axis, problem.got,
             problem.limit);
  };
  switch (error_rules[static_cast<std::size_t>(problem.rule)].kind) {
    case ErrorKind::Parameter: throw as(static_cast<ParameterError*>(nullptr));
    case ErrorKind::Overlap: throw as(static_cast<OverlapError*>(nullptr));
    case ErrorKind::Graph: throw as(static_cast<GraphError*>(nullptr));
    case ErrorKind::Shape: break;
  }
  throw as(static_cast<ShapeError*>(nullptr));
}

}  // namespace cenote
