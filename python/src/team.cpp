#include "team.hpp"

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#endif

#include <atomic>

namespace cenote::python {
namespace {

// What compilers call for `#pragma omp parallel`; LLVM's and Intel's OpenMP have it as well as GNU's.
using Parallel = void (*)(void (*region)(void*), void* data, unsigned threads, unsigned flags);

class Team final : public Executor {
 public:
  explicit Team(Parallel parallel) : parallel_(parallel) {}
  void run(Index tasks, Task task, void* context) override {
    struct Region {
      Index tasks;
      Task task;
      void* context;
      std::atomic<Index> next{0};
    } region{tasks, task, context};
    const auto body = [](void* data) {  // once on each thread of the team, which may be smaller than asked for
      Region& shared = *static_cast<Region*>(data);
      for (Index i = shared.next++; i < shared.tasks; i = shared.next++) shared.task(shared.context, i);
    };
    parallel_(body, &region, static_cast<unsigned>(tasks), 0);
  }

 private:
  Parallel parallel_;
};

constinit std::atomic<Executor*> found{nullptr};

}  // namespace

bool find_team() {
#if defined(__linux__)
  if (auto* parallel = reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"))) {
    static Team only(parallel);
    static const int forks = pthread_atfork(nullptr, nullptr, [] { found = nullptr; });
    if (forks == 0) found = &only;
  }
#endif
  return found != nullptr;
}

Executor* team() { return found.load(std::memory_order_relaxed); }

}  // namespace cenote::python
