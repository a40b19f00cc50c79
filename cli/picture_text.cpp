// The picture in a terminal. Without colours brackets mark the window and the winner, so that nothing is lost.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "picture.hpp"

namespace cenote::cli {

namespace {

constexpr const char* plain = "\x1b[0m";
constexpr const char* of_window = "\x1b[30;46m";
constexpr const char* of_winner = "\x1b[1;30;42m";
constexpr const char* of_padding = "\x1b[33m";
constexpr const char* of_overhang = "\x1b[31m";

std::string content(const Cell& cell, bool weights) {
  if (cell.kind == Cell::Kind::padding) return "+";
  if (cell.kind == Cell::Kind::overhang) return "~";
  const auto& number = weights ? cell.weight : cell.value;
  return number ? short_number(*number, weights ? 2 : 3) : ".";
}

std::string padded_left(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

// A cell is its content between two marks.
std::string drawn(const Cell& cell, bool weights, std::size_t width, bool colour) {
  const std::string text = padded_left(content(cell, weights), width);
  std::string out = cell.tap ? "[" + text + "]" : " " + text + " ";
  if (cell.winner && !weights) out = "<" + text + ">";
  if (!colour) return out;
  const char* paint = cell.winner                                  ? of_winner
                      : cell.kind == Cell::Kind::overhang          ? of_overhang
                      : cell.tap && cell.kind == Cell::Kind::input ? of_window
                      : cell.kind == Cell::Kind::padding           ? of_padding
                                                                   : "";
  return *paint == '\0' ? out : paint + out + plain;
}

void draw(std::string& out, const Slice& slice, bool weights, bool colour) {
  std::size_t width = 1;
  for (const Cell& cell : slice.cells) width = std::max(width, content(cell, weights).size());
  for (Index c = 0; c < slice.columns; ++c) width = std::max(width, std::to_string(slice.first_column + c).size());
  out += "    ";
  for (Index c = 0; c < slice.columns; ++c) out += padded_left(std::to_string(slice.first_column + c), width + 2);
  out += "\n";
  for (Index r = 0; r < slice.rows; ++r) {
    out += padded_left(slice.rows > 1 ? std::to_string(slice.first_row + r) : "", 4) + " ";
    for (Index c = 0; c < slice.columns; ++c) out += drawn(slice.at(r, c), weights, width, colour);
    out += "\n";
  }
}

}  // namespace

std::string short_number(double x, int digits) {
  std::array<char, 32> text{};
  if (std::abs(x) >= 1000 && std::abs(x) < 1e6)
    std::snprintf(text.data(), text.size(), "%.0f", x);
  else
    std::snprintf(text.data(), text.size(), "%.*g", digits, x);
  std::string out = text.data();
  if (out.starts_with("0.")) out.erase(0, 1);
  if (out.starts_with("-0.")) out.erase(1, 1);
  return out;
}

std::string as_text(const Picture& picture, bool colour) {
  std::string out;
  for (const std::string& line : picture.before) out += line + "\n";
  for (const bool weights : {false, true}) {
    if (weights && !picture.weights) continue;
    for (const Slice& slice : picture.slices) {
      out += "\n" + std::string(weights          ? "a gradient of 1 at the output flows back as"
                                : picture.values ? "input"
                                                 : "window");
      out += (slice.title.empty() ? "" : ", " + slice.title) + "\n";
      draw(out, slice, weights, colour);
    }
  }
  if (picture.slices.empty()) return out;
  out += "\n[ ] window";
  if (picture.has_winner) out += "   < > winner";
  if (picture.has_padding) out += "   + padding";
  if (picture.has_overhang) out += "   ~ overhang: does not exist";
  out += "\n";
  if (!picture.note.empty()) out += picture.note + "\n";
  return out;
}

}  // namespace cenote::cli
