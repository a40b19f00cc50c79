// Memory that is not set to anything first; elements of every type may lie in it.
#pragma once

#include <cstddef>
#include <memory>

#include "cenote/view.hpp"

namespace cenote::cli {

class Buffer {
 public:
  std::byte* at_least(Index bytes) {
    if (bytes > size_) {
      data_.reset();
      data_.reset(new std::byte[static_cast<std::size_t>(bytes)]);  // NOLINT: make_unique would clear it
      size_ = bytes;
    }
    return data_.get();
  }
  [[nodiscard]] std::byte* get() const { return data_.get(); }

 private:
  std::unique_ptr<std::byte[]> data_;  // NOLINT(modernize-avoid-c-arrays)
  Index size_ = 0;
};

}  // namespace cenote::cli
