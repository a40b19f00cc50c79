// The threads of one call: `parallel` splits work over the library's own threads or over the caller's executor.
// What a task computes is not known here.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>

#include "cenote/error.hpp"
#include "cenote/execution.hpp"

namespace cenote::threads {

// The pool starts no more threads than this, whatever a call asks for.
inline constexpr int most_threads = 256;

// The value of CENOTE_THREADS as a number; 0 for a missing text and for anything but a positive integer.
int parse_threads(const char* text);

// Throws ParameterError if `exec` cannot be obeyed. For entry points; `parallel` takes what it gets.
inline void check(const Execution& exec, std::string_view caller) {
  if (exec.threads < 0) raise({.rule = Rule::threads_nonnegative, .argument = "threads", .got = exec.threads}, caller);
}

namespace detail {

using Range = void (*)(void* context, Index begin, Index end) noexcept;

void run(Index tasks, const Execution& exec, Range range, void* context);

}  // namespace detail

// Calls body(i) once for every i in 0 .. tasks-1 and returns when all calls have returned; what they wrote is then
// visible to the caller. A thread gets runs of neighbouring tasks. Everything runs on the calling thread if there is
// one task, if one thread is asked for, inside a task, and while another caller has the pool. Allocates only when it
// starts threads, which it does at the first call that asks for them.
template <class F>
void parallel(Index tasks, const Execution& exec, F&& body) {
  static_assert(std::is_nothrow_invocable_v<F&, Index>, "a task has nobody to throw to; declare body noexcept");
  using Body = std::remove_reference_t<F>;
  if (tasks <= 1 || exec.threads == 1) {
    for (Index i = 0; i < tasks; ++i) body(i);
    return;
  }
  const auto range = [](void* context, Index begin, Index end) noexcept {
    Body& each = *static_cast<Body*>(context);
    for (Index i = begin; i < end; ++i) each(i);
  };
  using Plain = std::remove_const_t<Body>;
  detail::run(tasks, exec, range, const_cast<Plain*>(std::addressof(body)));
}

}  // namespace cenote::threads
