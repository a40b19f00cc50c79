// cenote and memcpy as candidates of the benchmark: one job per operator, scalar and verb.
#ifndef CENOTE_VERSION
#define CENOTE_VERSION "unknown"
#endif

#include <atomic>
#include <cenote/pool.hpp>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "job.hpp"

namespace bench {
namespace {

using cenote::Dims;
using cenote::Geometry;
using cenote::View;

// ---- cenote -----------------------------------------------------------------------------------------------------

Dims listed(const std::int64_t* entries, int count) {
  return Dims(std::span<const cenote::Index>(entries, static_cast<std::size_t>(count)));
}

Geometry resolved(const Problem& p) {
  Dims axes;
  for (int i = 0; i < p.pooled; ++i) axes.push_back(i + (p.channels_last != 0 ? 1 : 2));
  const Dims in = listed(p.in, p.rank);
  switch (p.windows) {
    case Windows::adaptive: {
      const Dims out = listed(p.out + (p.channels_last != 0 ? 1 : 2), p.pooled);
      return cenote::resolve(in, cenote::Adaptive{.output = out, .axes = axes});
    }
    case Windows::global: return cenote::resolve(in, cenote::Global{.axes = axes});
    case Windows::sliding: break;
  }
  cenote::Pads pads;
  for (int i = 0; i < p.pooled; ++i) pads.push_back({p.pad_low[i], p.pad_high[i]});
  return cenote::resolve(in, cenote::Sliding{.kernel = listed(p.kernel, p.pooled),
                                             .stride = listed(p.stride, p.pooled),
                                             .padding = pads,
                                             .dilation = listed(p.dilation, p.pooled),
                                             .axes = axes});
}

template <class T, class Op>
struct Pooling final : Job {
  using Kept = decltype(cenote::linearize<T>(std::declval<Op>(), std::declval<Geometry>(),
                                             std::declval<View<const T>>(), std::declval<View<T>>()));

  Op op;
  Problem problem;
  Geometry geometry;
  cenote::Execution exec;
  View<const T> x, dx, gy;
  View<T> y, dy, gx;
  std::optional<Kept> kept;
  std::optional<cenote::Plan<Op, T>> plan;

  Pooling(const Op& which, const Problem& p)
      : op(which), problem(p), geometry(resolved(p)), exec{.threads = p.threads, .executor = nullptr}, x(in(p.x)),
        dx(in(p.dx)), gy(out(p.gy)), y(out(p.y)), dy(out(p.dy)), gx(in(p.gx)) {
    for (int a = 0; a < p.rank; ++a)
      if (geometry.out()[a] != p.out[a])
        throw std::runtime_error("the list and the geometry disagree about the output");
    if (p.verb == Verb::forward) plan.emplace(op, geometry, exec);
    if (p.verb == Verb::vjp) kept.emplace(cenote::linearize<T>(op, geometry, x, y, exec));
  }

  void run() override {
    switch (problem.verb) {
      case Verb::forward: return plan->forward(x.data(), y.data());
      case Verb::forward_resolved: return cenote::forward<T>(op, resolved(problem), x, y, exec);
      case Verb::winners:
        if constexpr (Op::selects) (void)cenote::forward_with_winners<T>(op, geometry, x, y, exec);
        return;
      case Verb::vjp: return kept->pull(gy, gx);
      case Verb::vjp_from_input: return cenote::vjp<T>(op, geometry, x, gy, gx, exec);
      case Verb::jvp: return cenote::forward_and_jvp<T>(op, geometry, x, dx, y, dy, exec);
      case Verb::forward_unplanned: return cenote::forward<T>(op, geometry, x, y, exec);
      case Verb::copy: return;
    }
  }
  [[nodiscard]] std::int64_t bytes_kept() const override {
    return kept ? static_cast<std::int64_t>(kept->bytes_kept()) : -1;
  }

 private:
  // A problem carries only the arrays of its verb; the others stand on one zero that is never written.
  static T* some(void* data) {
    static T zero{};
    return data != nullptr ? static_cast<T*>(data) : &zero;
  }
  View<T> in(void* data) const { return {some(data), geometry.in()}; }
  View<T> out(void* data) const { return {some(data), geometry.out()}; }
};

// Scalars without derivatives: the forward verbs.
template <class T, class Op>
struct Selecting final : Job {
  Op op;
  Problem problem;
  Geometry geometry;
  cenote::Execution exec;

  Selecting(const Op& which, const Problem& p)
      : op(which), problem(p), geometry(resolved(p)), exec{.threads = p.threads, .executor = nullptr} {}
  void run() override {
    const View<const T> x(static_cast<const T*>(problem.x), geometry.in());
    const View<T> y(static_cast<T*>(problem.y), geometry.out());
    if constexpr (Op::selects)
      if (problem.verb == Verb::winners) {
        (void)cenote::forward_with_winners<T>(op, geometry, x, y, exec);
        return;
      }
    cenote::forward<T>(op, geometry, x, y, exec);
  }
};

template <class T, class Op>
std::unique_ptr<Job> pooling(const Op& op, const Problem& p) {
  if (p.verb == Verb::winners && !Op::selects) throw std::runtime_error("the operator has no winners");
  if constexpr (cenote::DifferentiableOn<Op, T>) {
    return std::make_unique<Pooling<T, Op>>(op, p);
  } else if constexpr (cenote::OperatorOn<Op, T>) {
    if (p.verb != Verb::forward && p.verb != Verb::winners) throw std::runtime_error("integers have no derivatives");
    return std::make_unique<Selecting<T, Op>>(op, p);
  } else {
    throw std::runtime_error("the operator does not accept this type");
  }
}

template <class T>
std::unique_ptr<Job> pooling(const Problem& p) {
  switch (p.op) {
    case Operator::max: return pooling<T>(cenote::Max{}, p);
    case Operator::average: return pooling<T>(cenote::Average{}, p);
    case Operator::average_real: return pooling<T>(cenote::Average{.divisor = cenote::Divisor::real}, p);
    case Operator::smooth_max: return pooling<T>(cenote::SmoothMax{.beta = p.beta}, p);
  }
  throw std::runtime_error("unknown operator");
}

// ---- memcpy -----------------------------------------------------------------------------------------------------

// Copies copy_bytes from x to y, each thread its share. The threads start together and the last one counts; they do not
// wait for each other between calls, which would measure the waiting.
struct Copy final : Job {
  Problem problem;
  explicit Copy(const Problem& p) : problem(p) {}

  void part(int number) const {
    const auto count = static_cast<std::size_t>(problem.threads);
    const std::size_t step = (problem.copy_bytes / count + 63) / 64 * 64;
    const std::size_t begin = std::min(problem.copy_bytes, step * static_cast<std::size_t>(number));
    const std::size_t end =
        number + 1 == problem.threads ? problem.copy_bytes : std::min(problem.copy_bytes, begin + step);
    std::memcpy(static_cast<char*>(problem.y) + begin, static_cast<const char*>(problem.x) + begin, end - begin);
    asm volatile("" ::: "memory");  // every copy counts
  }
  void run() override {
    for (int i = 0; i < problem.threads; ++i) part(i);
  }
  double seconds(long calls) override {
    if (problem.threads == 1 || problem.copy_bytes < 65536) return Job::seconds(calls);
    std::atomic<int> ready{0};
    const auto work = [&](int number) {
      ready.fetch_add(1);
      while (ready.load() < problem.threads) std::this_thread::yield();
      for (long i = 0; i < calls; ++i) part(number);
    };
    std::vector<std::thread> others;
    for (int number = 1; number < problem.threads; ++number) others.emplace_back(work, number);
    while (ready.load() < problem.threads - 1) std::this_thread::yield();
    const auto start = std::chrono::steady_clock::now();
    work(0);
    for (std::thread& other : others) other.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

}  // namespace

std::unique_ptr<Job> make_job(const Problem& p) {
  if (p.verb == Verb::copy) return std::make_unique<Copy>(p);
  switch (p.type) {
    case Type::f32: return pooling<float>(p);
    case Type::f64: return pooling<double>(p);
    case Type::f16: return pooling<cenote::f16>(p);
    case Type::bf16: return pooling<cenote::bf16>(p);
    case Type::u8: return pooling<std::uint8_t>(p);
    case Type::i8: return pooling<std::int8_t>(p);
    case Type::i16: return pooling<std::int16_t>(p);
  }
  throw std::runtime_error("unknown type");
}

std::string version() { return std::string(CENOTE_VERSION) + ", " + cenote::target(); }

}  // namespace bench

CENOTE_BENCH_EXPORTS
