// The definition against a naive loop written by hand for one case: max 3x3, stride 2, padding 1, on 64x112x112 f32.
// The unit is the naive loop in the same run; candidates are interleaved and the best of many rounds counts.
#include <algorithm>
#include <array>
#include <cenote/pool.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>

namespace {

using namespace cenote;

struct Case {
  Index channels, height, width, kernel, stride, padding, out_height, out_width;
};

// What one would write on the spot, with the same treatment of NaN.
[[gnu::noinline]] void naive_max(const Case& c, const float* x, float* y) {
  for (Index channel = 0; channel < c.channels; ++channel)
    for (Index i = 0; i < c.out_height; ++i)
      for (Index j = 0; j < c.out_width; ++j) {
        float best = -std::numeric_limits<float>::infinity();
        for (Index a = 0; a < c.kernel; ++a)
          for (Index b = 0; b < c.kernel; ++b) {
            const Index row = i * c.stride + a - c.padding;
            const Index column = j * c.stride + b - c.padding;
            if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
            const float value = x[(channel * c.height + row) * c.width + column];
            if (value > best || std::isnan(value)) best = value;
          }
        y[(channel * c.out_height + i) * c.out_width + j] = best;
      }
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
  const Geometry g = resolve({64, 112, 112}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1});
  const Case c{64, 112, 112, 3, 2, 1, 56, 56};
  Tensor<float> x(g.in());
  std::uint32_t state = 1;
  for (float& cell : x.data()) {
    state = state * 1664525U + 1013904223U;
    cell = static_cast<float>(state >> 8) / static_cast<float>(1U << 24);
  }
  Tensor<float> y(g.out());
  Tensor<float> expected(g.out());
  Tensor<float> gx(g.in());
  std::vector<float> copy(x.data().size());

  struct Candidate {
    const char* name;
    std::function<void()> work;
    double best = std::numeric_limits<double>::infinity();
  };
  std::array candidates{
      Candidate{"naive loop: max", [&] { naive_max(c, x.data().data(), expected.data().data()); }},
      Candidate{"definition: max", [&] { spec::forward<float>(Max{}, g, x.view(), y.view()); }},
      Candidate{"definition: max, VJP", [&] { spec::vjp<float>(Max{}, g, x.view(), y.view(), gx.view()); }},
      Candidate{"definition: average", [&] { spec::forward<float>(Average{}, g, x.view(), y.view()); }},
      Candidate{"definition: smooth max", [&] { spec::forward<float>(SmoothMax{2}, g, x.view(), y.view()); }},
      Candidate{"memcpy of the input", [&] { std::memcpy(copy.data(), x.data().data(), copy.size() * sizeof(float)); }},
  };
  for (int round = 0; round < 25; ++round)
    for (Candidate& candidate : candidates) candidate.best = std::min(candidate.best, seconds(candidate.work));

  spec::forward<float>(Max{}, g, x.view(), y.view());
  if (y != expected) {
    std::fprintf(stderr, "the definition and the naive loop disagree\n");
    return 1;
  }
  std::printf("%s, f32, one thread\n\n| candidate | ms | times the naive loop |\n|---|---|---|\n", describe(g).c_str());
  for (const Candidate& candidate : candidates)
    std::printf("| %s | %.2f | %.2f |\n", candidate.name, candidate.best * 1e3, candidate.best / candidates[0].best);
  return 0;
}
