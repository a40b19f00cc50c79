// What only people at a terminal see: colour, and how far a long task has come.
#pragma once

#include <chrono>
#include <string>

#include "cenote/error.hpp"

namespace cenote::cli {

// Whether to write colours to a stream: "always", "never", or "auto", where a terminal has them unless NO_COLOR is set.
bool wants_colour(const std::string& choice, int fd);

// Characters in a line of a terminal; 0 where a stream is none.
int columns_of(int fd);

// "40 s", "3 min 20 s", "2 h 5 min".
std::string duration_in_words(double seconds);

// A bar on stderr: nothing unless that is a terminal, and nothing for tasks that are over at once.
class Progress {
 public:
  Progress(bool wanted, Index bytes);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // wipes the bar
  void at(double share);

 private:
  using Time = std::chrono::steady_clock::time_point;
  bool shown_;
  bool drawn_ = false;
  double bytes_;
  Time start_, last_;
};

}  // namespace cenote::cli
