// NumPy's own format: a Python dictionary in text, then the elements.
#pragma once

#include "files/input_file.hpp"
#include "files/output_file.hpp"

namespace cenote::cli {

bool is_npy(std::span<const std::byte> beginning);
std::unique_ptr<Source> read_npy(std::unique_ptr<InputFile> file, const ReadOptions& options);
std::unique_ptr<Sink> write_npy(std::unique_ptr<OutputFile> file, const Header& header);

}  // namespace cenote::cli
