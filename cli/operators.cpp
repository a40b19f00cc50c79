// From words to operators and windows. What is legal is the library's business, and so are the messages; here are only
// those mistakes that cannot reach it.
#include <algorithm>
#include <charconv>

#include "arguments.hpp"
#include "cenote/geometry.hpp"

namespace cenote::cli {

namespace {

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> out;
  std::size_t from = 0;
  for (;;) {
    const std::size_t to = text.find_first_of(separators, from);
    out.push_back(text.substr(from, to - from));
    if (to == std::string::npos) return out;
    from = to + 1;
  }
}

// A number, which may be a piece of what was said.
Index number(const std::string& digits, std::string_view argument, const std::string& said, const char* legal) {
  Index value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
    throw UsageError(std::string(argument) + " is '" + said + "'; " + legal);
  return value;
}

constexpr const char* sizes_legal = "one number, or one per axis as in 3x3 or 3,3, is legal";

// One number stands for every pooled axis.
PerAxis make_per_axis(const std::string& text, std::string_view argument) {
  const Dims dims = make_dims(text, argument);
  return dims.rank == 1 ? PerAxis(dims[0]) : PerAxis(dims);
}

Pads make_pads(const std::string& text) {
  constexpr const char* legal =
      "a number, one per axis as in 1x1, low:high per axis as in 0:1x0:1, `same`, `same-lower` or `valid` are legal";
  if (text == "same") return same;
  if (text == "same-lower") return same_lower;
  if (text == "valid") return valid;
  Pads out;
  for (const std::string& entry : split(text, "x,")) {
    const auto ends = split(entry, ":");
    if (ends.size() > 2) throw UsageError("--padding is '" + text + "'; " + legal);
    const Index low = number(ends.front(), "--padding", text, legal);
    out.push_back({low, ends.size() == 2 ? number(ends.back(), "--padding", text, legal) : low});
  }
  out.every = out.rank == 1;
  return out;
}

// "a, b, c".
template <class Names>
std::string joined(const Names& names) {
  std::string out;
  for (const std::string_view name : names) out.append(out.empty() ? "" : ", ").append(name);
  return out;
}

template <class T>
T one_of(const std::string& text, const char* argument, std::initializer_list<std::pair<const char*, T>> legal) {
  std::string names;
  for (const auto& [name, value] : legal) {
    if (text == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw UsageError(std::string(argument) + " is '" + text + "'; legal are " + names);
}

}  // namespace

Dims make_dims(const std::string& text, std::string_view argument) {
  Dims out;
  for (const std::string& entry : split(text, "x,")) out.push_back(number(entry, argument, text, sizes_legal));
  return out;
}

Index make_bytes(const std::string& text, std::string_view argument) {
  constexpr const char* legal = "a number of bytes, with K, M, G or T behind it, is legal";
  constexpr std::string_view units = "KMGT";
  std::string digits = text;
  for (const char* ending : {"iB", "B", "b"})
    if (digits.ends_with(ending)) {
      digits.resize(digits.size() - std::string_view(ending).size());
      break;
    }
  Index factor = 1;
  if (!digits.empty())
    if (const auto unit = units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
        unit != std::string_view::npos) {
      factor = Index{1} << (10 * (unit + 1));
      digits.pop_back();
    }
  Index bytes = number(digits, argument, text, legal);
  if (bytes < 1 || __builtin_mul_overflow(bytes, factor, &bytes))
    throw UsageError(std::string(argument) + " is '" + text + "'; " + legal);
  return bytes;
}

Operator make_operator(const OperatorArguments& a, bool global) {
  std::string name = a.name;
  for (char& c : name)
    if (c == '_') c = '-';
  if (name == "avg" || name == "mean") name = "average";
  if (std::find(operator_names.begin(), operator_names.end(), name) == operator_names.end()) {
    throw UsageError("the operator is '" + a.name + "'; legal are " + joined(operator_names));
  }
  const auto belongs = [&](bool given, const char* option, const std::string& to) {
    const bool extreme = to == "max and min" && (name == "max" || name == "min");
    if (given && !extreme && name != to)
      throw UsageError(std::string(option) + " belongs to " + to + ", and the operator is " + name);
  };
  belongs(a.ties.has_value(), "--ties", "max and min");
  belongs(a.divisor.has_value(), "--divisor", "average");
  belongs(a.beta.has_value(), "--beta", "smooth-max");
  belongs(a.pads.has_value(), "--pads", "smooth-max");
  belongs(a.p.has_value(), "--p", "lp");

  // Ties of a global maximum share by default as in the library (M7).
  const Ties ties =
      a.ties ? one_of<Ties>(*a.ties, "--ties", {{"first", Ties::first}, {"all", Ties::all}, {"split", Ties::split}})
             : (global ? Ties::all : Ties::first);
  Operator op;
  if (name == "max") op = Max{ties};
  if (name == "min") op = Min{ties};
  if (name == "sum") op = Sum{};
  if (name == "lp") op = Lp{a.p.value_or(2)};
  if (name == "average") {
    Average average;
    if (a.divisor == "real")
      average.divisor = Divisor::real;
    else if (a.divisor && a.divisor != "padded")
      average.divisor = number(*a.divisor, "--divisor", *a.divisor, "padded, real or a number is legal");
    op = average;
  }
  if (name == "smooth-max") {
    if (!a.beta)
      throw UsageError("smooth-max needs --beta: positive for a smooth maximum, negative for a smooth minimum");
    op = SmoothMax{*a.beta,
                   a.pads ? one_of<Padding>(*a.pads, "--pads", {{"zeros", Padding::zeros}, {"ignore", Padding::ignore}})
                          : Padding::zeros};
  }
  std::visit(
      [](const auto& o) {
        if (const auto problem = o.problem()) raise(*problem, o.name);
      },
      op);
  return op;
}

Execution make_execution(const RunArguments& arguments) {
  if (arguments.threads < 0)
    throw UsageError("--threads is " + std::to_string(arguments.threads) + "; at least 0 is legal, 0 for one per core");
  if (!arguments.target.empty()) {
    const auto names = targets();
    if (std::find(names.begin(), names.end(), arguments.target) == names.end())
      throw UsageError("--target is '" + arguments.target + "'; this machine has " + joined(names));
    limit_target(arguments.target);
  }
  return {.threads = arguments.threads};
}

Geometry make_geometry(const WindowArguments& a, const Header& header, std::string_view caller) {
  const int kinds = (a.kernel.empty() ? 0 : 1) + (a.adaptive.empty() ? 0 : 1) + (a.global ? 1 : 0);
  if (kinds != 1) throw UsageError("say which windows: one of --kernel, --adaptive and --global");
  if (a.drop && !a.global) throw UsageError("--drop belongs to --global");
  const bool slides = !a.kernel.empty();
  for (const auto& [given, option] :
       {std::pair{!a.stride.empty(), "--stride"}, std::pair{!a.padding.empty(), "--padding"},
        std::pair{!a.dilation.empty(), "--dilation"}, std::pair{a.ceil, "--ceil"}})
    if (given && !slides) throw UsageError(std::string(option) + " belongs to --kernel");

  // Without --axes: the axes of space. One number means all of them in a picture, and in an array with one axis.
  const PerAxis entries = slides     ? make_per_axis(a.kernel, "--kernel")
                          : a.global ? PerAxis(1)
                                     : make_per_axis(a.adaptive, "--adaptive");
  Dims axes = a.axes.empty() ? Dims{} : make_dims(a.axes, "--axes");
  const int space = header.spatial();
  const bool known = header.picture || header.channels || header.dims.rank == 1;
  if (axes.rank == 0 && (header.channels || (entries.every && known))) {
    const int count = entries.every ? space : entries.entries.rank;
    if (count > space)
      raise({Rule::axes_count, slides ? "kernel" : "output", -1, count, space}, caller,
            "input " + to_string(header.dims));
    for (int i = 0; i < count; ++i) axes.push_back(space - count + i);
  }
  if (slides) {
    Sliding sliding{.kernel = entries, .axes = axes};
    if (!a.stride.empty()) sliding.stride = make_per_axis(a.stride, "--stride");
    if (!a.padding.empty()) sliding.padding = make_pads(a.padding);
    if (!a.dilation.empty()) sliding.dilation = make_per_axis(a.dilation, "--dilation");
    if (a.ceil) sliding.rounding = Rounding::ceil;
    return resolve(header.dims, sliding, caller);
  }
  if (!a.global) return resolve(header.dims, Adaptive{.output = entries, .axes = axes}, caller);
  return resolve(header.dims, Global{.last = axes.rank == 0 ? header.dims.rank : 0, .axes = axes, .keep = !a.drop},
                 caller);
}

}  // namespace cenote::cli
