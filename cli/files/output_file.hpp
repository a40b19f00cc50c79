// A file that appears whole or not at all: its bytes go to a file without a name in the same folder, which gets its
// name when everything has been written. Devices, pipes and the standard output are written as they are.
#pragma once

#include "files/array.hpp"

namespace cenote::cli {

class OutputFile {
 public:
  explicit OutputFile(const std::string& path);  // "-" is the standard output; FileError if it cannot be made
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // without commit: leaves nothing behind

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool seekable() const { return !direct_; }
  void reserve(Index bytes);  // says early if the disk is too small
  void write(const void* from, std::size_t bytes);
  // For formats that come back to their beginning; of seekable files only.
  [[nodiscard]] std::size_t read(void* to, std::size_t bytes) const;
  [[nodiscard]] Index seek(Index offset, int whence) const;
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string name_;       // for messages
  std::string target_;     // where it goes, links followed
  std::string temporary_;  // its name until then, where the file system knows no files without one
  int fd_ = -1;
  bool direct_ = false;
};

// Removes what an interrupted program would leave, on SIGINT, SIGTERM and SIGHUP, and then lets the signal do what it
// does. A file that shrinks while it is mapped ends the program with one line instead of a core dump.
void clean_up_on_signals();

}  // namespace cenote::cli
