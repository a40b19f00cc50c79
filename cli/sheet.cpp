#include "sheet.hpp"

#include <algorithm>
#include <array>

namespace cenote::cli {

namespace {

constexpr Index margin = 12;
constexpr Index letter_size = 2;  // cells of a letter, in pixels
constexpr Index caption = 9 * letter_size + 12;
constexpr std::array<std::uint8_t, 3> paper{24, 26, 30};
constexpr std::array<std::uint8_t, 3> ink{225, 225, 220};

// Letters of 5x7 cells, a row a number, the highest of five bits to the left. Small letters and digits; what is not
// here is a space. Those with a tail hang two cells lower.
struct Glyph {
  char letter;
  std::array<std::uint8_t, 7> rows;
};
constexpr std::array glyphs{
    Glyph{'a', {0, 0, 14, 1, 15, 17, 15}},    Glyph{'b', {16, 16, 30, 17, 17, 17, 30}},
    Glyph{'c', {0, 0, 14, 16, 16, 16, 14}},   Glyph{'d', {1, 1, 15, 17, 17, 17, 15}},
    Glyph{'e', {0, 0, 14, 17, 31, 16, 14}},   Glyph{'f', {6, 8, 28, 8, 8, 8, 8}},
    Glyph{'g', {15, 17, 17, 17, 15, 1, 14}},  Glyph{'h', {16, 16, 30, 17, 17, 17, 17}},
    Glyph{'i', {4, 0, 12, 4, 4, 4, 14}},      Glyph{'j', {2, 0, 6, 2, 2, 18, 12}},
    Glyph{'k', {16, 16, 18, 20, 24, 20, 18}}, Glyph{'l', {12, 4, 4, 4, 4, 4, 14}},
    Glyph{'m', {0, 0, 26, 21, 21, 21, 21}},   Glyph{'n', {0, 0, 30, 17, 17, 17, 17}},
    Glyph{'o', {0, 0, 14, 17, 17, 17, 14}},   Glyph{'p', {30, 17, 17, 17, 30, 16, 16}},
    Glyph{'q', {15, 17, 17, 17, 15, 1, 1}},   Glyph{'r', {0, 0, 22, 24, 16, 16, 16}},
    Glyph{'s', {0, 0, 15, 16, 14, 1, 30}},    Glyph{'t', {8, 8, 28, 8, 8, 9, 6}},
    Glyph{'u', {0, 0, 17, 17, 17, 17, 15}},   Glyph{'v', {0, 0, 17, 17, 17, 10, 4}},
    Glyph{'w', {0, 0, 17, 17, 21, 21, 10}},   Glyph{'x', {0, 0, 17, 10, 4, 10, 17}},
    Glyph{'y', {17, 17, 17, 17, 15, 1, 14}},  Glyph{'z', {0, 0, 31, 2, 4, 8, 31}},
    Glyph{'0', {14, 17, 19, 21, 25, 17, 14}}, Glyph{'1', {4, 12, 4, 4, 4, 4, 14}},
    Glyph{'2', {14, 17, 1, 6, 8, 16, 31}},    Glyph{'3', {14, 17, 1, 6, 1, 17, 14}},
    Glyph{'4', {2, 6, 10, 18, 31, 2, 2}},     Glyph{'5', {31, 16, 30, 1, 1, 17, 14}},
    Glyph{'6', {6, 8, 16, 30, 17, 17, 14}},   Glyph{'7', {31, 1, 2, 4, 8, 8, 8}},
    Glyph{'8', {14, 17, 17, 14, 17, 17, 14}}, Glyph{'9', {14, 17, 17, 15, 1, 2, 12}},
    Glyph{'.', {0, 0, 0, 0, 0, 12, 12}},      Glyph{',', {0, 0, 0, 0, 12, 4, 8}},
};

void write(const View<std::uint8_t>& sheet, Index row, Index column, const std::string& text) {
  for (const char letter : text) {
    const auto* const found =
        std::find_if(glyphs.begin(), glyphs.end(), [&](const Glyph& g) { return g.letter == letter; });
    const Index tail = std::string_view("gpqy").find(letter) == std::string_view::npos ? 0 : 2 * letter_size;
    if (found != glyphs.end())
      for_each_index({7 * letter_size, 5 * letter_size, 3}, [&](const Dims& at) {
        const unsigned bits = found->rows[static_cast<std::size_t>(at[0] / letter_size)];
        const Index r = row + at[0] + tail;
        const Index c = column + at[1];
        if (((bits >> (4 - at[1] / letter_size)) & 1U) != 0 && r < sheet.dims()[0] && c < sheet.dims()[1])
          sheet(r, c, at[2]) = ink[static_cast<std::size_t>(at[2])];
      });
    column += 6 * letter_size;
  }
}

}  // namespace

Tensor<std::uint8_t> contact_sheet(const std::vector<Labelled>& pictures) {
  const Index height = pictures.front().picture.dims()[0];
  const Index width = pictures.front().picture.dims()[1];
  const auto lines = static_cast<Index>(pictures.size() + 1) / 2;
  Tensor<std::uint8_t> out({margin + lines * (height + caption), 3 * margin + 2 * width, 3});
  const View<std::uint8_t> sheet = out.view();
  for_each_index(out.dims(), [&](const Dims& at) { sheet[at] = paper[static_cast<std::size_t>(at[2])]; });
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const auto& [label, picture] = pictures[i];
    const Index top = margin + static_cast<Index>(i) / 2 * (height + caption);
    const Index left = margin + static_cast<Index>(i) % 2 * (width + margin);
    const View<const std::uint8_t> from = picture.view();
    for_each_index({height, width, 3}, [&](const Dims& at) {
      sheet(top + at[0], left + at[1], at[2]) =
          from(at[0] * from.dims()[0] / height, at[1] * from.dims()[1] / width, at[2]);
    });
    write(sheet, top + height + 6, left, label);
  }
  return out;
}

}  // namespace cenote::cli
