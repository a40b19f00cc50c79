// What the benchmark's C++ candidates share: the problem as Python hands it over, and a job that runs it.
// Each candidate is a shared library with the same five C functions (CENOTE_BENCH_EXPORTS), loaded by bench/native.py.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

// The numbers are those of bench/native.py.
enum class Operator : std::int32_t { max, average, average_real, smooth_max };
enum class Type : std::int32_t { f32, f64, f16, bf16, u8, i8, i16 };
enum class Windows : std::int32_t { sliding, adaptive, global };
enum class Verb : std::int32_t {
  forward,            // y = f(x), everything that depends on shapes alone kept from call to call, as peers do
  forward_resolved,   // the same with the geometry made from its arguments in every call
  forward_unplanned,  // the same with the geometry kept
  winners,            // y = f(x) and what the VJP needs
  vjp,                // gx from gy and what the forward pass kept
  vjp_from_input,     // gx from gy and x, nothing kept
  jvp,                // y = f(x) and dy
  copy                // memcpy
};

inline constexpr int rank_limit = 8;

struct Problem {
  Operator op;
  Type type;
  Windows windows;
  Verb verb;
  std::int32_t rank;           // of the arrays: batch, channels and space, in memory order
  std::int32_t pooled;         // number of pooled axes
  std::int32_t channels_last;  // the order is batch, space, channels
  std::int32_t threads;
  double beta;
  std::int64_t in[rank_limit];
  std::int64_t out[rank_limit];
  std::int64_t kernel[rank_limit];  // per pooled axis, as the lists below
  std::int64_t stride[rank_limit];
  std::int64_t dilation[rank_limit];
  std::int64_t pad_low[rank_limit];
  std::int64_t pad_high[rank_limit];
  std::size_t copy_bytes;
  void* x;
  void* y;
  void* dx;
  void* dy;
  void* gy;
  void* gx;
};

// A candidate on a problem, ready to run.
struct Job {
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;
  virtual void run() = 0;
  virtual double seconds(long calls) {
    const auto start = std::chrono::steady_clock::now();
    for (long i = 0; i < calls; ++i) run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  [[nodiscard]] virtual std::int64_t bytes_kept() const { return -1; }
};

// Each library defines these two. make_job throws with the reason if the candidate does not offer the problem.
std::unique_ptr<Job> make_job(const Problem& problem);
std::string version();

inline std::string& text() {
  static std::string last;
  return last;
}

template <class F>
auto guarded(F&& work, decltype(work()) otherwise) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    text() = error.what();
    return otherwise;
  }
}

}  // namespace bench

#define CENOTE_BENCH_EXPORTS                                                                                  \
  extern "C" void* bench_make(const bench::Problem* problem) {                                                \
    return bench::guarded([&]() -> bench::Job* { return bench::make_job(*problem).release(); }, nullptr);     \
  }                                                                                                           \
  extern "C" double bench_seconds(void* job, long calls) {                                                    \
    return bench::guarded([&] { return static_cast<bench::Job*>(job)->seconds(calls); }, -1.0);               \
  }                                                                                                           \
  extern "C" std::int64_t bench_bytes_kept(void* job) { return static_cast<bench::Job*>(job)->bytes_kept(); } \
  extern "C" void bench_free(void* job) { delete static_cast<bench::Job*>(job); }                             \
  extern "C" const char* bench_text(int what) {                                                               \
    if (what == 1) bench::text() = bench::guarded([] { return bench::version(); }, std::string());            \
    return bench::text().c_str();                                                                             \
  }
