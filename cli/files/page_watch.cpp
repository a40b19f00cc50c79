#include "files/page_watch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace cenote::cli {

namespace {

constexpr auto pause = std::chrono::microseconds(200);  // in which a core looks at a megabyte

// The bytes that the program has in memory, as the system counts them; 0 if it does not say.
class Resident {
 public:
  Resident() : fd_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;
  ~Resident() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] Index bytes() const {
    std::array<char, 128> text{};
    if (fd_ < 0 || ::pread(fd_, text.data(), text.size() - 1, 0) <= 0) return 0;
    const char* second = std::strchr(text.data(), ' ');  // after the size of the address space
    return second == nullptr ? 0 : std::strtoll(second, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
  }

 private:
  int fd_;
};

}  // namespace

PageWatch::PageWatch(const Source& source, Index memory)
    : source_(source), memory_(memory), thread_([this] { watch(); }) {}

PageWatch::~PageWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void PageWatch::watch() {
  const Resident resident;
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, pause, [this] { return ended_; }))
    if (resident.bytes() > memory_ / 2)
      source_.release(0, source_.header().elements() * size_of(source_.header().type));
}

}  // namespace cenote::cli
