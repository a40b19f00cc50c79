// A page of SVG, piece by piece.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace cenote::cli {

class Svg {
 public:
  Svg(double width, double height) {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"Helvetica, Arial, sans-serif\">\n",
        width, height, width, height);
    box(0, 0, width, height, "#ffffff", "none", 0);
  }

  void box(double x, double y, double width, double height, const std::string& fill, const std::string& line,
           double thick, bool dashed = false) {
    add(R"(<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f")", x, y, width, height);
    out_ += " fill=\"" + fill + "\"";
    if (thick > 0) stroke(line, thick, dashed);
    out_ += "/>\n";
  }
  void line(double x1, double y1, double x2, double y2, const std::string& colour, double thick, bool dashed = false) {
    add(R"(<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f")", x1, y1, x2, y2);
    stroke(colour, thick, dashed);
    out_ += "/>\n";
  }
  void dot(double x, double y, double radius, const std::string& fill) {
    add(R"(<circle cx="%.1f" cy="%.1f" r="%.1f")", x, y, radius);
    out_ += " fill=\"" + fill + "\"/>\n";
  }
  void text(double x, double y, const std::string& words, double size, const std::string& anchor,
            const std::string& colour) {
    add(R"(<text x="%.1f" y="%.1f" font-size="%.0f")", x, y, size);
    out_ += " text-anchor=\"" + anchor + "\" fill=\"" + colour + "\">";
    for (const char c : words) out_ += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    out_ += "</text>\n";
  }
  [[nodiscard]] std::string finish() const { return out_ + "</svg>\n"; }

 private:
  template <class... N>
  void add(const char* format, N... numbers) {
    std::array<char, 320> text{};
    std::snprintf(text.data(), text.size(), format, numbers...);  // NOLINT: every format is a literal of this file
    out_ += text.data();
  }
  void stroke(const std::string& colour, double thick, bool dashed) {
    out_ += " stroke=\"" + colour + "\"";
    add(" stroke-width=\"%.1f\"", thick);
    if (dashed) out_ += " stroke-dasharray=\"4 3\"";
  }

  std::string out_;
};

}  // namespace cenote::cli
