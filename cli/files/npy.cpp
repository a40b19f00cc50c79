#include "files/npy.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace cenote::cli {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_header = std::size_t{1} << 16;  // NumPy's own limit is lower

// What a header says, before it is believed.
struct Description {
  std::string descr;
  std::optional<bool> fortran;
  std::optional<Dims> shape;
};

// The header's dictionary. Only what np.save writes is understood; everything else is an error with its place.
class Parser {
 public:
  Parser(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  Description run() {
    Description out;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        if (next() == '[') fail("descr is a list of fields; one number per element is legal");
        out.descr = string();
      } else if (key == "fortran_order") {
        out.fortran = boolean();
      } else if (key == "shape") {
        out.shape = shape();
      } else {
        fail("has the key '" + key + "'; descr, fortran_order and shape are legal");
      }
      if (!take(',') && next() != '}') fail("has no comma between its entries");
    }
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\0')) ++at_;
    if (at_ != text_.size()) fail("goes on after its end");
    if (out.descr.empty() || !out.fortran || !out.shape) fail("needs descr, fortran_order and shape");
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FileError(file_ + ": the NPY header " + what); }
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("has no '") + c + "' at byte " + std::to_string(at_));
  }
  std::string string() {
    const char quote = next();
    if (quote != '\'' && quote != '"') fail("has no quoted text at byte " + std::to_string(at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("has a text without an end");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    for (char& c : out)
      if (static_cast<unsigned char>(c) < 32) c = '?';  // it may be printed
    return out;
  }
  bool boolean() {
    (void)next();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("has a fortran_order that is neither True nor False");
  }
  Dims shape() {
    Dims out;
    expect('(');
    while (!take(')')) {
      (void)next();
      Index size = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error == std::errc::result_out_of_range) fail("has a size in shape that leaves 64 bits");
      if (error != std::errc{}) fail("has something in shape that is no number, at byte " + std::to_string(at_));
      if (size < 0) fail("has the size " + std::to_string(size) + " in shape; it must be at least 0");
      at_ = static_cast<std::size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long numbers so
      if (out.rank == max_rank) fail("has more than " + std::to_string(max_rank) + " axes in shape");
      out.push_back(size);
      if (!take(',') && next() != ')') fail("has no comma between the sizes of shape");
    }
    return out;
  }

  const std::string& file_;
  std::string_view text_;
  std::size_t at_ = 0;
};

struct NpyType {
  Element element;
  bool swapped;
  bool truth = false;
};

NpyType type_of(const std::string& file, const std::string& descr, const ReadOptions& options) {
  const auto illegal = [&](const std::string& why) {
    return FileError(file + ": the elements are '" + descr + "'" + why +
                     "; legal are b1, i1 to i8, u1 to u8, f2, f4 and f8" + ", and V2 together with --dtype bf16");
  };
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string code = order == '<' || order == '>' || order == '|' || order == '=' ? descr.substr(1) : descr;
  const char mine = std::endian::native == std::endian::little ? '<' : '>';
  const auto found = [&](Element element) {
    return NpyType{element, size_of(element) > 1 && (order == '<' || order == '>') && order != mine};
  };
  if (code.starts_with('O')) throw illegal(" (Python objects, which are never loaded)");
  if (code == "b1") return {Element::u8, false, true};
  if (code == "V2") {
    if (!options.raw_pairs_are_bf16) throw illegal(" (two raw bytes; bfloat16 is saved so)");
    return found(Element::bf16);
  }
  constexpr std::array<std::pair<std::string_view, Element>, 11> codes{{{"f8", Element::f64},
                                                                        {"f4", Element::f32},
                                                                        {"f2", Element::f16},
                                                                        {"i1", Element::i8},
                                                                        {"i2", Element::i16},
                                                                        {"i4", Element::i32},
                                                                        {"i8", Element::i64},
                                                                        {"u1", Element::u8},
                                                                        {"u2", Element::u16},
                                                                        {"u4", Element::u32},
                                                                        {"u8", Element::u64}}};
  for (const auto& [name, element] : codes)
    if (code == name) return found(element);
  throw illegal("");
}

std::string descr_of(Element element) {
  if (element == Element::bf16) return std::string(std::endian::native == std::endian::little ? "<" : ">") + "V2";
  const std::string kind = is_unsigned(element) ? "u" : is_integer(element) ? "i" : "f";
  const std::string order = size_of(element) == 1 ? "|" : std::endian::native == std::endian::little ? "<" : ">";
  return order + kind + std::to_string(size_of(element));
}

void reverse_bytes(std::byte* data, Index elements, Index size) {
  for (Index i = 0; i < elements; ++i, data += size) std::reverse(data, data + size);
}

class NpySource final : public Source {
 public:
  NpySource(std::unique_ptr<InputFile> file, const ReadOptions& options) : file_(std::move(file)) {
    const std::string& name = file_->name();
    std::array<unsigned char, 12> start{};
    const auto need = [&](void* to, std::size_t bytes) {
      if (file_->read(to, bytes) < bytes) throw FileError(name + ": ends inside the NPY header");
    };
    need(start.data(), 10);
    std::size_t length = start[8] + std::size_t{256} * start[9];
    data_at_ = 10;
    if (start[6] < 1 || start[6] > 3)
      throw FileError(name + ": NPY version " + std::to_string(start[6]) + "." + std::to_string(start[7]) +
                      "; 1.0, 2.0 and 3.0 are legal");
    if (start[6] > 1) {
      need(start.data() + 10, 2);
      length += (std::size_t{start[10]} << 16) + (std::size_t{start[11]} << 24);
      data_at_ = 12;
    }
    if (length > most_header)
      throw FileError(name + ": the NPY header says it has " + std::to_string(length) + " bytes; at most " +
                      std::to_string(most_header) + " are legal");
    std::string text(length, '\0');
    need(text.data(), length);
    data_at_ += static_cast<Index>(length);

    const Description described = Parser(name, text).run();
    const NpyType type = type_of(name, described.descr, options);
    header_.type = type.element;
    header_.truth = type.truth;
    swapped_ = type.swapped;
    header_.fortran = *described.fortran && described.shape->rank > 1;
    header_.dims = *described.shape;
    Index bytes = 0;
    if (size_problem(header_.dims, "shape") || __builtin_mul_overflow(header_.elements(), size(), &bytes))
      throw FileError(name + ": the shape " + to_string(header_.dims) + " has more elements than 64 bits count");
    if (file_->seekable() && file_->size() - data_at_ < bytes)
      throw FileError(name + ": announces " + std::to_string(bytes) + " bytes of data for the shape " +
                      to_string(header_.dims) + ", and has " + std::to_string(file_->size() - data_at_));
    left_ = header_.elements();
    const auto mapped = file_->map();
    if (swapped_ || mapped.empty()) return;
    const std::byte* data = mapped.data() + data_at_;
    if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(size()) == 0) in_place_ = data;
  }

  [[nodiscard]] const Header& header() const override { return header_; }
  [[nodiscard]] const std::byte* in_place() const override { return in_place_; }
  void read_at(Index element, std::byte* to, Index elements) const override {
    const auto bytes = static_cast<std::size_t>(elements * size());
    if (file_->read_at(data_at_ + element * size(), to, bytes) < bytes)
      throw FileError(file_->name() + ": became shorter while it was read");
  }
  void release(Index from, Index to) const override { file_->release(data_at_ + from, data_at_ + to); }

  void read(std::byte* to, Index elements) override {
    const auto bytes = static_cast<std::size_t>(elements * size());
    if (file_->read(to, bytes) < bytes)
      throw FileError(file_->name() + ": ends with " + std::to_string(left_) + " of " +
                      std::to_string(header_.elements()) + " elements still to come");
    left_ -= elements;
    if (swapped_) reverse_bytes(to, elements, size());
  }

 private:
  [[nodiscard]] Index size() const { return size_of(header_.type); }

  std::unique_ptr<InputFile> file_;
  Header header_;
  bool swapped_ = false;
  Index data_at_ = 0, left_ = 0;
  const std::byte* in_place_ = nullptr;
};

class NpySink final : public Sink {
 public:
  NpySink(std::unique_ptr<OutputFile> file, const Header& header)
      : file_(std::move(file)), size_(size_of(header.type)) {
    std::string shape;
    for (const Index size : header.dims) shape += std::to_string(size) + ", ";
    if (header.dims.rank > 1) shape.resize(shape.size() - 2);
    if (header.dims.rank == 1) shape.resize(shape.size() - 1);
    std::string text = "{'descr': '" + (header.truth ? "|b1" : descr_of(header.type)) +
                       "', 'fortran_order': " + (header.fortran ? "True" : "False") + ", 'shape': (" + shape + "), }";
    const std::size_t start = magic.size() + 4;
    text.append(63 - (start + text.size()) % 64, ' ').push_back('\n');
    std::string begin(magic);
    begin += {'\1', '\0', static_cast<char>(text.size() % 256), static_cast<char>(text.size() / 256)};
    begin += text;
    file_->reserve(static_cast<Index>(begin.size()) + header.elements() * size_);
    file_->write(begin.data(), begin.size());
  }
  void write(const std::byte* from, Index elements) override {
    file_->write(from, static_cast<std::size_t>(elements * size_));
  }
  void finish() override { file_->commit(); }

 private:
  std::unique_ptr<OutputFile> file_;
  Index size_;
};

}  // namespace

bool is_npy(std::span<const std::byte> beginning) {
  return beginning.size() >= magic.size() && std::memcmp(beginning.data(), magic.data(), magic.size()) == 0;
}

std::unique_ptr<Source> read_npy(std::unique_ptr<InputFile> file, const ReadOptions& options) {
  return std::make_unique<NpySource>(std::move(file), options);
}

std::unique_ptr<Sink> write_npy(std::unique_ptr<OutputFile> file, const Header& header) {
  return std::make_unique<NpySink>(std::move(file), header);
}

}  // namespace cenote::cli
