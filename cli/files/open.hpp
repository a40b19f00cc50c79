// Files by what is in them (to read) and by what they are called (to write).
#pragma once

#include "files/array.hpp"
#include "files/input_file.hpp"

namespace cenote::cli {

// The format of an output: the one that was asked for, or the one that its name ends in, or `otherwise`.
Format format_for(const std::string& path, std::optional<Format> wanted, Format otherwise);
std::string_view name_of(Format format);

std::unique_ptr<Source> open_source(const std::string& path, const ReadOptions& options);
std::unique_ptr<Source> open_source(std::unique_ptr<InputFile> file, const ReadOptions& options);
std::unique_ptr<Sink> open_sink(const std::string& path, Format format, const Header& header);

}  // namespace cenote::cli
