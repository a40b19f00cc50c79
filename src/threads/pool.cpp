#include "threads/pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif
#if __has_include(<pthread.h>)
#include <pthread.h>
#define CENOTE_HAS_FORK 1
#endif

namespace cenote::threads {
namespace {

// Long enough to catch the next operator of a network, short enough not to be felt by whoever shares the core.
constexpr std::chrono::microseconds spin_time{30};
// The work that a thread is late by at the end is one chunk: an eighth of its share.
constexpr Index chunks_per_thread = 8;

thread_local bool inside_task = false;

struct InsideTask {
  bool before = inside_task;
  InsideTask() { inside_task = true; }
  InsideTask(const InsideTask&) = delete;
  InsideTask& operator=(const InsideTask&) = delete;
  ~InsideTask() { inside_task = before; }
};

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits a little for `ready`; false when the time is over.
template <class Ready>
bool spin_until(Ready ready) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// What nobody has claimed yet of a job, in one word, so that a claim is one compare-and-swap: the chunks
// front .. back-1, and how many helpers may take part. The caller claims from the front and the helpers from the back,
// so that the same thread meets the same data again in the next call. A claim takes half of an even share of what is
// left: few claims, for each costs about 50 ns when cores compete, and small ones at the end, where they balance.
struct Open {
  std::uint64_t front, back, helpers;

  static constexpr Index most_chunks = 0xffff;

  [[nodiscard]] std::uint64_t share() const { return std::max<std::uint64_t>(1, (back - front) / (2 * (helpers + 1))); }
  [[nodiscard]] bool invites(Index helper) const {
    return front != back && static_cast<std::uint64_t>(helper) < helpers;
  }

  static Open from(std::uint64_t word) { return {word & 0xffff, word >> 16 & 0xffff, word >> 32}; }
  [[nodiscard]] std::uint64_t word() const { return front | back << 16 | helpers << 32; }
};
static_assert(most_threads * chunks_per_thread <= Open::most_chunks);

struct Job {
  detail::Range range = nullptr;
  void* context = nullptr;
  Index tasks = 0, chunks = 0;

  // Where chunk c begins; the first ones are larger by one if the tasks do not divide evenly.
  [[nodiscard]] Index begin(Index c) const { return c * (tasks / chunks) + std::min(c, tasks % chunks); }
  void run_chunks(Index first, Index count) const noexcept { range(context, begin(first), begin(first + count)); }
};

// Chunks that nobody else will run; none if count is 0.
struct Claim {
  Index first = 0, count = 0;
};

Claim claim_front(std::atomic<std::uint64_t>& chunks) {
  std::uint64_t word = chunks.load(std::memory_order_relaxed);
  for (;;) {
    Open open = Open::from(word);
    if (open.front == open.back) return {};
    const Claim claim{static_cast<Index>(open.front), static_cast<Index>(open.share())};
    open.front += open.share();
    if (chunks.compare_exchange_weak(word, open.word(), std::memory_order_relaxed)) return claim;
  }
}

Claim claim_back(std::atomic<std::uint64_t>& chunks, Index helper) {
  std::uint64_t word = chunks.load(std::memory_order_relaxed);
  for (;;) {
    Open open = Open::from(word);
    if (!open.invites(helper)) return {};
    const auto count = static_cast<Index>(open.share());
    open.back -= open.share();
    if (chunks.compare_exchange_weak(word, open.word(), std::memory_order_acquire, std::memory_order_relaxed))
      return {static_cast<Index>(open.back), count};
  }
}

// One job at a time. `job_` is written while nothing is open and read only by those who hold a claim, which the caller
// waits for: a helper that comes late finds nothing open and touches nothing else.
class Pool {
 public:
  // False if the pool is taken; then nothing was run.
  bool run(const Job& wanted, int threads) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    const int helpers = start(threads - 1);
    job_ = wanted;
    const int chunks = static_cast<int>(wanted.chunks);
    unfinished_.store(chunks, std::memory_order_relaxed);
    const Open all{0, static_cast<std::uint64_t>(chunks), static_cast<std::uint64_t>(helpers)};
    open_.store(all.word());  // sequentially consistent, as `sleeping` is: see sleep()
    wake_below(-1);

    int mine = 0;
    {
      const InsideTask mark;
      for (Claim got = claim_front(open_); got.count != 0; got = claim_front(open_)) {
        job_.run_chunks(got.first, got.count);
        mine += static_cast<int>(got.count);
      }
    }
    int left = unfinished_.fetch_sub(mine, std::memory_order_acq_rel) - mine;
    const auto finished = [&] { return (left = unfinished_.load(std::memory_order_acquire)) == 0; };
    // Whoever holds the last claim may have lost its core, perhaps to this thread: spin a little, then sleep.
    if (left != 0 && !spin_until(finished))
      while (!finished()) unfinished_.wait(left, std::memory_order_acquire);
    busy_.store(false, std::memory_order_release);
    return true;
  }

  // Ends the threads and keeps the pool taken for ever, so that whoever still calls runs alone.
  void close() {
    while (busy_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    stop_.store(true);
    for (int h = 0; h < started_; ++h) wake(h);
    for (int h = 0; h < started_; ++h) helper(h).thread->join();
  }

 private:
  struct alignas(64) Helper {
    std::atomic<int> sleeping{0};
    std::optional<std::thread> thread;
  };

  Helper& helper(int h) { return helpers_[static_cast<std::size_t>(h)]; }

  // Makes sure of `wanted` helpers if the system lets it, and returns how many of them there are.
  int start(int wanted) {
    for (; started_ < wanted; ++started_) {
      try {
        helper(started_).thread.emplace([this, h = started_] { help(h); });
      } catch (const std::system_error&) {  // no more threads to be had: those that exist and the caller suffice
        break;
      }
    }
    return std::min(started_, wanted);
  }

  void help(int h) {
    const InsideTask mark;
    const auto called = [&] {
      return Open::from(open_.load(std::memory_order_relaxed)).invites(h) || stop_.load(std::memory_order_relaxed);
    };
    while (!stop_.load(std::memory_order_relaxed)) {
      int mine = 0;
      for (Claim got = claim_back(open_, h); got.count != 0; got = claim_back(open_, h)) {
        if (mine == 0) wake_below(h);
        job_.run_chunks(got.first, got.count);
        mine += static_cast<int>(got.count);
      }
      if (mine != 0 && unfinished_.fetch_sub(mine, std::memory_order_acq_rel) == mine) unfinished_.notify_one();
      if (!spin_until(called)) sleep(h);
    }
  }

  // Either the helper sees the work that is being opened, or the one who opens it sees the helper sleeping.
  void sleep(int h) {
    std::atomic<int>& sleeping = helper(h).sleeping;
    sleeping.store(1);
    if (Open::from(open_.load()).invites(h) || stop_.load()) {
      sleeping.store(0);
      return;
    }
    sleeping.wait(1);
  }

  void wake(int h) {
    std::atomic<int>& sleeping = helper(h).sleeping;
    if (sleeping.load() != 0 && sleeping.exchange(0) != 0) sleeping.notify_one();
  }

  // Waking is slow, so everyone who comes wakes two others: helper h those numbered 2h+2 and 2h+3, the caller 0 and 1.
  void wake_below(int h) {
    const Open open = Open::from(open_.load());
    for (int child = 2 * h + 2; child <= 2 * h + 3; ++child)
      if (open.invites(child)) wake(child);
  }

  alignas(64) std::atomic<std::uint64_t> open_{0};
  std::atomic<bool> stop_{false};  // here, as spinning helpers look at both
  alignas(64) std::atomic<int> unfinished_{0};
  alignas(64) std::atomic<bool> busy_{false};
  Job job_;
  int started_ = 0;  // by whoever has the pool
  std::array<Helper, most_threads - 1> helpers_;
};

// No constructor to wait for and no destructor that could run while threads look at it.
union Storage {
  Pool pool;
  constexpr Storage() : pool() {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() {}  // NOLINT(modernize-use-equals-default): that would destroy nothing, but be deleted
};
constinit Storage storage;

// The pool's ends: that of the process, and fork(), after which the child has none of the threads that its copy of the
// pool speaks of and starts with a new one.
struct Lifetime {
  Lifetime() {
#if defined(CENOTE_HAS_FORK)
    pthread_atfork(nullptr, nullptr, [] { ::new (static_cast<void*>(&storage.pool)) Pool; });
#endif
  }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
  ~Lifetime() {
    if (!inside_task) storage.pool.close();  // a task that ends the process cannot wait for itself
  }
};
const Lifetime lifetime;

// Someone else's threads, of which at most `workers` are used: each claims chunks until none is left.
void run_on(Executor& executor, const Job& job, Index workers) {
  struct Call {
    const Job& job;
    std::atomic<std::uint64_t> open;
  } call{job, Open{0, static_cast<std::uint64_t>(job.chunks), static_cast<std::uint64_t>(workers - 1)}.word()};
  executor.run(
      workers,
      [](void* context, Index worker) {
        Call& shared = *static_cast<Call*>(context);
        const InsideTask mark;
        const auto claim = [&] { return worker == 0 ? claim_front(shared.open) : claim_back(shared.open, worker - 1); };
        for (Claim got = claim(); got.count != 0; got = claim()) shared.job.run_chunks(got.first, got.count);
      },
      &call);
}

int usable_cores() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  // What this process may use, which in a container is often less than the machine has.
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

constinit std::atomic<int> chosen_threads{0};   // by set_num_threads; 0: none
constinit std::atomic<int> initial_threads{0};  // 0: not asked for yet

}  // namespace

int parse_threads(const char* text) {
  if (text == nullptr) return 0;
  const char* end = text + std::strlen(text);
  int threads = 0;
  const auto [rest, error] = std::from_chars(text, end, threads);
  return error == std::errc{} && rest == end && threads > 0 ? threads : 0;
}

void detail::run(Index tasks, const Execution& exec, Range range, void* context) {
  const auto job = [&](Index threads) {
    return Job{range, context, tasks, std::min(tasks, threads * chunks_per_thread)};
  };
  if (!inside_task) {
    if (exec.executor != nullptr) {
      // Without a number the executor knows best how many threads it has: there is a worker for every task.
      if (exec.threads <= 0) {
        const Index workers = std::min(tasks, Open::most_chunks);
        return run_on(*exec.executor, Job{range, context, tasks, workers}, workers);
      }
      const int workers = std::min(exec.threads, most_threads);
      return run_on(*exec.executor, job(workers), std::min<Index>(tasks, workers));
    }
    const int most = std::min(exec.threads > 0 ? exec.threads : num_threads(), most_threads);
    const int threads = static_cast<int>(std::min<Index>(tasks, most));
    if (threads > 1 && storage.pool.run(job(threads), threads)) return;
  }
  range(context, 0, tasks);
}

}  // namespace cenote::threads

namespace cenote {

int num_threads() {
  if (const int chosen = threads::chosen_threads.load(std::memory_order_relaxed)) return chosen;
  int initial = threads::initial_threads.load(std::memory_order_relaxed);
  if (initial == 0) {
    initial = threads::parse_threads(std::getenv("CENOTE_THREADS"));
    if (initial == 0) initial = threads::usable_cores();
    threads::initial_threads.store(initial, std::memory_order_relaxed);
  }
  return initial;
}

void set_num_threads(int threads) {
  threads::check({.threads = threads}, "set_num_threads");
  threads::chosen_threads.store(threads, std::memory_order_relaxed);
}

}  // namespace cenote
