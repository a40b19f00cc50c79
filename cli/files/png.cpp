#include "files/png.hpp"

#include <png.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "files/picture_shape.hpp"

namespace cenote::cli {

namespace {

constexpr png_alloc_size_t most_chunk = 8 << 20;  // of a colour profile; text is not kept at all

// libpng leaves by longjmp. What it jumps over must have no destructors: calls to it stand alone in short lambdas, and
// `guarded` turns the jump into an exception.
class Png {
 public:
  Png(std::string name, bool reads) : name_(std::move(name)), reads_(reads) {
    png_ = reads ? png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning)
                 : png_create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      destroy();
      throw std::bad_alloc();
    }
  }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
  ~Png() { destroy(); }

  template <class F>
  void guarded(F&& call) {
    if (setjmp(png_jmpbuf(png_)) != 0) {  // NOLINT(cert-err52-cpp): the library's only way out
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      throw FileError(name_ + ": " + message_.data());
    }
    call();
  }
  // For the callbacks: an exception may not pass through libpng either.
  template <class F>
  static void carried(png_structp png, F&& work) {
    Png& self = *static_cast<Png*>(png_get_error_ptr(png));
    bool failed = false;
    try {
      work();
    } catch (...) {
      self.failure_ = std::current_exception();
      failed = true;
    }
    if (failed) png_longjmp(png, 1);
  }

  [[nodiscard]] png_structp png() const { return png_; }
  [[nodiscard]] png_infop info() const { return info_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  static void on_error(png_structp png, png_const_charp text) {
    Png& self = *static_cast<Png*>(png_get_error_ptr(png));
    std::snprintf(self.message_.data(), self.message_.size(), "PNG: %s", text);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  void destroy() {
    if (reads_)
      png_destroy_read_struct(&png_, &info_, nullptr);
    else
      png_destroy_write_struct(&png_, &info_);
  }

  std::string name_;
  bool reads_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 160> message_{};
  std::exception_ptr failure_;
};

class PngSource final : public Source {
 public:
  PngSource(std::unique_ptr<InputFile> file, const ReadOptions& options)
      : file_(std::move(file)), png_(file_->name(), true) {
    png_structp png = png_.png();
    png_infop info = png_.info();
    png_.guarded([&] {
      png_set_read_fn(png, file_.get(), on_read);
      png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_set_chunk_malloc_max(png, most_chunk);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
      png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);  // or hardly a mutation would get past the sums
#endif
      png_read_info(png, info);
      png_set_expand(png);  // palettes, fewer than 8 bits, and a transparent colour
      if (std::endian::native == std::endian::little) png_set_swap(png);
      passes_ = png_set_interlace_handling(png);
    });
    // Before libpng makes its buffers: a row may be announced as 16 GB long.
    const auto rows = static_cast<Index>(png_get_image_height(png, info));
    const Index widest = static_cast<Index>(png_get_image_width(png, info)) * 8;
    check_memory(file_->name(), "reading rows of this PNG", 4 * widest, options.memory);
    if (passes_ > 1)
      check_memory(file_->name(), "an interlaced PNG, which is read as a whole,", rows * widest, options.memory);
    png_.guarded([&] { png_read_update_info(png, info); });
    header_.type = png_get_bit_depth(png, info) == 16 ? Element::u16 : Element::u8;
    header_.dims = {rows, static_cast<Index>(png_get_image_width(png, info))};
    const Index channels = png_get_channels(png, info);
    if (channels > 1) header_.dims.push_back(channels);
    header_.format = Format::png;
    header_.picture = true;
    header_.channels = channels > 1;
    row_.resize(png_get_rowbytes(png, info) * static_cast<std::size_t>(passes_ > 1 ? rows : 1));
    row_used_ = row_.size();
    read_tags();
  }

  [[nodiscard]] const Header& header() const override { return header_; }

  void read(std::byte* to, Index elements) override {
    auto bytes = static_cast<std::size_t>(elements * size_of(header_.type));
    while (bytes > 0) {
      if (row_used_ == row_.size()) next();
      const std::size_t part = std::min(bytes, row_.size() - row_used_);
      std::memcpy(to, row_.data() + row_used_, part);
      to += part;
      bytes -= part;
      row_used_ += part;
    }
    if (row_used_ == row_.size() && rows_read_ == header_.dims[0] && !std::exchange(ended_, true))
      png_.guarded([&] { png_read_end(png_.png(), nullptr); });  // says if the end is missing
  }

 private:
  static void on_read(png_structp png, png_bytep to, size_t bytes) {
    bool short_read = false;
    Png::carried(png, [&] { short_read = static_cast<InputFile*>(png_get_io_ptr(png))->read(to, bytes) < bytes; });
    if (short_read) png_error(png, "the file ends too early");
  }

  // The next row, or all of them where rows arrive interlaced.
  void next() {
    const bool whole = passes_ > 1;
    const std::size_t stride = whole ? row_.size() / static_cast<std::size_t>(header_.dims[0]) : row_.size();
    const Index rows = whole ? header_.dims[0] : 1;
    auto* first = reinterpret_cast<png_bytep>(row_.data());
    png_structp png = png_.png();
    const int passes = passes_;
    png_.guarded([=] {
      for (int pass = 0; pass < passes; ++pass)
        for (Index r = 0; r < rows; ++r) png_read_row(png, first + static_cast<std::size_t>(r) * stride, nullptr);
    });
    rows_read_ += rows;
    row_used_ = 0;
  }

  void read_tags() {
    png_structp png = png_.png();
    png_infop info = png_.info();
    PictureTags& tags = header_.tags;
    (void)png_get_gAMA(png, info, &tags.gamma);
    (void)png_get_sRGB(png, info, &tags.srgb_intent);
    png_charp name = nullptr;
    png_bytep profile = nullptr;
    png_uint_32 length = 0;
    int method = 0;
    if (png_get_iCCP(png, info, &name, &method, &profile, &length) != 0) tags.icc.assign(profile, profile + length);
  }

  std::unique_ptr<InputFile> file_;
  Png png_;
  Header header_;
  int passes_ = 1;
  std::vector<std::byte> row_;
  std::size_t row_used_ = 0;
  Index rows_read_ = 0;
  bool ended_ = false;
};

class PngSink final : public Sink {
 public:
  PngSink(std::unique_ptr<OutputFile> file, const Header& header)
      : file_(std::move(file)), size_(size_of(header.type)), png_(file_->name(), false) {
    const std::string& name = file_->name();
    const PictureShape shape = picture_shape(name, "PNG", header);
    if (header.type != Element::u8 && header.type != Element::u16)
      throw FileError(name + ": PNG holds u8 and u16, and the result is " + std::string(name_of(header.type)) +
                      "; --dtype u8 or --dtype u16 rounds and clamps it");
    if (header.tags.inks && shape.channels > 3) throw FileError(name + ": PNG has no CMYK; TIFF and NPY are legal");
    if (shape.pages != 1 || shape.channels > 4)
      throw FileError(name + ": PNG holds one picture of 1 to 4 channels, and the result is " + to_string(header.dims));
    if (shape.rows < 1 || shape.columns < 1 || shape.rows > PNG_UINT_31_MAX || shape.columns > PNG_UINT_31_MAX)
      throw FileError(name + ": PNG holds 1 to 2147483647 rows and columns, and the result is " +
                      to_string(header.dims));
    constexpr std::array colours{PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
    row_.resize(static_cast<std::size_t>(shape.columns * shape.channels * size_));
    const PictureTags& tags = header.tags;
    png_structp png = png_.png();
    png_infop info = png_.info();
    png_.guarded([&] {
      png_set_write_fn(png, file_.get(), on_write, on_flush);
      png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_set_IHDR(png, info, static_cast<png_uint_32>(shape.columns), static_cast<png_uint_32>(shape.rows),
                   static_cast<int>(8 * size_), colours[static_cast<std::size_t>(shape.channels - 1)],
                   PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
      if (!tags.icc.empty())
        png_set_iCCP(png, info, "icc", PNG_COMPRESSION_TYPE_BASE, tags.icc.data(),
                     static_cast<png_uint_32>(tags.icc.size()));
      else if (tags.srgb_intent >= 0)
        png_set_sRGB_gAMA_and_cHRM(png, info, tags.srgb_intent);
      else if (tags.gamma > 0)
        png_set_gAMA(png, info, tags.gamma);
      png_write_info(png, info);
      if (std::endian::native == std::endian::little) png_set_swap(png);
    });
  }

  void write(const std::byte* from, Index elements) override {
    auto bytes = static_cast<std::size_t>(elements * size_);
    png_structp png = png_.png();
    while (bytes > 0) {
      const std::byte* row = from;
      if (filled_ > 0 || bytes < row_.size()) {
        const std::size_t part = std::min(bytes, row_.size() - filled_);
        std::memcpy(row_.data() + filled_, from, part);
        filled_ += part;
        from += part;
        bytes -= part;
        if (filled_ < row_.size()) return;
        row = row_.data();
        filled_ = 0;
      } else {
        from += row_.size();
        bytes -= row_.size();
      }
      png_.guarded([=] { png_write_row(png, reinterpret_cast<png_const_bytep>(row)); });
    }
  }
  void finish() override {
    png_.guarded([this] { png_write_end(png_.png(), nullptr); });
    file_->commit();
  }

 private:
  static void on_write(png_structp png, png_bytep from, size_t bytes) {
    Png::carried(png, [&] { static_cast<OutputFile*>(png_get_io_ptr(png))->write(from, bytes); });
  }
  static void on_flush(png_structp) {}

  std::unique_ptr<OutputFile> file_;
  Index size_;
  Png png_;
  std::vector<std::byte> row_;
  std::size_t filled_ = 0;
};

}  // namespace

bool is_png(std::span<const std::byte> beginning) {
  return beginning.size() >= 8 && png_sig_cmp(reinterpret_cast<png_const_bytep>(beginning.data()), 0, 8) == 0;
}

std::unique_ptr<Source> read_png(std::unique_ptr<InputFile> file, const ReadOptions& options) {
  return std::make_unique<PngSource>(std::move(file), options);
}

std::unique_ptr<Sink> write_png(std::unique_ptr<OutputFile> file, const Header& header) {
  return std::make_unique<PngSink>(std::move(file), header);
}

}  // namespace cenote::cli
