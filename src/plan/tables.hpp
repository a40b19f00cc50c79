// Memory of plans: tables of taps, and the pieces of the heap that a thread's plans use in turn.
#pragma once

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "plan/plan.hpp"

namespace cenote::plan {

// Pieces of the heap that a thread's plans use in turn.
struct alignas(16) Piece {  // its bytes follow it
  Piece* next;
  std::size_t bytes;
};
class SparePieces {
 public:
  SparePieces() = default;
  SparePieces(const SparePieces&) = delete;
  SparePieces& operator=(const SparePieces&) = delete;
  ~SparePieces() {
    while (first_ != nullptr) free(std::exchange(first_, first_->next));
    gone = true;
  }
  static void give(Piece* piece) {
    if (gone || piece->bytes > largest) return free(piece);
    piece->next = std::exchange(of_thread().first_, piece);
  }
  // The smallest that is large enough, so that what sufficed for a sequence of calls suffices for it again.
  static Piece* take(std::size_t bytes) {
    Piece** best = nullptr;
    if (!gone)
      for (Piece** at = &of_thread().first_; *at != nullptr; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (best == nullptr || (*at)->bytes < (*best)->bytes)) best = at;
    if (best != nullptr) return std::exchange(*best, (*best)->next);
    return allocate(bytes);
  }

 private:
  static SparePieces& of_thread() {
    thread_local SparePieces pieces;
    return pieces;
  }
  // Large pieces ask for huge pages: small ones would cost more to get than to fill.
  static Piece* allocate(std::size_t bytes) {
    const std::size_t all = sizeof(Piece) + bytes;
    if (bytes <= largest) return ::new (::operator new(all)) Piece{nullptr, bytes};
    void* memory = ::operator new(all, std::align_val_t{huge_page});
#ifdef __linux__
    (void)::madvise(memory, all, MADV_HUGEPAGE);
#endif
    return ::new (memory) Piece{nullptr, bytes};
  }
  static void free(Piece* piece) {
    if (piece->bytes <= largest)
      ::operator delete(piece);
    else
      ::operator delete(piece, std::align_val_t{huge_page});
  }

  static constexpr std::size_t largest = std::size_t{1} << 20;  // that is worth keeping
  static constexpr std::size_t huge_page = std::size_t{1} << 21;
  static inline thread_local bool gone = false;  // a thread's last plans may outlive its spare pieces
  Piece* first_ = nullptr;
};

// Memory for the tables of a plan: on the stack for small problems, otherwise pieces of the heap that the thread uses
// again, so that a call that has been made before allocates nothing.
class Tables {
 public:
  Tables() = default;
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;
  ~Tables() {
    while (pieces_ != nullptr) SparePieces::give(std::exchange(pieces_, pieces_->next));
  }

  Taps* taps(Index count) {
    if (used_ + count <= static_cast<Index>(near_.size())) {
      used_ += count;
      return near_.data() + used_ - count;
    }
    return array<Taps>(count);
  }
  double* numbers(Index count) { return array<double>(count); }

 private:
  template <class E>
  E* array(Index count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(E);
    Piece* piece = SparePieces::take(bytes);
    piece->next = std::exchange(pieces_, piece);
    E* first = reinterpret_cast<E*>(piece + 1);
    std::uninitialized_default_construct_n(first, count);  // whoever asked sets them
    return first;
  }

  std::array<Taps, 64> near_;  // only the entries handed out are set and read
  Index used_ = 0;
  Piece* pieces_ = nullptr;
};

}  // namespace cenote::plan
