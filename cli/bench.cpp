// `cenote bench`: the roofline of this machine, and where each operator stands under it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "arguments.hpp"
#include "cenote/run.hpp"
#include "files/output_file.hpp"
#include "roof.hpp"
#include "svg.hpp"
#include "timing.hpp"

namespace cenote::cli {

namespace {

struct Windows {
  const char* name;
  Geometry geometry;
};

// From windows that read every cell once to windows that read it often.
std::vector<Windows> problems(Index planes) {
  const Dims in{planes, 224, 224};
  return {{"2x2", resolve(in, Sliding{.kernel = {2, 2}})},
          {"3x3 stride 2", resolve(in, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1})},
          {"3x3 stride 1", resolve(in, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1})},
          {"global", resolve(in, Global{.last = 2})}};
}

struct Result {
  std::string op, windows;
  double seconds = 0;
  double bytes = 0;  // that must move: what is read once, what is written once
  double taps = 0;
  double roof = 0;  // taps per second that the machine allows
  [[nodiscard]] double taps_per_second() const { return taps / seconds; }
};

double taps_of(const Geometry& g) {
  double taps = 1;
  for (int a = 0; a < g.rank(); ++a) {
    double along = 0;
    for (Index o = 0; o < g.axis(a).out; ++o) along += static_cast<double>(g.axis(a).window(o).real);
    taps *= along;
  }
  return taps;
}

enum class Verb { forward, jvp, vjp };
constexpr std::array<const char*, 3> verb_names{"forward", "jvp", "vjp"};

Verb verb_of(const std::string& name) {
  const auto* found = std::find(verb_names.begin(), verb_names.end(), name);
  if (found == verb_names.end())
    throw UsageError("--verb is '" + name + "'; forward, jvp (forward mode) and vjp (gradients) are legal");
  return static_cast<Verb>(found - verb_names.begin());
}

const char* name_of(Verb verb) { return verb_names[static_cast<std::size_t>(verb)]; }

// Elements that must move. Averages and sums have derivatives that do not depend on the input.
double elements_of(Verb verb, const Operator& op, const Geometry& g) {
  const auto in = static_cast<double>(volume(g.in()));
  const auto out = static_cast<double>(volume(g.out()));
  const bool linear = std::holds_alternative<Average>(op) || std::holds_alternative<Sum>(op);
  return in + out + (verb == Verb::forward || linear ? 0 : in);
}

std::vector<Result> measure(const Roof& roof, Verb verb, Index planes, int times, const Execution& exec) {
  const std::vector<Operator> operators{Max{}, Min{}, Average{}, Sum{}, SmoothMax{10}, Lp{2}};
  std::vector<Result> out;
  for (const Windows& problem : problems(planes)) {
    const Geometry& g = problem.geometry;
    Tensor<float> x(g.in());
    for (std::size_t i = 0; i < x.data().size(); ++i) x.data()[i] = static_cast<float>(i * 7919 % 1000) * 0.001F;
    Tensor<float> y(g.out());
    for (std::size_t i = 0; i < y.data().size(); ++i) y.data()[i] = static_cast<float>(i % 1000) * 0.001F;
    Tensor<float> z(verb == Verb::forward ? Dims{0} : g.in());  // a tangent of x, or the gradient by it
    for (const Operator& op : operators) {
      Result r;
      r.op = operator_names[op.index()];
      r.windows = problem.name;
      r.bytes = 4.0 * elements_of(verb, op, g);
      r.taps = taps_of(g);
      r.roof = std::min(roof.additions_per_second, roof.bytes_per_second * r.taps / r.bytes);
      const auto call = [&](const auto& o) {
        switch (verb) {
          case Verb::forward: return forward<float>(o, g, x.view(), y.view(), exec);
          case Verb::jvp: return jvp<float>(o, g, x.view(), z.view(), y.view(), exec);
          case Verb::vjp: return vjp<float>(o, g, x.view(), y.view(), z.view(), exec);
        }
      };
      r.seconds = std::visit([&](const auto& o) { return seconds_of([&] { call(o); }, times); }, op);
      out.push_back(r);
    }
  }
  return out;
}

void print_table(const Roof& roof, Verb verb, const std::vector<Result>& results, int threads) {
  std::printf("%s, %d threads, f32, %s, planes of 224x224\n", target().c_str(), threads, name_of(verb));
  std::printf("memory: %.1f GB/s (memcpy, reads and writes)   registers: %.0f G additions/s\n\n",
              roof.bytes_per_second * 1e-9, roof.additions_per_second * 1e-9);
  std::printf("%-14s %-12s %9s %9s %10s %9s\n", "windows", "operator", "ms", "GB/s", "G taps/s", "of roof");
  for (const Result& r : results)
    std::printf("%-14s %-12s %9.2f %9.1f %10.2f %7.0f %%\n", r.windows.c_str(), r.op.c_str(), r.seconds * 1e3,
                r.bytes / r.seconds * 1e-9, r.taps_per_second() * 1e-9, 100 * r.taps_per_second() / r.roof);
}

void print_json(const Roof& roof, Verb verb, const std::vector<Result>& results, int threads) {
  std::printf(
      "{\"version\": \"%s\", \"target\": \"%s\", \"threads\": %d, \"scalar\": \"f32\", \"verb\": \"%s\",\n"
      " \"memcpy_bytes_per_second\": %.4g, \"additions_per_second\": %.4g,\n \"results\": [",
      CENOTE_VERSION, target().c_str(), threads, name_of(verb), roof.bytes_per_second, roof.additions_per_second);
  const char* separator = "\n";
  for (const Result& r : results) {
    std::printf(
        "%s  {\"windows\": \"%s\", \"operator\": \"%s\", \"seconds\": %.4g, \"bytes\": %.0f, \"taps\": %.0f, "
        "\"share_of_roof\": %.4f}",
        separator, r.windows.c_str(), r.op.c_str(), r.seconds, r.bytes, r.taps, r.taps_per_second() / r.roof);
    separator = ",\n";
  }
  std::printf("\n]}\n");
}

// Both axes are logarithmic: taps per byte to the right, taps per second upwards.
std::string chart(const Roof& roof, Verb verb, const std::vector<Result>& results, int threads) {
  constexpr double width = 860, height = 520, left = 80, right = 190, top = 84, bottom = 60;
  constexpr std::array colours{"#1f77b4", "#17becf", "#2ca02c", "#bcbd22", "#d62728", "#9467bd"};
  double lowest = roof.additions_per_second;
  double least = 1e9;
  double most = 0;
  for (const Result& r : results) {
    lowest = std::min(lowest, r.taps_per_second());
    least = std::min(least, r.taps / r.bytes);
    most = std::max(most, r.taps / r.bytes);
  }
  const double x0 = std::log2(least) - 1;
  const double x1 = std::max(std::log2(most) + 1, std::log2(roof.additions_per_second / roof.bytes_per_second) + 0.7);
  const double y0 = std::floor(std::log10(lowest) - 0.1);
  const double y1 = std::log10(roof.additions_per_second) + 0.25;
  const auto x = [&](double intensity) {
    return left + (std::log2(intensity) - x0) / (x1 - x0) * (width - left - right);
  };
  const auto y = [&](double rate) {
    return height - bottom - (std::log10(rate) - y0) / (y1 - y0) * (height - top - bottom);
  };

  Svg svg(width, height);
  svg.text(left, 28, "cenote: operators under the roofline of this machine", 17, "start", "#222");
  svg.text(left, 47, target() + ", " + std::to_string(threads) + " threads, f32, " + name_of(verb), 12, "start",
           "#666");
  const auto label = [](double number) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%g", number);
    return std::string(text.data());
  };
  for (int decade = static_cast<int>(y0); decade <= static_cast<int>(y1); ++decade) {
    const double rate = std::pow(10, decade);
    svg.line(left, y(rate), width - right, y(rate), "#e4e4e4", 1);
    svg.text(left - 8, y(rate) + 4, decade >= 9 ? label(rate * 1e-9) + " G" : label(rate * 1e-6) + " M", 11, "end",
             "#666");
  }
  for (int power = static_cast<int>(std::ceil(x0)); power <= static_cast<int>(std::floor(x1)); ++power) {
    const double intensity = std::exp2(power);
    svg.line(x(intensity), top, x(intensity), height - bottom, "#f0f0f0", 1);
    svg.text(x(intensity), height - bottom + 16, label(intensity), 11, "middle", "#666");
  }
  svg.text((left + width - right) / 2, height - 14, "taps per byte that must move", 12, "middle", "#444");
  svg.text(left - 8, top - 10, "taps per second", 12, "start", "#444");
  const double ridge = roof.additions_per_second / roof.bytes_per_second;
  svg.line(x(std::exp2(x0)), y(roof.bytes_per_second * std::exp2(x0)), x(ridge), y(roof.additions_per_second), "#444",
           2);
  svg.line(x(ridge), y(roof.additions_per_second), width - right, y(roof.additions_per_second), "#444", 2);
  std::vector<std::pair<double, double>> labels;  // where they end; those that would overlap go higher
  std::set<std::pair<std::string, double>> seen;
  for (const Result& r : results) {
    const double intensity = r.taps / r.bytes;
    if (seen.emplace(r.windows, intensity).second) {
      std::pair<double, double> at{x(intensity) - 6, y(r.roof) - 6};
      const auto overlaps = [&](const auto& other) {
        return std::abs(other.first - at.first) < 72 && std::abs(other.second - at.second) < 12;
      };
      while (std::any_of(labels.begin(), labels.end(), overlaps)) at.second -= 4;
      labels.push_back(at);
      svg.line(x(intensity), y(r.roof), x(intensity), height - bottom, "#cfcfcf", 1, true);
      svg.text(at.first, at.second, r.windows, 11, "end", "#555");
    }
    const auto which = static_cast<std::size_t>(std::find(operator_names.begin(), operator_names.end(), r.op) -
                                                operator_names.begin());
    // Side by side, since several may be as fast.
    const double beside = 6 * (static_cast<double>(which) - static_cast<double>(colours.size() - 1) / 2);
    svg.dot(x(intensity) + beside, y(r.taps_per_second()), 5, colours[which]);
  }
  for (std::size_t i = 0; i < operator_names.size(); ++i) {
    const double row = top + 20 + 22 * static_cast<double>(i);
    svg.dot(width - right + 24, row, 5, colours[i]);
    svg.text(width - right + 36, row + 4, std::string(operator_names[i]), 13, "start", "#333");
  }
  std::array<char, 48> memory{};
  std::snprintf(memory.data(), memory.size(), "memory %.0f GB/s", roof.bytes_per_second * 1e-9);
  svg.text(width - right + 18, top + 180, memory.data(), 12, "start", "#444");
  std::array<char, 48> registers{};
  std::snprintf(registers.data(), registers.size(), "registers %.0f G/s", roof.additions_per_second * 1e-9);
  svg.text(width - right + 18, top + 200, registers.data(), 12, "start", "#444");
  return svg.finish();
}

}  // namespace

int bench(const BenchArguments& a) {
  const Verb verb = verb_of(a.verb);
  const Execution exec = make_execution(a.run);
  const int threads = exec.threads > 0 ? exec.threads : num_threads();
  std::optional<OutputFile> file;  // a place that cannot be written is said before minutes are spent
  if (!a.svg.empty()) file.emplace(a.svg);
  const Roof roof = measure_roof(threads);
  // More than caches hold; quick numbers come out of caches, and only show that everything works.
  const std::vector<Result> results = a.quick ? measure(roof, verb, 4, 1, exec) : measure(roof, verb, 512, 5, exec);
  if (a.json)
    print_json(roof, verb, results, threads);
  else
    print_table(roof, verb, results, threads);
  if (!file) return 0;
  const std::string drawn = chart(roof, verb, results, threads);
  file->write(drawn.data(), drawn.size());
  file->commit();
  return 0;
}

}  // namespace cenote::cli
