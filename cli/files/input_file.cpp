#include "files/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cenote::cli {

std::string bytes_in_words(Index bytes) {
  constexpr std::array units{"bytes", "KB", "MB", "GB", "TB", "PB", "EB"};
  double number = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (number >= 1024 && unit + 1 < units.size()) {
    number /= 1024;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || number >= 100 ? "%.0f %s" : "%.1f %s", number, units[unit]);
  return text.data();
}

void check_memory(const std::string& file, std::string_view what, Index needed, Index memory) {
  if (needed <= memory) return;
  throw FileError(file + ": " + std::string(what) + " takes " + bytes_in_words(needed) + ", and --memory allows " +
                  bytes_in_words(memory));
}

InputFile::InputFile(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  if (path.empty()) throw FileError("the input has no name; a file, or - for the standard input, is legal");
  fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw FileError(name_ + ": cannot be opened: " + std::strerror(errno));
  owned_ = path != "-";
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw FileError(name_ + ": " + std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw FileError(name_ + ": is a folder; a file is legal");
  if (S_ISREG(status.st_mode)) {
    start_ = std::max<Index>(::lseek(fd_, 0, SEEK_CUR), 0);
    size_ = std::max<Index>(status.st_size - start_, 0);
  }
}

InputFile::InputFile(std::span<const std::byte> memory, std::string name)
    : name_(std::move(name)), size_(static_cast<Index>(memory.size())), memory_(memory) {}

InputFile::~InputFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_size_);
  if (owned_) ::close(fd_);
}

std::span<const std::byte> InputFile::peek(std::size_t bytes) {
  if (peeked_.empty()) {
    peeked_.resize(bytes);
    if (seekable()) {
      peeked_.resize(read_at(0, peeked_.data(), bytes));
      peeked_used_ = peeked_.size();  // `read` starts from the beginning all the same
    } else {
      peeked_used_ = peeked_.size();
      peeked_.resize(read(peeked_.data(), bytes));
      peeked_used_ = 0;
      at_ = 0;
    }
  }
  return peeked_;
}

std::size_t InputFile::read(void* to, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  std::size_t done = std::min(bytes, peeked_.size() - peeked_used_);
  if (done > 0) std::memcpy(out, peeked_.data() + peeked_used_, done);
  peeked_used_ += done;
  if (seekable()) {
    done += read_at(at_ + static_cast<Index>(done), out + done, bytes - done);
  } else {
    while (done < bytes) {
      const ssize_t got = ::read(fd_, out + done, bytes - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw FileError(name_ + ": cannot be read: " + std::strerror(errno));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
  }
  at_ += static_cast<Index>(done);
  return done;
}

std::size_t InputFile::read_at(Index place, void* to, std::size_t bytes) const {
  if (place < 0 || place >= size_) return 0;
  bytes = std::min(bytes, static_cast<std::size_t>(size_ - place));
  auto* out = static_cast<std::byte*>(to);
  if (fd_ < 0) {
    if (bytes > 0) std::memcpy(out, memory_.data() + place, bytes);
    return bytes;
  }
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd_, out + done, bytes - done, start_ + place + static_cast<Index>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError(name_ + ": cannot be read: " + std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::span<const std::byte> InputFile::map() {
  if (fd_ < 0 || !seekable() || size_ == 0) return memory_;
  if (mapping_ == nullptr) {
    const auto bytes = static_cast<std::size_t>(start_ + size_);
    void* mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
    if (mapping == MAP_FAILED) return {};
    mapping_ = mapping;
    mapping_size_ = bytes;
    ::madvise(mapping_, mapping_size_, MADV_SEQUENTIAL);
    memory_ = {static_cast<const std::byte*>(mapping_) + start_, static_cast<std::size_t>(size_)};
  }
  return memory_;
}

void InputFile::release(Index from, Index to) const {
  if (mapping_ == nullptr) return;
  const Index page = ::sysconf(_SC_PAGESIZE);
  const Index begin = (from + start_ + page - 1) / page * page;
  const Index end = (to + start_) / page * page;
  if (begin < end)
    ::madvise(static_cast<std::byte*>(mapping_) + begin, static_cast<std::size_t>(end - begin), MADV_DONTNEED);
}

}  // namespace cenote::cli
