// Bytes of a file, a pipe or, in tests, of memory.
#pragma once

#include <span>

#include "files/array.hpp"

namespace cenote::cli {

class InputFile {
 public:
  explicit InputFile(const std::string& path);  // "-" is the standard input; FileError if it cannot be opened
  InputFile(std::span<const std::byte> memory, std::string name);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool seekable() const { return size_ >= 0; }
  [[nodiscard]] Index size() const { return size_; }  // -1 where nobody knows
  // The first bytes, at most as many as asked for; they are read again by `read`.
  std::span<const std::byte> peek(std::size_t bytes);
  // The next bytes; fewer only at the end.
  std::size_t read(void* to, std::size_t bytes);
  // Bytes at a place of a seekable file; fewer only at the end.
  std::size_t read_at(Index place, void* to, std::size_t bytes) const;
  // The whole of a seekable file in memory, mapped and not copied. Empty if that is impossible.
  std::span<const std::byte> map();
  void release(Index from, Index to) const;  // of what was mapped

 private:
  std::string name_;
  int fd_ = -1;
  bool owned_ = false;
  Index start_ = 0;  // of a file that was redirected after somebody had read a part
  Index size_ = -1;
  Index at_ = 0;
  std::vector<std::byte> peeked_;
  std::size_t peeked_used_ = 0;
  std::span<const std::byte> memory_;
  void* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
};

}  // namespace cenote::cli
