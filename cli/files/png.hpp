// PNG pictures of 8 and 16 bits, grey or colour, with or without alpha. Palettes and fewer bits are widened to these.
#pragma once

#include "files/input_file.hpp"
#include "files/output_file.hpp"

namespace cenote::cli {

bool is_png(std::span<const std::byte> beginning);
std::unique_ptr<Source> read_png(std::unique_ptr<InputFile> file, const ReadOptions& options);
std::unique_ptr<Sink> write_png(std::unique_ptr<OutputFile> file, const Header& header);

}  // namespace cenote::cli
