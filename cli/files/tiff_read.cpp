#include <algorithm>
#include <cstring>

#include "files/tiff.hpp"
#include "files/tiff_handle.hpp"

namespace cenote::cli {

namespace {

// What one page says about itself.
struct Page {
  Index columns = 0, rows = 0, channels = 1, bits = 0;
  Index format = SAMPLEFORMAT_UINT;
  bool apart = false;  // one plane per channel
  bool white_is_0 = false;
  std::vector<std::uint8_t> palette;      // red, green and blue of every number
  Index tile_columns = 0, tile_rows = 0;  // 0: strips
  Index strip_rows = 0;
};

bool same_pixels(const Page& a, const Page& b) {
  return a.columns == b.columns && a.rows == b.rows && a.channels == b.channels && a.bits == b.bits &&
         a.format == b.format && a.palette.empty() == b.palette.empty();
}

// Numbers of a palette become colours, and fewer than 8 bits become 8: what a picture looks like stays the same.
bool is_widened(const Page& page) { return page.bits < 8 || !page.palette.empty(); }
Index channels_given(const Page& page) { return page.palette.empty() ? page.channels : 3; }

Index bytes_of(const Page& page, Index samples) { return (samples * page.bits + 7) / 8; }

// One row of samples, packed from the highest bit on.
void widen(const Page& page, const std::byte* from, Index samples, std::byte* to) {
  const auto most = (1U << page.bits) - 1;
  for (Index i = 0; i < samples; ++i) {
    const Index bit = i * page.bits;
    const auto packed = std::to_integer<unsigned>(from[bit / 8]);
    const unsigned number = packed >> (8 - page.bits - bit % 8) & most;
    if (page.palette.empty()) {
      *to++ = static_cast<std::byte>(number * 255 / most);
      continue;
    }
    std::memcpy(to, page.palette.data() + std::size_t{3} * number, 3);
    to += 3;
  }
}

// Codecs whose pixels are the numbers that were stored.
bool is_lossless(std::uint16_t compression) {
  constexpr std::array legal{COMPRESSION_NONE,     COMPRESSION_LZW,  COMPRESSION_DEFLATE, COMPRESSION_ADOBE_DEFLATE,
                             COMPRESSION_PACKBITS, COMPRESSION_LZMA, COMPRESSION_ZSTD};
  return std::find(legal.begin(), legal.end(), compression) != legal.end();
}

class TiffSource final : public Source {
 public:
  TiffSource(std::unique_ptr<InputFile> file, const ReadOptions& options)
      : file_(std::move(file)), memory_(options.memory), tiff_(*file_, options.memory) {
    page_ = describe();
    read_tags();
    Index pages = 1;
    for (; TIFFReadDirectory(tiff_.get()) == 1; ++pages)
      if (const Page other = describe(); !same_pixels(page_, other))
        throw FileError(tiff_.name() + ": page " + std::to_string(pages + 1) + " is " + words(other) +
                        ", and the first is " + words(page_) + "; pages of one shape make a volume");
    tiff_.rethrow_failure();
    header_.type = *element_of(page_);
    if (pages > 1) header_.dims.push_back(pages);
    header_.dims.push_back(page_.rows);
    header_.dims.push_back(page_.columns);
    if (channels_given(page_) > 1) header_.dims.push_back(channels_given(page_));
    header_.format = Format::tiff;
    header_.picture = true;
    header_.channels = channels_given(page_) > 1;
    Index bytes = 0;
    if (size_problem(header_.dims, "shape") ||
        __builtin_mul_overflow(header_.elements(), size_of(header_.type), &bytes))
      throw FileError(tiff_.name() + ": the shape " + to_string(header_.dims) +
                      " has more elements than 64 bits count");
    if (TIFFSetDirectory(tiff_.get(), 0) == 0) tiff_.fail("has no first page");
    start_page();
  }

  [[nodiscard]] const Header& header() const override { return header_; }

  void read(std::byte* to, Index elements) override {
    auto bytes = static_cast<std::size_t>(elements * size_of(header_.type));
    while (bytes > 0) {
      if (band_used_ == band_filled_) next_band();
      const std::size_t part = std::min(bytes, band_filled_ - band_used_);
      std::memcpy(to, (is_widened(page_) ? wide_ : band_).data() + band_used_, part);
      to += part;
      bytes -= part;
      band_used_ += part;
    }
  }

 private:
  static std::optional<Element> element_of(const Page& page) {
    if (is_widened(page))
      return page.format == SAMPLEFORMAT_UINT && page.channels == 1 && page.bits > 0 && 8 % page.bits == 0
                 ? std::optional(Element::u8)
                 : std::nullopt;
    for (std::size_t i = 0; i < element_names.size(); ++i) {
      const auto e = static_cast<Element>(i);
      const Index format = is_unsigned(e) ? SAMPLEFORMAT_UINT : is_integer(e) ? SAMPLEFORMAT_INT : SAMPLEFORMAT_IEEEFP;
      if (e != Element::bf16 && format == page.format && size_of(e) * 8 == page.bits) return e;
    }
    return {};
  }
  static std::string words(const Page& page) {
    return std::to_string(page.rows) + "x" + std::to_string(page.columns) + " with " + std::to_string(page.channels) +
           " channels of " + std::to_string(page.bits) + " bits";
  }

  template <class T>
  T tag(std::uint32_t which, T otherwise) {
    T value = otherwise;
    return TIFFGetFieldDefaulted(tiff_.get(), which, &value) == 1 ? value : otherwise;
  }

  Page describe() {
    TIFF* tiff = tiff_.get();
    Page page;
    page.columns = tag<std::uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
    page.rows = tag<std::uint32_t>(TIFFTAG_IMAGELENGTH, 0);
    page.channels = tag<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
    page.bits = tag<std::uint16_t>(TIFFTAG_BITSPERSAMPLE, 1);
    page.format = tag<std::uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    if (page.format == SAMPLEFORMAT_VOID) page.format = SAMPLEFORMAT_UINT;
    page.apart =
        tag<std::uint16_t>(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE && page.channels > 1;
    const auto photometric = tag<std::uint16_t>(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    page.white_is_0 = photometric == PHOTOMETRIC_MINISWHITE && page.format == SAMPLEFORMAT_UINT;
    const auto compression = tag<std::uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    const std::string& name = tiff_.name();
    if (!is_lossless(compression))
      throw FileError(name + ": TIFF compression " + std::to_string(compression) +
                      "; none, LZW, Deflate, PackBits, LZMA and Zstandard are legal");
    constexpr std::array<std::pair<std::uint16_t, const char*>, 6> strange{{{PHOTOMETRIC_YCBCR, "YCbCr"},
                                                                            {PHOTOMETRIC_CIELAB, "CIE L*a*b*"},
                                                                            {PHOTOMETRIC_ICCLAB, "ICC L*a*b*"},
                                                                            {PHOTOMETRIC_ITULAB, "ITU L*a*b*"},
                                                                            {PHOTOMETRIC_LOGL, "LogL"},
                                                                            {PHOTOMETRIC_LOGLUV, "LogLuv"}}};
    for (const auto& [kind, its_name] : strange)
      if (photometric == kind)
        throw FileError(name + ": TIFF pixels are " + its_name +
                        "; grey, RGB, CMYK, palettes and plain channels are legal");
    if (photometric == PHOTOMETRIC_PALETTE) page.palette = palette(page);
    if (page.columns < 1 || page.rows < 1 || page.channels < 1)
      throw FileError(name + ": TIFF of " + words(page) + "; at least 1 of each is legal");
    if (!element_of(page))
      throw FileError(
          name + ": TIFF channels have " + std::to_string(page.bits) + " bits in sample format " +
          std::to_string(page.format) +
          "; integers of 8, 16, 32 and 64 bits, floating point of 16, 32 and 64, and one channel or palette "
          "of 1, 2 and 4 bits are legal");
    if (TIFFIsTiled(tiff) != 0) {
      page.tile_columns = tag<std::uint32_t>(TIFFTAG_TILEWIDTH, 0);
      page.tile_rows = tag<std::uint32_t>(TIFFTAG_TILELENGTH, 0);
      if (page.tile_columns < 1 || page.tile_rows < 1) throw FileError(name + ": TIFF tiles have no size");
    } else {
      page.strip_rows = std::min<Index>(tag<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, 0xffffffffU), page.rows);
      if (page.strip_rows < 1) throw FileError(name + ": TIFF strips have no rows");
    }
    return page;
  }

  std::vector<std::uint8_t> palette(const Page& page) {
    if (page.bits > 8 || page.channels != 1)
      throw FileError(tiff_.name() + ": TIFF palette for " + words(page) + "; one channel of at most 8 bits is legal");
    std::array<std::uint16_t*, 3> maps{};
    if (TIFFGetField(tiff_.get(), TIFFTAG_COLORMAP, maps.data(), maps.data() + 1, maps.data() + 2) != 1)
      tiff_.fail("has no palette");
    const auto colours = std::size_t{1} << page.bits;
    // The standard says 16 bits a colour; some programs wrote 8.
    bool wide = false;
    for (const std::uint16_t* map : maps)
      wide = wide || std::any_of(map, map + colours, [](auto c) { return c > 255; });
    std::vector<std::uint8_t> out;
    for (std::size_t i = 0; i < colours; ++i)
      for (const std::uint16_t* map : maps) out.push_back(static_cast<std::uint8_t>(wide ? map[i] >> 8 : map[i]));
    return out;
  }

  void read_tags() {
    PictureTags& tags = header_.tags;
    std::uint32_t length = 0;
    void* profile = nullptr;
    if (TIFFGetField(tiff_.get(), TIFFTAG_ICCPROFILE, &length, &profile) == 1 && profile != nullptr) {
      const auto* bytes = static_cast<const unsigned char*>(profile);
      tags.icc.assign(bytes, bytes + length);
    }
    tags.inks = tag<std::uint16_t>(TIFFTAG_PHOTOMETRIC, 0) == PHOTOMETRIC_SEPARATED && page_.channels >= 4;
    std::uint16_t orientation = 0;
    if (TIFFGetField(tiff_.get(), TIFFTAG_ORIENTATION, &orientation) == 1) tags.orientation = orientation;
    std::uint16_t count = 0;
    std::uint16_t* extra = nullptr;
    if (TIFFGetField(tiff_.get(), TIFFTAG_EXTRASAMPLES, &count, &extra) == 1 && count > 0)
      tags.associated_alpha = extra[0] == EXTRASAMPLE_ASSOCALPHA;
  }

  // Room for one band of the page at hand: a row where libtiff reads row by row, else what it has to read together.
  void start_page() {
    page_ = describe();
    const Index row = bytes_of(page_, page_.columns * page_.channels);  // 2^32 x 2^16 x 64 fit
    band_rows_ = page_.tile_rows > 0 ? std::min(page_.tile_rows, page_.rows) : page_.apart ? page_.strip_rows : 1;
    Index bytes = 0;
    Index piece = 0;
    Index tile_row = 0;
    bool fits = !__builtin_mul_overflow(row, band_rows_, &bytes);
    if (page_.tile_rows > 0)
      fits = fits && !__builtin_mul_overflow(bytes_of(page_, page_.tile_columns * (page_.apart ? 1 : page_.channels)),
                                             page_.tile_rows, &tile_row);
    if (page_.tile_rows > 0)
      piece = tile_row;
    else if (page_.apart)
      piece = bytes / page_.channels;
    check_memory(tiff_.name(), "a band of this TIFF", fits ? std::max(bytes, piece) : std::numeric_limits<Index>::max(),
                 memory_ / (is_widened(page_) ? 32 : 2));  // a bit becomes up to three bytes
    // libtiff's own sizes, which must be what we think they are.
    const tmsize_t theirs = page_.tile_rows > 0 ? TIFFTileSize(tiff_.get())
                            : page_.apart       ? TIFFStripSize(tiff_.get())
                                                : TIFFScanlineSize(tiff_.get());
    if (theirs != static_cast<tmsize_t>(page_.tile_rows > 0 || page_.apart ? piece : row))
      tiff_.fail("has strange sizes");
    band_.resize(static_cast<std::size_t>(bytes));
    if (is_widened(page_)) wide_.resize(static_cast<std::size_t>(band_rows_ * page_.columns * channels_given(page_)));
    piece_.resize(static_cast<std::size_t>(piece));
    band_used_ = band_filled_ = 0;
    row_ = 0;
  }

  void next_band() {
    if (row_ == page_.rows) {
      if (TIFFReadDirectory(tiff_.get()) != 1) tiff_.fail("has fewer pages than it had");
      start_page();
    }
    const Index rows = std::min(band_rows_, page_.rows - row_);
    const Index sample = page_.bits / 8;
    const Index row_bytes = bytes_of(page_, page_.columns * page_.channels);
    if (page_.tile_rows > 0)
      read_tiles(rows);
    else if (page_.apart)
      for (Index c = 0; c < page_.channels; ++c) {
        const std::uint32_t strip =
            TIFFComputeStrip(tiff_.get(), static_cast<std::uint32_t>(row_), static_cast<std::uint16_t>(c));
        const auto wanted = static_cast<tmsize_t>(rows * page_.columns * sample);
        if (TIFFReadEncodedStrip(tiff_.get(), strip, piece_.data(), wanted) != wanted) tiff_.fail("ends too early");
        interleave(piece_.data(), rows * page_.columns, c);
      }
    else if (TIFFReadScanline(tiff_.get(), band_.data(), static_cast<std::uint32_t>(row_)) != 1)
      tiff_.fail("ends too early");
    row_ += rows;
    band_used_ = 0;
    band_filled_ = static_cast<std::size_t>(rows * row_bytes);
    if (page_.white_is_0)
      for (std::size_t i = 0; i < band_filled_; ++i) band_[i] = ~band_[i];
    if (!is_widened(page_)) return;
    const Index wide_row = page_.columns * channels_given(page_);
    for (Index r = 0; r < rows; ++r)
      widen(page_, band_.data() + r * row_bytes, page_.columns, wide_.data() + r * wide_row);
    band_filled_ = static_cast<std::size_t>(rows * wide_row);
  }

  // One plane's samples to their places between those of the others.
  void interleave(const std::byte* from, Index pixels, Index channel) {
    const Index sample = page_.bits / 8;
    std::byte* to = band_.data() + channel * sample;
    for (Index i = 0; i < pixels; ++i, from += sample, to += sample * page_.channels)
      std::memcpy(to, from, static_cast<std::size_t>(sample));
  }

  void read_tiles(Index rows) {
    const Index sample = page_.bits / 8;
    const Index together = page_.apart ? 1 : page_.channels;
    for (Index c = 0; c < (page_.apart ? page_.channels : 1); ++c)
      for (Index column = 0; column < page_.columns; column += page_.tile_columns) {
        if (TIFFReadTile(tiff_.get(), piece_.data(), static_cast<std::uint32_t>(column),
                         static_cast<std::uint32_t>(row_), 0, static_cast<std::uint16_t>(c)) < 0)
          tiff_.fail("ends too early");
        const Index columns = std::min(page_.tile_columns, page_.columns - column);
        for (Index r = 0; r < rows; ++r) {
          const std::byte* from = piece_.data() + r * bytes_of(page_, page_.tile_columns * together);
          std::byte* to = band_.data() + r * bytes_of(page_, page_.columns * page_.channels) +
                          column * page_.channels * page_.bits / 8 + c * sample;
          if (!page_.apart) {
            std::memcpy(to, from, static_cast<std::size_t>(bytes_of(page_, columns * together)));
            continue;
          }
          for (Index i = 0; i < columns; ++i)
            std::memcpy(to + i * page_.channels * sample, from + i * sample, static_cast<std::size_t>(sample));
        }
      }
  }

  std::unique_ptr<InputFile> file_;
  Index memory_;
  TiffHandle tiff_;
  Header header_;
  Page page_;
  std::vector<std::byte> band_, piece_, wide_;
  std::size_t band_used_ = 0, band_filled_ = 0;
  Index band_rows_ = 1, row_ = 0;
};

}  // namespace

bool is_tiff(std::span<const std::byte> beginning) {
  if (beginning.size() < 4) return false;
  const std::string_view start(reinterpret_cast<const char*>(beginning.data()), 4);
  using namespace std::string_view_literals;
  return start == "II*\0"sv || start == "MM\0*"sv || start == "II+\0"sv || start == "MM\0+"sv;
}

std::unique_ptr<Source> read_tiff(std::unique_ptr<InputFile> file, const ReadOptions& options) {
  if (!file->seekable())
    throw FileError(file->name() + ": TIFF has to be a file, it is read back and forth; NPY may come by a pipe");
  return std::make_unique<TiffSource>(std::move(file), options);
}

}  // namespace cenote::cli
