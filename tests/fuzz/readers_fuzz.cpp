// Fuzzes one reader of files (CENOTE_READER: read_npy, read_png or read_tiff): whatever the bytes say, it gives
// elements or throws a FileError, within the memory that it was allowed.
#include <algorithm>
#include <cstdint>

#include "files/npy.hpp"
#include "files/png.hpp"
#include "files/tiff.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cenote;
  using namespace cenote::cli;
  constexpr Index memory = 1 << 16;
  constexpr Index enough = 1 << 13;  // elements; a bomb would go on for hours
  try {
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto source = CENOTE_READER(std::make_unique<InputFile>(bytes, "input"),
                                      {.memory = memory, .raw_pairs_are_bf16 = size % 2 == 0});
    const Header& header = source->header();
    const Index each = size_of(header.type);
    Index left = std::min(header.elements(), enough);
    if (const std::byte* in_place = source->in_place()) {  // all of it must be there to be read
      std::vector<std::byte> copy(in_place, in_place + header.elements() * each);
    }
    std::vector<std::byte> part(static_cast<std::size_t>(1000 * each));
    for (; left > 0; left -= std::min<Index>(left, 1000)) source->read(part.data(), std::min<Index>(left, 1000));
  } catch (const FileError&) {  // what bad files are meant to give
  }
  return 0;
}
