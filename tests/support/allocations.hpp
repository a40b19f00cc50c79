// Counting replacements of the global allocator. For one file of a program: it defines operator new.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace cenote::test {

inline std::atomic<std::size_t> allocations{0};

}  // namespace cenote::test

// The sanitizers see the malloc beneath. Inlined, g++ 12 takes them for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++cenote::test::allocations;
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++cenote::test::allocations;
  return std::malloc(size != 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++cenote::test::allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
