#include "files/aside.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "files/clock.hpp"

namespace cenote::cli {

namespace {

// A small part of what may be taken, and no more than is of use; whole elements of every type.
std::size_t block_bytes(Index memory) {
  return static_cast<std::size_t>(std::clamp<Index>(memory / 64, 64, 1 << 17)) / 64 * 64;
}

}  // namespace

Blocks::Blocks(std::size_t bytes) : bytes_(bytes) {}

std::byte* Blocks::room() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return full_ < count || left_; });
  if (left_) return nullptr;
  Block& block = blocks_[(first_ + full_) % count];
  block.data.resize(bytes_);
  return block.data.data();
}

void Blocks::filled(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  blocks_[(first_ + full_) % count].filled = bytes;
  ++full_;
  changed_.notify_all();
}

void Blocks::end(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (failure) failure_ = std::move(failure);
  changed_.notify_all();
}

std::span<const std::byte> Blocks::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return full_ > 0 || ended_; });
  if (full_ == 0 && failure_) std::rethrow_exception(failure_);
  if (full_ == 0) return {};
  const Block& block = blocks_[first_];
  return {block.data.data(), block.filled};
}

void Blocks::used() {
  const std::lock_guard lock(mutex_);
  first_ = (first_ + 1) % count;
  --full_;
  changed_.notify_all();
}

void Blocks::leave(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  left_ = true;
  if (failure) failure_ = std::move(failure);
  changed_.notify_all();
}

void Blocks::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

ReadAhead::ReadAhead(Source& source, Index memory)
    : source_(source), blocks_(block_bytes(memory)), thread_([this] { work(); }) {}

ReadAhead::~ReadAhead() {
  blocks_.leave(nullptr);
  if (thread_.joinable()) thread_.join();
}

void ReadAhead::work() {
  try {
    const Index size = size_of(header().type);
    Index left = header().elements();
    Clock clock;
    while (left > 0) {
      std::byte* to = blocks_.room();
      if (to == nullptr) return;
      (void)clock.lap();
      const Index part = std::min(left, static_cast<Index>(blocks_.bytes()) / size);
      source_.read(to, part);
      seconds_ += clock.lap();
      blocks_.filled(static_cast<std::size_t>(part * size));
      left -= part;
    }
    blocks_.end(nullptr);
  } catch (...) {
    blocks_.end(std::current_exception());
  }
}

void ReadAhead::read(std::byte* to, Index elements) {
  auto bytes = static_cast<std::size_t>(elements * size_of(header().type));
  while (bytes > 0) {
    if (used_ == block_.size()) {
      if (!block_.empty()) blocks_.used();
      block_ = {};  // should the next line throw
      used_ = 0;
      block_ = blocks_.next();
      if (block_.empty()) throw std::logic_error("more elements were asked for than the file has");
    }
    const std::size_t part = std::min(bytes, block_.size() - used_);
    std::memcpy(to, block_.data() + used_, part);
    to += part;
    bytes -= part;
    used_ += part;
  }
}

double ReadAhead::finish() {
  if (thread_.joinable()) thread_.join();
  return seconds_;
}

WriteBehind::WriteBehind(Sink& sink, Element type, Index memory)
    : sink_(sink), size_(size_of(type)), blocks_(block_bytes(memory)), thread_([this] { work(); }) {}

WriteBehind::~WriteBehind() {
  blocks_.end(nullptr);
  if (thread_.joinable()) thread_.join();
}

void WriteBehind::work() {
  try {
    for (auto block = blocks_.next(); !block.empty(); block = blocks_.next()) {
      Clock clock;
      sink_.write(block.data(), static_cast<Index>(block.size()) / size_);
      seconds_ += clock.lap();
      blocks_.used();
    }
  } catch (...) {
    blocks_.leave(std::current_exception());
  }
}

void WriteBehind::write(const std::byte* from, Index elements) {
  auto bytes = static_cast<std::size_t>(elements * size_);
  while (bytes > 0) {
    if (block_ == nullptr) block_ = blocks_.room();
    if (block_ == nullptr) blocks_.rethrow();
    const std::size_t part = std::min(bytes, blocks_.bytes() - filled_);
    std::memcpy(block_ + filled_, from, part);
    from += part;
    bytes -= part;
    filled_ += part;
    if (filled_ == blocks_.bytes()) hand_over();
  }
}

void WriteBehind::hand_over() {
  blocks_.filled(filled_);
  block_ = nullptr;
  filled_ = 0;
}

void WriteBehind::finish() {
  if (filled_ > 0) hand_over();
  blocks_.end(nullptr);
  thread_.join();
  blocks_.rethrow();
  Clock clock;
  sink_.finish();
  seconds_ += clock.lap();
}

}  // namespace cenote::cli
