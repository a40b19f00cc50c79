// Pages of mapped files count as memory of the program that looked at them. What is read from one end to the other is
// given back as it is done with; windows that reach across a whole file need more than that.
#pragma once

#include <condition_variable>
#include <thread>

#include "files/array.hpp"

namespace cenote::cli {

// While it lives, a thread gives mapped pages back whenever the program comes near its limit. Who still looks at them
// gets them from the system's cache again: results are the same, and no page is read from a disk twice for it.
class PageWatch {
 public:
  PageWatch(const Source& source, Index memory);
  PageWatch(const PageWatch&) = delete;
  PageWatch& operator=(const PageWatch&) = delete;
  ~PageWatch();

 private:
  void watch();

  const Source& source_;
  Index memory_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace cenote::cli
