#include "terminal.hpp"

#include <unistd.h>

#include <array>
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
  constexpr std::size_t width = 30;
  std::string bar(width, '.');
  bar.replace(0, static_cast<std::size_t>(share * width), static_cast<std::size_t>(share * width), '#');
  std::fprintf(stderr, "\r\x1b[K[%s] %3.0f %%  %.1f GB/s  %.0f s left", bar.c_str(), 100 * share,
               share * bytes_ / elapsed / 1e9, share > 0 ? elapsed / share - elapsed : 0.0);
  std::fflush(stderr);
}

}  // namespace cenote::cli
