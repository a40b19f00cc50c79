// TIFF and BigTIFF: integers of 8 to 64 bits and floating point of 16 to 64, any number of channels, strips or tiles,
// channels together or apart; several pages of one shape are a volume. Palettes and fewer than
// 8 bits are widened.
#pragma once

#include "files/input_file.hpp"
#include "files/output_file.hpp"

namespace cenote::cli {

bool is_tiff(std::span<const std::byte> beginning);
std::unique_ptr<Source> read_tiff(std::unique_ptr<InputFile> file, const ReadOptions& options);
std::unique_ptr<Sink> write_tiff(std::unique_ptr<OutputFile> file, const Header& header);

}  // namespace cenote::cli
