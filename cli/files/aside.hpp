// Files that are decoded and encoded on threads of their own while others work. Elements pass through a few blocks of
// memory; what goes wrong on the thread is thrown where the elements are asked for or handed in.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <thread>

#include "files/array.hpp"

namespace cenote::cli {

// Blocks of bytes from one thread to another, in order.
class Blocks {
 public:
  explicit Blocks(std::size_t bytes);
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // The giver: a block to fill, or null if nobody takes any; that it is filled; that none will follow, and why.
  std::byte* room();
  void filled(std::size_t bytes);
  void end(std::exception_ptr failure);

  // The taker: the next block, empty at the end; that it is used; that no more are taken, and why.
  std::span<const std::byte> next();
  void used();
  void leave(std::exception_ptr failure);

  void rethrow() const;  // for the giver, after the taker has gone; what `next` does for the taker

 private:
  struct Block {
    std::vector<std::byte> data;
    std::size_t filled = 0;
  };
  static constexpr std::size_t count = 4;
  std::size_t bytes_;
  std::array<Block, count> blocks_;
  std::size_t first_ = 0, full_ = 0;
  bool ended_ = false, left_ = false;
  std::exception_ptr failure_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
};

class ReadAhead final : public Source {
 public:
  ReadAhead(Source& source, Index memory);
  ~ReadAhead() override;
  [[nodiscard]] const Header& header() const override { return source_.header(); }
  void read(std::byte* to, Index elements) override;
  double finish();  // seconds that the thread worked; after the last element

 private:
  void work();

  Source& source_;
  Blocks blocks_;
  std::span<const std::byte> block_;
  std::size_t used_ = 0;
  double seconds_ = 0;
  std::thread thread_;
};

class WriteBehind final : public Sink {
 public:
  WriteBehind(Sink& sink, Element type, Index memory);
  ~WriteBehind() override;
  void write(const std::byte* from, Index elements) override;
  void finish() override;
  [[nodiscard]] double seconds() const { return seconds_; }  // that the thread worked; after `finish`

 private:
  void work();
  void hand_over();

  Sink& sink_;
  Index size_;
  Blocks blocks_;
  std::byte* block_ = nullptr;
  std::size_t filled_ = 0;
  double seconds_ = 0;
  std::thread thread_;
};

}  // namespace cenote::cli
