// Working memory of one task: one aligned piece per thread that grows to the largest request and is used again.
#pragma once

#include <cstddef>
#include <new>

#include "cenote/view.hpp"

namespace cenote::plan {

// Ask for all arrays first, then take them together.
class Scratch {
 public:
  template <class T>
  struct Array {
    Index offset;
  };

  template <class T>
  Array<T> Ask(Index count) {
    const Array<T> array{size_};
    size_ += (count * static_cast<Index>(sizeof(T)) + slack + alignment - 1) / alignment * alignment;
    return array;
  }
  void Take() { base_ = memory(size_); }
  template <class T>
  T* At(Array<T> array) const {
    return reinterpret_cast<T*>(base_ + array.offset);
  }

 private:
  static constexpr Index alignment = 64;
  static constexpr Index slack = 64;  // whole vectors may be read or written past the last element

  struct Piece {
    std::byte* data = nullptr;
    Index size = 0;
    ~Piece() { ::operator delete(data, std::align_val_t{alignment}); }
  };
  static std::byte* memory(Index bytes) {
    thread_local Piece piece;
    if (piece.size < bytes) {
      ::operator delete(piece.data, std::align_val_t{alignment});
      piece.data = nullptr;
      piece.size = 0;
      piece.data =
          static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), std::align_val_t{alignment}));
      piece.size = bytes;
    }
    return piece.data;
  }

  Index size_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace cenote::plan
