#include "files/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace cenote::cli {

namespace {

// The one named temporary file there may be, where a signal handler can reach it.
std::array<char, PATH_MAX> unfinished{};

void forget_unfinished() { unfinished[0] = '\0'; }
void remember_unfinished(const std::string& path) {
  if (path.size() < unfinished.size()) std::memcpy(unfinished.data(), path.c_str(), path.size() + 1);
}

extern "C" void remove_and_raise(int number) {
  if (unfinished[0] != '\0') ::unlink(unfinished.data());
  ::signal(number, SIG_DFL);
  ::raise(number);
}

extern "C" void say_that_it_shrank(int) {
  constexpr std::string_view text = "cenote: the input became shorter or unreadable while it was read\n";
  if (unfinished[0] != '\0') ::unlink(unfinished.data());
  [[maybe_unused]] const ssize_t said = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(1);
}

mode_t new_file_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

void clean_up_on_signals() {
  struct sigaction action {};
  action.sa_handler = remove_and_raise;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(number, &action, nullptr);
  action.sa_handler = say_that_it_shrank;
  ::sigaction(SIGBUS, &action, nullptr);
  ::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error like a full disk
}

void OutputFile::fail(const char* what) const { throw FileError(name_ + ": " + what + ": " + std::strerror(errno)); }

OutputFile::OutputFile(const std::string& path) : name_(path == "-" ? "standard output" : path), target_(path) {
  if (path.empty()) throw FileError("the output has no name; a file, or - for the standard output, is legal");
  if (path == "-") {
    fd_ = STDOUT_FILENO;
    direct_ = true;
    return;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw FileError(name_ + ": is a folder; the name of a file is legal");
  if (exists && !S_ISREG(status.st_mode)) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail("cannot be written");
    direct_ = true;
    return;
  }
  if (exists && ::access(path.c_str(), W_OK) != 0) fail("cannot be written");
  if (exists) {  // a link stays a link
    std::error_code ignored;
    const auto real = std::filesystem::canonical(path, ignored);
    if (!ignored) target_ = real.string();
  }
  const std::string folder = std::filesystem::path(target_).parent_path().string();
  const std::string in = folder.empty() ? "." : folder;
  const mode_t mode = exists ? status.st_mode & 07777 : new_file_mode();
  fd_ = ::open(in.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ < 0) {
    temporary_ = (std::filesystem::path(in) / ".cenote-XXXXXX").string();
    fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    if (fd_ < 0) {
      temporary_.clear();
      fail("cannot be written");
    }
    remember_unfinished(temporary_);
  }
  [[maybe_unused]] const int done = ::fchmod(fd_, mode);  // where a file system has no modes, that is how it is
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && fd_ != STDOUT_FILENO) ::close(fd_);
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    forget_unfinished();
  }
}

void OutputFile::reserve(Index bytes) {
  if (direct_ || bytes <= 0) return;
  // Not every file system can reserve; those that can say at once that there is no room.
  if (::fallocate(fd_, 0, 0, bytes) != 0 && (errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
    fail("cannot be written");
}

void OutputFile::write(const void* from, std::size_t bytes) {
  const auto* next = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t done = ::write(fd_, next, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("cannot be written");
    next += done;
    bytes -= static_cast<std::size_t>(done);
  }
}

std::size_t OutputFile::read(void* to, std::size_t bytes) const {
  const ssize_t done = ::read(fd_, to, bytes);
  return done < 0 ? 0 : static_cast<std::size_t>(done);
}

Index OutputFile::seek(Index offset, int whence) const { return ::lseek(fd_, offset, whence); }

void OutputFile::commit() {
  if (direct_) {
    if (fd_ != STDOUT_FILENO && ::close(std::exchange(fd_, -1)) != 0) fail("cannot be written");
    return;
  }
  if (temporary_.empty()) {
    const std::string self = "/proc/self/fd/" + std::to_string(fd_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be written");
      return;
    }
    // A link cannot replace a file, a renaming can: the file gets a passing name first.
    const auto folder = std::filesystem::path(target_).parent_path();
    for (int attempt = 0; temporary_.empty(); ++attempt) {
      const std::string name =
          (folder / (".cenote-" + std::to_string(::getpid()) + "-" + std::to_string(attempt))).string();
      remember_unfinished(name);
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
        temporary_ = name;
      else if (errno != EEXIST || attempt > 100)
        fail("cannot be written");
    }
  }
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be written");
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be written");
  temporary_.clear();
  forget_unfinished();
}

}  // namespace cenote::cli
