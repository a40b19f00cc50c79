// The picture as SVG: the input on the left, what flows back on the right.
#include <algorithm>
#include <cmath>

#include "picture.hpp"
#include "svg.hpp"

namespace cenote::cli {

namespace {

constexpr double cell_size = 38, gap = 56, margin = 24, line_height = 20;

std::string fill_of(const Cell& cell, bool weights, double largest) {
  if (weights && cell.weight) {
    const double share = largest > 0 ? std::min(1.0, std::abs(*cell.weight) / largest) : 0;
    const auto mix = [&](double from, double to) {
      return std::to_string(static_cast<int>(from + share * (to - from)));
    };
    return *cell.weight < 0 ? "rgb(" + mix(255, 214) + "," + mix(255, 96) + "," + mix(255, 77) + ")"
                            : "rgb(" + mix(255, 31) + "," + mix(255, 150) + "," + mix(255, 139) + ")";
  }
  if (cell.kind == Cell::Kind::overhang) return "#fbeaea";
  if (cell.kind == Cell::Kind::padding) return cell.tap && !weights ? "#fbe3b5" : "#fdf4dd";
  if (cell.winner && !weights) return "#8fd6a5";
  return cell.tap && !weights ? "#cfe8ef" : "#ffffff";
}

std::string title_of(const Slice& slice, bool weights) {
  return (weights ? "a gradient of 1 flows back" : "input") + (slice.title.empty() ? "" : ", " + slice.title);
}

void draw(Svg& svg, const Slice& slice, bool weights, double largest, double x, double y) {
  svg.text(x, y - 24, title_of(slice, weights), 14, "start", "#333");
  for (Index c = 0; c < slice.columns; ++c)
    svg.text(x + (static_cast<double>(c) + 0.5) * cell_size, y - 6, std::to_string(slice.first_column + c), 10,
             "middle", "#888");
  for (Index r = 0; r < slice.rows; ++r) {
    const double top = y + static_cast<double>(r) * cell_size;
    if (slice.rows > 1)
      svg.text(x - 6, top + cell_size / 2 + 4, std::to_string(slice.first_row + r), 10, "end", "#888");
    for (Index c = 0; c < slice.columns; ++c) {
      const Cell& cell = slice.at(r, c);
      const double left = x + static_cast<double>(c) * cell_size;
      const bool dashed = cell.kind != Cell::Kind::input;
      svg.box(left, top, cell_size, cell_size, fill_of(cell, weights, largest), dashed ? "#c9b27a" : "#b9c0c7", 1,
              dashed);
      const auto& number = weights ? cell.weight : cell.value;
      const bool dark = weights && number && std::abs(*number) > 0.6 * largest;
      if (!number) continue;
      const std::string text = short_number(*number, weights ? 2 : 3);
      svg.text(left + cell_size / 2, top + cell_size / 2 + 4, text,
               text.size() < 6   ? 12
               : text.size() < 8 ? 9
                                 : 7,
               "middle", dark ? "#fff" : "#222");
    }
  }
  for (Index r = 0; r < slice.rows; ++r)  // above the thin lines
    for (Index c = 0; c < slice.columns; ++c)
      if (slice.at(r, c).tap)
        svg.box(x + static_cast<double>(c) * cell_size, y + static_cast<double>(r) * cell_size, cell_size, cell_size,
                "none", slice.at(r, c).kind == Cell::Kind::overhang ? "#c0504d" : "#17616f", 2.5,
                slice.at(r, c).kind == Cell::Kind::overhang);
}

}  // namespace

std::string as_svg(const Picture& picture) {
  double width = 0;
  double height = margin + static_cast<double>(picture.before.size()) * line_height;
  for (const std::string& line : picture.before)
    width = std::max(width, 2 * margin + 7.4 * static_cast<double>(line.size()));
  double largest = 0;
  for (const Slice& slice : picture.slices) {
    for (const Cell& cell : slice.cells) largest = std::max(largest, std::abs(cell.weight.value_or(0)));
    const double one = static_cast<double>(slice.columns) * cell_size;
    width = std::max(width, 2 * margin + 30 + one * (picture.weights ? 2 : 1) + (picture.weights ? gap : 0));
    const double title = 7.6 * static_cast<double>(title_of(slice, picture.weights).size());
    width = std::max(width, 2 * margin + 30 + title + (picture.weights ? one + gap : 0));
    height += gap + static_cast<double>(slice.rows) * cell_size;
  }
  height += margin + 2 * line_height;
  width = std::max(width, 560.0);

  Svg svg(width, height);
  double y = margin;
  for (const std::string& line : picture.before) {
    svg.text(margin, y, line, 13, "start", "#222");
    y += line_height;
  }
  for (const Slice& slice : picture.slices) {
    y += gap - line_height / 2;
    draw(svg, slice, false, largest, margin + 30, y);
    if (picture.weights)
      draw(svg, slice, true, largest, margin + 30 + static_cast<double>(slice.columns) * cell_size + gap, y);
    y += static_cast<double>(slice.rows) * cell_size + line_height / 2;
  }
  y += line_height;
  double x = margin;
  const auto legend = [&](const char* fill, const char* line, bool dashed, const std::string& what) {
    svg.box(x, y, 16, 16, fill, line, 2, dashed);
    svg.text(x + 22, y + 13, what, 12, "start", "#333");
    x += 40 + 7.2 * static_cast<double>(what.size());
  };
  if (!picture.slices.empty()) legend("#cfe8ef", "#17616f", false, "window");
  if (picture.has_winner) legend("#8fd6a5", "#17616f", false, "winner");
  if (picture.has_padding) legend("#fdf4dd", "#c9b27a", true, "padding");
  if (picture.has_overhang) legend("#fbeaea", "#c0504d", true, "overhang: does not exist");
  if (!picture.note.empty()) svg.text(x, y + 13, picture.note, 12, "start", "#666");
  return svg.finish();
}

}  // namespace cenote::cli
