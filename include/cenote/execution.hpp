// How the compiled library runs: on how many threads, on whose threads, and with which instructions. None of it changes
// a result: see section 5 of docs/semantics.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cenote/view.hpp"

namespace cenote {

// Someone else's threads. `run` calls task(context, i) once for every i in 0 .. tasks-1, in any order, on any threads,
// and returns when all calls have returned. Tasks do not throw. It may be called from several threads, and from inside
// a task.
class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;
  using Task = void (*)(void* context, Index index);
  virtual void run(Index tasks, Task task, void* context) = 0;
};

// Where one call runs.
struct Execution {
  int threads = 0;               // at most this many; 0 stands for num_threads()
  Executor* executor = nullptr;  // null stands for the library's own threads
};

// How many threads a call uses that does not say: CENOTE_THREADS from the environment, or one per core.
int num_threads();
void set_num_threads(int threads);  // 0 returns to the initial number; negative numbers throw ParameterError

// The instruction set in use ("avx3", "avx2", "sse4", "neon", ...), and those that this machine has, best first.
std::string target();
std::vector<std::string> targets();
// Lets kernels use `name` at most; an empty name lifts the limit. The environment variable CENOTE_TARGET does the same
// at start. Throws ParameterError for a name that is not among targets(). Not for use while other threads compute.
void limit_target(std::string_view name);

}  // namespace cenote
