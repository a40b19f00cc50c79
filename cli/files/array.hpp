// Arrays in files, whatever the format: a header, and elements that come or go one after another in the order in which
// they are stored. Nothing here knows a format.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cenote/view.hpp"
#include "files/element.hpp"

namespace cenote::cli {

// A file that cannot be read or written, or that says something impossible: exit code 1.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a picture carries besides its pixels, and what must survive pooling for it to look the same.
struct PictureTags {
  std::vector<unsigned char> icc;  // colour profile
  double gamma = 0;                // 0: not said
  int srgb_intent = -1;            // -1: not said
  int orientation = 0;             // as TIFF numbers it; 0: not said
  bool inks = false;               // channels are cyan, magenta, yellow and black
  bool associated_alpha = false;   // colours were multiplied by alpha
};

enum class Format : std::uint8_t { npy, png, tiff };

struct Header {
  Format format = Format::npy;  // that it came from
  Element type = Element::f32;
  Dims dims{};
  bool truth = false;     // the elements are truth values in u8: 0 or 1
  bool fortran = false;   // the first axis varies fastest
  bool picture = false;   // [pages,] rows, columns[, channels]
  bool channels = false;  // the last axis holds channels, which are not pooled
  PictureTags tags{};

  [[nodiscard]] Index elements() const { return volume(dims); }
  // Axes that an operator pools if nobody says which: those of space.
  [[nodiscard]] int spatial() const { return dims.rank - (channels ? 1 : 0); }
};

// Elements that come in the order in which they are stored, in this machine's byte order.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  [[nodiscard]] virtual const Header& header() const = 0;
  virtual void read(std::byte* to, Index elements) = 0;  // the next ones; FileError if they are not there
  // All elements where they lie, ready to be used, or null if they have to be read. Such a source can also be read at
  // any place; `release` says that a range of bytes is not needed for now.
  [[nodiscard]] virtual const std::byte* in_place() const { return nullptr; }
  virtual void read_at(Index element, std::byte* to, Index elements) const { (void)element, (void)to, (void)elements; }
  virtual void release(Index from, Index to) const { (void)from, (void)to; }
};

// Takes elements in the order in which they are stored. Nothing is there for others to see before `finish`, and nothing
// ever if it is not called.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;
  virtual void write(const std::byte* from, Index elements) = 0;
  virtual void finish() = 0;
};

// How much memory a reader or a writer may take for one row, one strip or one picture, and what a file is said to hold
// where it cannot say so itself.
struct ReadOptions {
  Index memory = Index{256} << 20;
  bool raw_pairs_are_bf16 = false;  // NPY has no name for bfloat16; two raw bytes stand for it
};

// A number of bytes for people: "1.5 GB".
std::string bytes_in_words(Index bytes);

// Fails with the file's name if a reader would need more than it may have.
void check_memory(const std::string& file, std::string_view what, Index needed, Index memory);

}  // namespace cenote::cli
