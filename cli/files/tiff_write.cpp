#include <algorithm>
#include <cstring>

#include "files/picture_shape.hpp"
#include "files/tiff.hpp"
#include "files/tiff_handle.hpp"

namespace cenote::cli {

namespace {

constexpr Index classic_limit = Index{3} << 30;  // beyond it, BigTIFF: compressed data may grow, and pages add up
constexpr Index strip_bytes = 256 << 10;

class TiffSink final : public Sink {
 public:
  TiffSink(std::unique_ptr<OutputFile> file, const Header& header)
      : file_(std::move(file)), header_(header), shape_(picture_shape(file_->name(), "TIFF", header)),
        tiff_(*checked(), header.elements() * size_of(header.type) > classic_limit) {
    row_.resize(static_cast<std::size_t>(shape_.columns * shape_.channels * size_of(header.type)));
    start_page();
  }

  void write(const std::byte* from, Index elements) override {
    auto bytes = static_cast<std::size_t>(elements * size_of(header_.type));
    while (bytes > 0) {
      const std::size_t part = std::min(bytes, row_.size() - filled_);
      std::memcpy(row_.data() + filled_, from, part);
      filled_ += part;
      from += part;
      bytes -= part;
      if (filled_ == row_.size()) write_row();
    }
  }
  void finish() override {
    tiff_.close();
    tiff_.rethrow_failure();
    file_->commit();
  }

 private:
  OutputFile* checked() {
    const std::string& name = file_->name();
    if (!file_->seekable())
      throw FileError(name + ": TIFF has to go to a file, it is written back and forth; NPY and PNG may go to a pipe");
    if (header_.type == Element::bf16) throw FileError(name + ": TIFF has no bf16; --dtype f32 is legal");
    const bool legal = shape_.pages >= 1 && shape_.rows >= 1 && shape_.columns >= 1 && shape_.channels >= 1 &&
                       shape_.rows <= 0x7fffffff && shape_.columns <= 0x7fffffff && shape_.channels <= 0xffff;
    if (!legal)
      throw FileError(
          name +
          ": TIFF holds at least one pixel, and at most 2147483647 rows and columns of 65535 channels; the result is " +
          to_string(header_.dims));
    return file_.get();
  }

  void start_page() {
    TIFF* tiff = tiff_.get();
    const bool integer = is_integer(header_.type);
    const Index bits = 8 * size_of(header_.type);
    const auto set = [&](std::uint32_t tag, auto... values) {
      if (TIFFSetField(tiff, tag, values...) != 1) tiff_.fail("cannot be written");
    };
    const int format = is_unsigned(header_.type) ? SAMPLEFORMAT_UINT : integer ? SAMPLEFORMAT_INT : SAMPLEFORMAT_IEEEFP;
    const bool inks = header_.tags.inks && shape_.channels >= 4;
    const bool colour = !inks && (shape_.channels == 3 || shape_.channels == 4);
    const auto rows = std::clamp<Index>(strip_bytes / static_cast<Index>(row_.size()), 1, shape_.rows);
    set(TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(shape_.columns));
    set(TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(shape_.rows));
    set(TIFFTAG_BITSPERSAMPLE, static_cast<int>(bits));
    set(TIFFTAG_SAMPLESPERPIXEL, static_cast<int>(shape_.channels));
    set(TIFFTAG_SAMPLEFORMAT, format);
    set(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    set(TIFFTAG_PHOTOMETRIC, inks ? PHOTOMETRIC_SEPARATED : colour ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    set(TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
    if (!integer)
      set(TIFFTAG_PREDICTOR, PREDICTOR_FLOATINGPOINT);
    else if (bits <= 32)
      set(TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
    set(TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(rows));
    const Index extra = shape_.channels - (inks ? 4 : colour ? 3 : 1);
    if (extra > 0) {
      std::vector<std::uint16_t> kinds(static_cast<std::size_t>(extra), EXTRASAMPLE_UNSPECIFIED);
      if (extra == 1) kinds[0] = header_.tags.associated_alpha ? EXTRASAMPLE_ASSOCALPHA : EXTRASAMPLE_UNASSALPHA;
      set(TIFFTAG_EXTRASAMPLES, static_cast<int>(extra), kinds.data());
    }
    if (!header_.tags.icc.empty())
      set(TIFFTAG_ICCPROFILE, static_cast<std::uint32_t>(header_.tags.icc.size()), header_.tags.icc.data());
    if (header_.tags.orientation != 0) set(TIFFTAG_ORIENTATION, header_.tags.orientation);
    if (shape_.pages > 1) {
      set(TIFFTAG_SUBFILETYPE, FILETYPE_PAGE);
      set(TIFFTAG_PAGENUMBER, static_cast<int>(std::min<Index>(page_, 0xffff)),
          static_cast<int>(std::min<Index>(shape_.pages, 0xffff)));
    }
  }

  void write_row() {
    if (next_row_ == shape_.rows) {
      if (TIFFWriteDirectory(tiff_.get()) != 1) tiff_.fail("cannot be written");
      ++page_;
      next_row_ = 0;
      start_page();
    }
    if (TIFFWriteScanline(tiff_.get(), row_.data(), static_cast<std::uint32_t>(next_row_), 0) != 1)
      tiff_.fail("cannot be written");
    ++next_row_;
    filled_ = 0;
  }

  std::unique_ptr<OutputFile> file_;
  Header header_;
  PictureShape shape_;
  TiffHandle tiff_;
  std::vector<std::byte> row_;
  std::size_t filled_ = 0;
  Index next_row_ = 0, page_ = 0;
};

}  // namespace

std::unique_ptr<Sink> write_tiff(std::unique_ptr<OutputFile> file, const Header& header) {
  return std::make_unique<TiffSink>(std::move(file), header);
}

}  // namespace cenote::cli
