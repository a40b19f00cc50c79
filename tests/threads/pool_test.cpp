// The library's threads: every task runs exactly once, whoever calls, from wherever, on whichever threads.
#include "threads/pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

namespace cenote::test {
namespace {

using threads::parallel;

// Runs `tasks` tasks and says whether each ran once. The counters are no atomics: the end of the call must order them.
bool each_runs_once(Index tasks, const Execution& exec) {
  std::vector<int> runs(static_cast<std::size_t>(tasks));
  parallel(tasks, exec, [&](Index i) noexcept { ++runs[static_cast<std::size_t>(i)]; });
  return runs == std::vector<int>(runs.size(), 1);
}

void wait_a_little() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

// Waits, for a minute at most, until `ready` holds.
template <class Ready>
bool eventually(Ready ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!ready() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return ready();
}

// Each of two tasks waits for the other, which ends well only if two threads run them.
bool two_threads_meet() {
  std::atomic<int> here{0};
  std::atomic<bool> met{true};
  parallel(2, {.threads = 2}, [&](Index) noexcept {
    ++here;
    if (!eventually([&] { return here == 2; })) met = false;
  });
  return met;
}

TEST(Pool, RunsEveryTaskOnceForAnyNumberOfTasksAndThreads) {
  for (const int width : {0, 1, 2, 3, 4, 7, 16})
    for (const Index tasks : {0, 1, 2, 3, 15, 16, 17, 31, 100, 1000, 12345})
      for (int round = 0; round < 5; ++round)
        EXPECT_TRUE(each_runs_once(tasks, {.threads = width})) << tasks << " tasks on " << width << " threads";
}

TEST(Pool, RunsMoreTasksThanFitIn32Bits) {
  // Whole ranges at a time, as so many calls would take minutes.
  std::atomic<Index> sum{0};
  constexpr Index tasks = Index{1} << 40;
  const threads::detail::Range add = [](void* context, Index begin, Index end) noexcept {
    *static_cast<std::atomic<Index>*>(context) += end - begin;
  };
  threads::detail::run(tasks, {.threads = 3}, add, &sum);
  EXPECT_EQ(sum, tasks);
}

TEST(Pool, TakesMoreThreadsThanItStarts) { EXPECT_TRUE(each_runs_once(5000, {.threads = 100000})); }

TEST(Pool, RunsTasksOnSeveralThreadsAtOnce) { EXPECT_TRUE(two_threads_meet()); }

TEST(Pool, UsesNoMoreThreadsThanAskedFor) {
  each_runs_once(1000, {.threads = 8});  // so that there are more of them
  std::atomic<int> running{0}, most{0};
  for (int round = 0; round < 20; ++round)
    parallel(48, {.threads = 3}, [&](Index) noexcept {
      const int now = ++running;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {}
      wait_a_little();
      --running;
    });
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 3);
}

TEST(Pool, OneThreadMeansTheCallersOwn) {
  const std::thread::id me = std::this_thread::get_id();
  bool mine = true;
  parallel(100, {.threads = 1}, [&](Index) noexcept { mine = mine && std::this_thread::get_id() == me; });
  parallel(1, {.threads = 4}, [&](Index) noexcept { mine = mine && std::this_thread::get_id() == me; });
  EXPECT_TRUE(mine);
}

TEST(Pool, GivesAThreadNeighbouringTasks) {
  std::vector<std::thread::id> ran(1600);
  parallel(1600, {.threads = 2},
           [&](Index i) noexcept { ran[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  // The caller works from the front and the helper from the back.
  const auto changes = [&] {
    int count = 0;
    for (std::size_t i = 1; i < ran.size(); ++i) count += ran[i] != ran[i - 1] ? 1 : 0;
    return count;
  };
  EXPECT_LE(changes(), 1);
}

TEST(Pool, FinishesWhileAHelperIsLate) {
  // One helper sleeps in its task; the others and the caller run everything else.
  const std::thread::id me = std::this_thread::get_id();
  std::atomic<int> late{0};
  std::vector<int> runs(64);
  parallel(64, {.threads = 4}, [&](Index i) noexcept {
    if (std::this_thread::get_id() != me && late++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ++runs[static_cast<std::size_t>(i)];
  });
  EXPECT_EQ(runs, std::vector<int>(64, 1));
}

TEST(Pool, WakesAfterIdleness) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(each_runs_once(64, {.threads = 3}));
  }
}

TEST(Pool, NestedCallsRunOnTheThreadOfTheirTask) {
  std::vector<int> runs(32 * 32);
  std::atomic<bool> stayed{true};
  parallel(32, {.threads = 4}, [&](Index outer) noexcept {
    const std::thread::id me = std::this_thread::get_id();
    parallel(32, {.threads = 4}, [&](Index inner) noexcept {
      if (std::this_thread::get_id() != me) stayed = false;
      ++runs[static_cast<std::size_t>(32 * outer + inner)];
    });
  });
  EXPECT_EQ(runs, std::vector<int>(32 * 32, 1));
  EXPECT_TRUE(stayed);
}

TEST(Pool, ServesSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 300; ++round)
        if (!each_runs_once(10 + 13 * caller + round % 7, {.threads = 2 + caller % 3})) ++wrong;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, AllocatesNothingOnceItsThreadsExist) {
  std::atomic<Index> sum{0};
  const auto call = [&] { parallel(100, {.threads = 4}, [&](Index i) noexcept { sum += i; }); };
  // All three helpers must have come to life, which is their own allocation.
  std::atomic<int> here{0};
  parallel(4, {.threads = 4}, [&](Index) noexcept {
    ++here;
    eventually([&] { return here == 4; });
  });
  const std::size_t before = allocations;
  for (int round = 0; round < 100; ++round) call();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(sum, 100 * 4950);
}

// Two threads of its own per call, which also counts what it was asked for.
class TwoThreads : public Executor {
 public:
  void run(Index tasks, Task task, void* context) override {
    asked.push_back(tasks);
    std::atomic<Index> next{0};
    const auto work = [&] {
      const std::thread::id me = std::this_thread::get_id();
      for (Index i = next++; i < tasks; i = next++) task(context, i);
      const std::lock_guard lock(mutex);
      used.insert(me);
    };
    std::thread one(work), two(work);
    one.join();
    two.join();
  }
  std::mutex mutex;
  std::vector<Index> asked;
  std::set<std::thread::id> used;
};

TEST(OwnExecutor, RunsEveryTaskAndNoneElsewhere) {
  TwoThreads mine;
  std::mutex mutex;
  std::set<std::thread::id> ran;
  std::vector<int> runs(1000);
  parallel(1000, {.executor = &mine}, [&](Index i) noexcept {
    ++runs[static_cast<std::size_t>(i)];
    const std::lock_guard lock(mutex);
    ran.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(runs, std::vector<int>(1000, 1));
  EXPECT_EQ(mine.asked, std::vector<Index>{1000});
  for (const std::thread::id id : ran) EXPECT_TRUE(mine.used.contains(id));
}

TEST(OwnExecutor, GetsNoMoreTasksAtOnceThanThreadsAreAskedFor) {
  TwoThreads mine;
  for (const int width : {2, 3, 5}) EXPECT_TRUE(each_runs_once(1000, {.threads = width, .executor = &mine}));
  EXPECT_TRUE(each_runs_once(3, {.threads = 5, .executor = &mine}));
  EXPECT_EQ(mine.asked, (std::vector<Index>{2, 3, 5, 3}));
}

TEST(OwnExecutor, IsNotAskedForOneTaskForOneThreadOrInsideATask) {
  TwoThreads mine;
  EXPECT_TRUE(each_runs_once(1, {.executor = &mine}));
  EXPECT_TRUE(each_runs_once(9, {.threads = 1, .executor = &mine}));
  EXPECT_TRUE(mine.asked.empty());
  std::atomic<int> inner{0};
  parallel(4, {.executor = &mine}, [&](Index) noexcept {
    parallel(5, {.executor = &mine}, [&](Index) noexcept { ++inner; });
    parallel(5, {.threads = 3}, [&](Index) noexcept { ++inner; });
  });
  EXPECT_EQ(inner, 40);
  EXPECT_EQ(mine.asked, std::vector<Index>{4});
}

#ifndef CENOTE_TEST_THREAD_SANITIZER  // it does not support threads in a forked child

// Forks, and says whether the child could do `work` within a minute.
template <class Work>
bool child_can(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a deadlock ends by signal
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Fork, TheChildHasThreadsOfItsOwn) {
  ASSERT_TRUE(two_threads_meet());
  EXPECT_TRUE(child_can([] { return each_runs_once(1000, {.threads = 4}) && two_threads_meet(); }));
  EXPECT_TRUE(each_runs_once(1000, {.threads = 4}));
}

TEST(Fork, TheChildOfABusyProcessDoesNotWaitForTheParentsWork) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) parallel(8, {.threads = 3}, [](Index) noexcept { wait_a_little(); });
  });
  for (int round = 0; round < 5; ++round)
    EXPECT_TRUE(child_can([] { return each_runs_once(100, {.threads = 3}) && two_threads_meet(); }));
  stop = true;
  other.join();
}

TEST(Fork, TheChildCanEndWithTheDestructorsOfEverythingStatic) {
  ASSERT_TRUE(two_threads_meet());
  EXPECT_TRUE(child_can([] {
    const bool met = two_threads_meet();
    std::exit(met ? 0 : 1);
    return false;
  }));
}

#endif

TEST(NumThreads, E1_ANegativeNumberIsRefused) {
  const int before = num_threads();
  try {
    set_num_threads(-3);
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_STREQ(error.what(),
                 "set_num_threads: threads is -3; it must be at least 0, where 0 leaves the number to the library");
    EXPECT_EQ(error.rule, Rule::threads_nonnegative);
    EXPECT_EQ(error.got, -3);
  }
  EXPECT_EQ(num_threads(), before);
  EXPECT_THROW(threads::check({.threads = -1}, "max_pool"), ParameterError);
  EXPECT_NO_THROW(threads::check({.threads = 0}, "max_pool"));
}

TEST(NumThreads, IsSetAndReset) {
  const int initial = num_threads();
  EXPECT_GE(initial, 1);
  set_num_threads(5);
  EXPECT_EQ(num_threads(), 5);
  set_num_threads(0);
  EXPECT_EQ(num_threads(), initial);
}

TEST(NumThreads, OneMeansThatCallsStayOnTheirThread) {
  set_num_threads(1);
  const std::thread::id me = std::this_thread::get_id();
  bool mine = true;
  parallel(100, {}, [&](Index) noexcept { mine = mine && std::this_thread::get_id() == me; });
  set_num_threads(0);
  EXPECT_TRUE(mine);
}

TEST(NumThreads, TheEnvironmentCountsIfItIsAPositiveInteger) {
  EXPECT_EQ(threads::parse_threads("3"), 3);
  EXPECT_EQ(threads::parse_threads("128"), 128);
  for (const char* const text : {"", "0", "-2", "+2", "two", "2x", " 2", "2 ", "2.5", "1e3", "99999999999"})
    EXPECT_EQ(threads::parse_threads(text), 0) << text;
  EXPECT_EQ(threads::parse_threads(nullptr), 0);
}

// What a process of its own, with CENOTE_THREADS as given and on one core, says of num_threads().
int threads_of_new_process(const char* environment, bool one_core) {
  const pid_t child = fork();
  if (child == 0) {
    if (environment != nullptr) {
      setenv("CENOTE_THREADS", environment, 1);
    } else {
      unsetenv("CENOTE_THREADS");
    }
    if (one_core) {
      cpu_set_t set;
      sched_getaffinity(0, sizeof set, &set);
      std::size_t first = 0;
      while (!CPU_ISSET(first, &set)) ++first;
      CPU_ZERO(&set);
      CPU_SET(first, &set);
      sched_setaffinity(0, sizeof set, &set);
    }
    setenv("CENOTE_TEST_TELL", "1", 1);
    execl("/proc/self/exe", "pool_test", nullptr);
    _exit(255);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Such a process ends here, before it comes to any test.
const bool told = [] {
  if (std::getenv("CENOTE_TEST_TELL") != nullptr) _exit(num_threads());
  return false;
}();

TEST(NumThreads, StartsFromTheEnvironmentOrTheCoresOfTheProcess) {
  ASSERT_FALSE(told);
  EXPECT_EQ(threads_of_new_process("7", false), 7);
  EXPECT_EQ(threads_of_new_process("7", true), 7);
  EXPECT_EQ(threads_of_new_process("many", true), 1);
  EXPECT_EQ(threads_of_new_process(nullptr, true), 1);
}

}  // namespace
}  // namespace cenote::test
