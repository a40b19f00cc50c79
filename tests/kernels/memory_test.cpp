// Kernels touch the elements they are given and no other byte. Every tensor, and everything allocated during a call
// (the winners), lies between inaccessible pages: first with its end at one, then with its beginning at one. A read or
// write outside is a crash, and the handler below says which case it was.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "kernels/cases.hpp"
#include "kernels/memory.hpp"
#include "support/sanitizers.hpp"

namespace {

// While set, operator new hands out memory between inaccessible pages. The sanitizers guard the heap themselves.
constexpr bool own_heap = !cenote::test::address_sanitizer && !cenote::test::thread_sanitizer;
std::atomic<bool> guarding{false};
std::atomic<bool> at_end{true};

// Blocks of up to 64 KB, each in a slot of its own; larger ones come from malloc.
constexpr std::size_t page = 4096;
constexpr std::size_t room = 16 * page;
constexpr std::size_t slots = 4096;
struct Slots {
  std::mutex mutex;
  std::byte* base = nullptr;
  std::array<std::uint16_t, slots> free{};
  std::size_t count = 0;

  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    if (base == nullptr) {
      void* all = mmap(nullptr, slots * (room + page) + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (all == MAP_FAILED) return nullptr;
      base = static_cast<std::byte*>(all) + page;
      for (std::size_t i = 0; i < slots; ++i) {
        if (mprotect(base + i * (room + page), room, PROT_READ | PROT_WRITE) != 0) return nullptr;
        free[count++] = static_cast<std::uint16_t>(i);
      }
    }
    if (count == 0) return nullptr;
    std::byte* start = base + free[--count] * (room + page);
    // Flush with the end: whatever needs an alignment has a size that is a multiple of it.
    return at_end.load() ? start + (room - bytes) : start;
  }
  bool give_back(void* memory) {
    auto* place = static_cast<std::byte*>(memory);
    if (base == nullptr || place < base || place > base + slots * (room + page)) return false;
    const std::lock_guard lock(mutex);
    free[count++] = static_cast<std::uint16_t>(static_cast<std::size_t>(place - base) / (room + page));
    return true;
  }
};
Slots guarded;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (own_heap && guarding.load() && size > 0 && size <= room)
    if (void* memory = guarded.take(size)) return memory;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory != nullptr && !guarded.give_back(memory)) std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace cenote::agree {
namespace {

void say(const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); }

// Formatting in a signal handler is a risk worth taking: the process ends either way.
extern "C" void on_crash(int) {
  guarding = false;
  say("\noutside of the elements: ");
  if (current_case() != nullptr) say(describe(*current_case()).c_str());
  say("\n");
  _exit(1);
}

class Memory : public testing::TestWithParam<Placement> {
 protected:
  void SetUp() override {
    if (own_heap) {
      struct sigaction action {};
      action.sa_handler = on_crash;
      sigaction(SIGSEGV, &action, nullptr);
      sigaction(SIGBUS, &action, nullptr);
    }
    at_end = GetParam() == Placement::ends_at_guard;
  }

  void check(Case c) {
    if (HasFailure() || !is_due()) return;
    c.placement = GetParam();
    const std::string problem = disagreement(c);
    EXPECT_TRUE(problem.empty()) << problem;
  }
};

INSTANTIATE_TEST_SUITE_P(Guards, Memory, testing::Values(Placement::ends_at_guard, Placement::begins_at_guard),
                         [](const auto& placement) {
                           return placement.param == Placement::ends_at_guard ? "Behind" : "Before";
                         });

TEST_P(Memory, NothingOutsideIsTouchedAtAnyWidth) {
  const std::vector<Operator> few{Max{}, Average{}, SmoothMax{2}};
  std::uint64_t seed = 0;
  for (const Index width : {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 31, 32, 33, 40, 47, 63, 64, 65, 66, 70, 129}) {
    const std::vector<Resolved> geometries{
        try_resolve({2, width}, Sliding{.kernel = {2}, .stride = 1}),
        try_resolve({width}, Sliding{.kernel = {3}, .stride = 2, .padding = 1}),
        try_resolve({1, width}, Sliding{.kernel = {2}}),
        try_resolve({3, width}, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1}),
        try_resolve({4, width}, Sliding{.kernel = {2, 2}}),
        try_resolve({width}, Sliding{.kernel = {20}, .stride = 1}),
        try_resolve({3, 2, width}, Sliding{.kernel = {2, 2}, .stride = 1, .axes = {0, 1}}),
        try_resolve({3, 3, width}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1, .axes = {0, 1}}),
        try_resolve({width, 3}, Global{.last = 1}),
        try_resolve({2, width}, Global{.last = 1}),
        try_resolve({3, width}, Global{.axes = {0}}),
        try_resolve({2, width}, Adaptive{.output = {3}}),
    };
    for (const Resolved& resolved : geometries)
      for (const Type type : all_types)
        for (const Operator& op : few) {
          if (resolved.problem || !accepts(type, op)) continue;
          Case c{.type = type, .op = op, .geometry = resolved.geometry, .x = Values::ties, .seed = ++seed};
          c.threads = {seed % 8 == 0 ? 2 : 1};
          check(c);
        }
  }
}

TEST_P(Memory, NothingOutsideIsTouchedInAnyLayout) {
  Random random{7};
  CaseMaker maker(random, {.work = 4000});
  for (int i = 0; i < 3000; ++i) {
    auto c = maker.make();
    if (!c) continue;
    c->threads = {1};
    c->strided_threads = {1 + i % 3};
    check(*c);
  }
}

// The same, with the winners in guarded memory as well.
TEST_P(Memory, NothingOutsideTheWinnersIsTouched) {
  std::uint64_t seed = 0;
  for (Index width = 1; width <= 70; ++width)
    for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8, Type::i16, Type::i64}) {
      const std::vector<Resolved> geometries{
          try_resolve({width}, Sliding{.kernel = {3}, .stride = 1, .padding = 1}),
          try_resolve({3, width}, Sliding{.kernel = {2, 2}, .stride = 1}),
          try_resolve({3, 2, width}, Sliding{.kernel = {2, 2}, .stride = 1, .axes = {0, 1}}),
          try_resolve({width + 300}, Sliding{.kernel = {300}, .stride = 1}),
          try_resolve({300, width}, Global{.axes = {0}}),
      };
      for (const Resolved& resolved : geometries) {
        if (resolved.problem) continue;
        Case c{.type = type, .op = Max{}, .geometry = resolved.geometry, .x = Values::ties, .seed = ++seed};
        c.verbs = winners_verb | forward_with_winners_verb | (width % 7 == 0 ? linearize_verb : 0U);
        c.threads = {1};
        c.targets = {targets()[seed % targets().size()]};
        guarding = true;
        check(c);
        guarding = false;
      }
    }
}

}  // namespace
}  // namespace cenote::agree
