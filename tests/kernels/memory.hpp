// Tensors in memory of every shape: strided, offset, and between inaccessible pages.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "kernels/agree.hpp"

namespace cenote::agree {

// Bytes at a given place. Guarded blocks come from a pool of mappings with an inaccessible page at either end.
class Block {
 public:
  Block(std::size_t bytes, Placement placement) : bytes_(bytes) {
    if (placement == Placement::heap) {
      heap_ = std::make_unique<std::byte[]>(bytes);
      data_ = heap_.get();
      return;
    }
    arena_ = take(bytes);
    data_ = placement == Placement::begins_at_guard ? arena_.begin : arena_.begin + (arena_.bytes - bytes);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (arena_.begin != nullptr) pool().push_back(arena_);
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  struct Arena {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };
  static std::vector<Arena>& pool() {
    static std::vector<Arena> arenas;
    return arenas;
  }
  static Arena take(std::size_t bytes) {
    for (Arena& arena : pool()) {
      if (arena.bytes < bytes) continue;
      const Arena found = arena;
      arena = pool().back();
      pool().pop_back();
      return found;
    }
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (std::max<std::size_t>(bytes, 1 << 16) + page - 1) / page * page;
    void* start = mmap(nullptr, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* begin = static_cast<std::byte*>(start) + page;
    if (start == MAP_FAILED || mprotect(begin, room, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    return {begin, room};
  }

  std::size_t bytes_;
  std::byte* data_ = nullptr;
  std::unique_ptr<std::byte[]> heap_;
  Arena arena_{};
};

// Strides of a layout, and the lowest and highest element that they reach.
struct Extent {
  Dims strides{};
  Index low = 0, high = -1;
};
inline Extent extent(const Dims& dims, const Layout& layout) {
  Extent out{Dims::filled(dims.rank, 0)};
  const bool empty = volume(dims) == 0;
  Index run = layout.step;
  for (int i = dims.rank - 1; i >= 0; --i) {
    const int a = layout.order.rank == dims.rank ? static_cast<int>(layout.order[i]) : i;
    if ((layout.repeated >> a & 1U) != 0) continue;
    out.strides[a] = (layout.reversed >> a & 1U) != 0 ? -run : run;
    if (!empty) (out.strides[a] < 0 ? out.low : out.high) += out.strides[a] * (dims[a] - 1);
    run = run * std::max<Index>(dims[a], 1) + layout.gap;
  }
  if (!empty) ++out.high;
  return out;
}

// A tensor in its own memory. Whatever is not an element holds `filler`, and so do the elements of a new tensor.
template <class T>
class Buffer {
 public:
  Buffer(const Dims& dims, const Layout& layout, Placement placement, unsigned char filler)
      : filler_(filler), extent_(extent(dims, layout)), front_(placement == Placement::heap ? layout.offset : 0),
        block_(static_cast<std::size_t>(extent_.high - extent_.low + 1 + 2 * front_) * sizeof(T), placement),
        view_(reinterpret_cast<T*>(block_.data()) + front_ - extent_.low, dims, extent_.strides) {
    if (block_.size() > 0) std::memset(block_.data(), filler, block_.size());
  }
  [[nodiscard]] const View<T>& view() const { return view_; }
  [[nodiscard]] const Block& block() const { return block_; }

  [[nodiscard]] std::vector<T> elements() const {
    std::vector<T> out;
    out.reserve(static_cast<std::size_t>(view_.size()));
    for_each_index(view_.dims(), [&](const Dims& index) { out.push_back(view_[index]); });
    return out;
  }
  // No byte between the elements has changed.
  [[nodiscard]] bool gaps_are_untouched() const {
    std::vector<bool> element(block_.size() / sizeof(T));
    if (static_cast<Index>(element.size()) == view_.size()) return true;
    for_each_index(view_.dims(), [&](const Dims& index) {
      element[static_cast<std::size_t>(&view_[index] - reinterpret_cast<T*>(block_.data()))] = true;
    });
    for (std::size_t i = 0; i < block_.size(); ++i)
      if (!element[i / sizeof(T)] && block_.data()[i] != std::byte{filler_}) return false;
    return true;
  }

 private:
  unsigned char filler_;
  Extent extent_;
  Index front_;
  Block block_;
  View<T> view_;
};

}  // namespace cenote::agree
