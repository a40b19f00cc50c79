// What `cenote explain` shows, before anybody decides how: grids of cells, with the window of one output in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cenote/geometry.hpp"

namespace cenote::cli {

struct Cell {
  enum class Kind : std::uint8_t { input, padding, overhang };
  Kind kind = Kind::input;
  bool tap = false;  // of the window that is shown
  bool winner = false;
  std::optional<double> value;
  std::optional<double> weight;  // of a tap: what a gradient of 1 sends here
};

// One plane of the input: the last two pooled axes, or a row where there is only one.
struct Slice {
  std::string title;
  Index first_row = 0, first_column = 0;  // positions in the input; padding is negative
  Index rows = 1, columns = 1;
  std::vector<Cell> cells;  // row-major
  [[nodiscard]] const Cell& at(Index row, Index column) const {
    return cells[static_cast<std::size_t>(row * columns + column)];
  }
};

struct Picture {
  std::vector<std::string> before;  // lines of text: geometry, formulas, the output's value
  std::vector<Slice> slices;
  std::string note;  // what is not shown
  bool values = false, weights = false;
  bool has_padding = false, has_overhang = false, has_winner = false;
};

// Few digits: they have to fit in cells.
std::string short_number(double x, int digits = 3);

std::string as_text(const Picture& picture, bool colour);
std::string as_svg(const Picture& picture);

}  // namespace cenote::cli
