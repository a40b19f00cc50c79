#include "roof.hpp"

#include <string>

#include "cenote/execution.hpp"
#include "timing.hpp"

namespace cenote::cli {

namespace {

constexpr Index rounds = 1 << 18;
constexpr Index chains = 8;  // independent additions: enough to keep every adder busy

// Eight registers that grow, for every width that this compiler can be asked for. The result is returned so that nobody
// can leave the work out.
#define CENOTE_ADDER(name, bytes, ...)                                                           \
  __VA_ARGS__ float name(float seed) {                                                           \
    using Register = float __attribute__((vector_size(bytes)));                                  \
    const Register x = Register{} + seed;                                                        \
    Register a = x, b = x * 2, c = x * 3, d = x * 4, e = x * 5, f = x * 6, g = x * 7, h = x * 8; \
    for (Index i = 0; i < rounds; ++i) {                                                         \
      a += x;                                                                                    \
      b += x;                                                                                    \
      c += x;                                                                                    \
      d += x;                                                                                    \
      e += x;                                                                                    \
      f += x;                                                                                    \
      g += x;                                                                                    \
      h += x;                                                                                    \
    }                                                                                            \
    const Register sum = a + b + c + d + e + f + g + h;                                          \
    return sum[0] + sum[1] + sum[2] + sum[3];                                                    \
  }
CENOTE_ADDER(add_16, 16, )
#if defined(__x86_64__)
CENOTE_ADDER(add_32, 32, __attribute__((target("avx2"))))
CENOTE_ADDER(add_64, 64, __attribute__((target("avx512f"))))
#endif
#undef CENOTE_ADDER

struct Adder {
  float (*add)(float);
  Index lanes;
};

Adder adder() {
#if defined(__x86_64__)
  const std::string set = target();
  if (set.starts_with("avx3") && static_cast<bool>(__builtin_cpu_supports("avx512f"))) return {add_64, 16};
  if (set.starts_with("avx") && static_cast<bool>(__builtin_cpu_supports("avx2"))) return {add_32, 8};
#endif
  return {add_16, 4};
}

}  // namespace

Roof measure_roof(int threads) {
  Roof out;
  const Index elements = Index{1} << 25;  // 128 MB: more than caches hold
  const std::vector<float> from(static_cast<std::size_t>(elements), 1.0F);
  std::vector<float> to(from.size());
  out.bytes_per_second = 2.0 * static_cast<double>(elements) * sizeof(float) /
                         seconds_of([&] { copy_in_parallel(from.data(), to.data(), elements, threads); });

  const Adder fastest = adder();
  std::vector<float> results(static_cast<std::size_t>(threads));
  const double seconds = seconds_of([&] {
    std::vector<std::thread> workers;
    for (std::size_t n = 0; n < results.size(); ++n)
      workers.emplace_back([&, n] { results[n] = fastest.add(static_cast<float>(n) + 1); });
    for (std::thread& worker : workers) worker.join();
  });
  out.additions_per_second = static_cast<double>(rounds * chains * fastest.lanes) * threads / seconds;
  return out;
}

}  // namespace cenote::cli
