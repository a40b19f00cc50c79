#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cenote::cli {

bool wants_colour(const std::string& choice, int fd) {
  if (choice != "auto") return choice == "always";
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  return ::isatty(fd) == 1 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

int columns_of(int fd) {
  constexpr int usual = 80;
  if (::isatty(fd) != 1) return 0;
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

std::string duration_in_words(double seconds) {
  const long whole = std::lround(seconds);
  std::array<char, 48> text{};
  if (whole < 60)
    std::snprintf(text.data(), text.size(), "%ld s", whole);
  else if (whole < 3600)
    std::snprintf(text.data(), text.size(), "%ld min %ld s", whole / 60, whole % 60);
  else
    std::snprintf(text.data(), text.size(), "%ld h %ld min", whole / 3600, whole / 60 % 60);
  return text.data();
}

Progress::Progress(bool wanted, Index bytes)
    : shown_(wanted && ::isatty(STDERR_FILENO) == 1), bytes_(static_cast<double>(bytes)),
      start_(std::chrono::steady_clock::now()), last_(start_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::at(double share) {
  constexpr double first_after = 0.4;  // seconds
  constexpr double then_every = 0.1;
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  if (elapsed < first_after || std::chrono::duration<double>(now - last_).count() < then_every) return;
  last_ = now;
  drawn_ = true;
  // What a narrow terminal has no room for is left out: first the bar, then the end of the line.
  constexpr std::size_t widest = 30, narrowest = 8;
  std::array<char, 96> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%3.0f %%  %.1f GB/s  %s left", 100 * share,
                share * bytes_ / elapsed / 1e9, duration_in_words(share > 0 ? elapsed / share - elapsed : 0).c_str());
  std::string line = numbers.data();
  const auto room = static_cast<std::size_t>(columns_of(STDERR_FILENO) - 1);
  if (line.size() + narrowest + 3 <= room) {
    std::string bar(std::min(widest, room - line.size() - 3), '.');
    const auto done = static_cast<std::size_t>(share * static_cast<double>(bar.size()));
    bar.replace(0, done, done, '#');
    line.insert(0, "[" + bar + "] ");
  }
  std::fprintf(stderr, "\r\x1b[K%s", line.substr(0, room).c_str());
  std::fflush(stderr);
}

}  // namespace cenote::cli
