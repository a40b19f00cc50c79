#include "files/open.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "files/npy.hpp"
#include "files/png.hpp"
#include "files/tiff.hpp"

namespace cenote::cli {

std::string_view name_of(Format format) {
  constexpr std::array<std::string_view, 3> names{"npy", "png", "tiff"};
  return names[static_cast<std::size_t>(format)];
}

Format format_for(const std::string& path, std::optional<Format> wanted, Format otherwise) {
  if (wanted) return *wanted;
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  if (ending == ".npy") return Format::npy;
  if (ending == ".png") return Format::png;
  if (ending == ".tif" || ending == ".tiff") return Format::tiff;
  constexpr std::array<std::string_view, 12> others{".jpg", ".jpeg", ".jxl", ".gif", ".bmp", ".webp",
                                                    ".pgm", ".ppm",  ".npz", ".csv", ".txt", ".raw"};
  if (std::find(others.begin(), others.end(), ending) != others.end())
    throw FileError(path + ": " + ending + " is not written here; .npy, .png and .tif are legal, or --format");
  return otherwise;
}

std::unique_ptr<Source> open_source(const std::string& path, const ReadOptions& options) {
  return open_source(std::make_unique<InputFile>(path), options);
}

std::unique_ptr<Source> open_source(std::unique_ptr<InputFile> file, const ReadOptions& options) {
  const auto beginning = file->peek(8);
  if (is_npy(beginning)) return read_npy(std::move(file), options);
  if (is_png(beginning)) return read_png(std::move(file), options);
  if (is_tiff(beginning)) return read_tiff(std::move(file), options);
  throw FileError(file->name() + (beginning.empty() ? ": is empty" : ": is of no format that is known here") +
                  "; NPY, PNG and TIFF are legal");
}

std::unique_ptr<Sink> open_sink(const std::string& path, Format format, const Header& header) {
  if (path == "-" && ::isatty(STDOUT_FILENO) == 1)
    throw FileError("standard output: is a terminal, which shows no arrays; a file or a pipe is legal");
  auto file = std::make_unique<OutputFile>(path);
  switch (format) {
    case Format::png: return write_png(std::move(file), header);
    case Format::tiff: return write_tiff(std::move(file), header);
    case Format::npy: break;
  }
  return write_npy(std::move(file), header);
}

}  // namespace cenote::cli
