// Drawing nodes: a table in text, and a layered picture. Knows boxes and arrows, not graphs; draw.hpp makes the boxes.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "cenote/view.hpp"

namespace cenote::detail {

struct DrawnNode {
  enum class Kind : std::uint8_t { input, constant, operation, pooling };
  int number = 0;
  std::string name{};
  Dims shape{};
  std::vector<int> inputs{};  // numbers of others
  std::string parameters{};
  std::size_t kept = 0;  // bytes
  std::vector<std::string> outputs{};
  Kind kind = Kind::operation;
  bool used = true;
};

inline std::string bytes_in_words(std::size_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::size_t kibi = 1024;
  const bool large = bytes >= kibi * kibi;
  const std::size_t tenths = bytes * 10 / (large ? kibi * kibi : kibi);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + (large ? " MiB" : " KiB");
}

inline std::string joined(const std::vector<int>& numbers) {
  std::string out;
  for (const int n : numbers) out += (out.empty() ? "" : " ") + std::to_string(n);
  return out;
}

// Columns as wide as their widest entry.
inline std::string table_of(const std::vector<DrawnNode>& nodes) {
  std::vector<std::vector<std::string>> rows{{"node", "name", "shape", "inputs", "parameters", "keeps"}};
  for (const DrawnNode& node : nodes) {
    std::string words = node.parameters;
    const auto add = [&](const std::string& more) { words += (words.empty() ? "" : ", ") + more; };
    if (node.kind == DrawnNode::Kind::input) add("input");
    if (node.kind == DrawnNode::Kind::constant) add("constant");
    for (const std::string& name : node.outputs) add("output `" + name + "`");
    if (!node.used) add("unused");
    rows.push_back({std::to_string(node.number), node.name, to_string(node.shape), joined(node.inputs), words,
                    node.kept == 0 ? "" : bytes_in_words(node.kept)});
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

// Layers from top to bottom: a node stands below its inputs. Where an arrow passes a layer, a point of no width keeps
// its place there. Points are ordered by where their neighbours are, then moved towards them.
class Picture {
 public:
  Picture(const std::vector<DrawnNode>& nodes, const std::string& caption) : nodes_(nodes), caption_(caption) {
    make_layers();
    make_points();
    order_layers();
    place_points();
  }

  [[nodiscard]] std::string svg() const {
    double right = 0;
    for (const Point& point : points_) right = std::max(right, point.x + point.width / 2);
    const double width = std::max(right + margin, 2 * margin + 6.2 * static_cast<double>(caption_.size()));
    const double height = layer_y(layers_.size()) + (caption_.empty() ? 0 : 24);
    std::string out = R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" + number(width) + R"(" height=")" +
                      number(height) + R"(" viewBox="0 0 )" + number(width) + " " + number(height) +
                      R"(" font-family="Helvetica, Arial, sans-serif">
<rect width="100%" height="100%" fill="#ffffff"/>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0,1 L7,4 L0,7 z" fill="#8a97a6"/></marker></defs>
)";
    for (const Arrow& arrow : arrows_) out += drawn(arrow);
    for (std::size_t i = 0; i < nodes_.size(); ++i) out += drawn(nodes_[i], points_[i]);
    if (!caption_.empty()) out += text(margin, height - 14, 11, "#5b6773", caption_, "start");
    return out + "</svg>\n";
  }

 private:
  static constexpr double margin = 24, box_height = 56, layer_gap = 40, gap = 22;
  struct Point {
    std::size_t layer = 0;
    double width = 0, x = 0;
    std::vector<std::size_t> above{}, below{};
  };
  struct Arrow {
    std::vector<std::size_t> points;  // from top to bottom
  };

  static double layer_y(std::size_t layer) { return margin + static_cast<double>(layer) * (box_height + layer_gap); }
  static std::string number(double x) {
    std::array<char, 32> out{};
    std::snprintf(out.data(), out.size(), "%.1f", x);
    return out.data();
  }
  static std::string escaped(const std::string& words) {
    std::string out;
    for (const char c : words) out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
  }
  static std::string text(double x, double y, int size, const char* colour, const std::string& words,
                          const char* anchor, bool bold = false) {
    return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" font-size=\"" + std::to_string(size) + "\" fill=\"" +
           colour + "\" text-anchor=\"" + anchor + "\"" + (bold ? " font-weight=\"bold\"" : "") + ">" + escaped(words) +
           "</text>\n";
  }

  // The longest way from a node without inputs; those stand just above their first use.
  void make_layers() {
    const int most = nodes_.empty() ? 0 : nodes_.back().number;
    place_.assign(static_cast<std::size_t>(most) + 1, 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i) place_[static_cast<std::size_t>(nodes_[i].number)] = i;
    points_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const int from : nodes_[i].inputs)
        points_[i].layer = std::max(points_[i].layer, points_[place(from)].layer + 1);
    std::vector<std::size_t> first_use(nodes_.size(), nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const int from : nodes_[i].inputs)
        first_use[place(from)] = std::min(first_use[place(from)], points_[i].layer);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].inputs.empty() && first_use[i] < nodes_.size()) points_[i].layer = first_use[i] - 1;
  }
  [[nodiscard]] std::size_t place(int number) const { return place_[static_cast<std::size_t>(number)]; }

  void make_points() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::size_t letters = std::max(upper_line(nodes_[i]).size() * 8, lower_line(nodes_[i]).size() * 6);
      points_[i].width = std::max(
          {96.0, static_cast<double>(letters) + 28, static_cast<double>(nodes_[i].parameters.size()) * 5.6 + 24});
    }
    const std::size_t nodes = nodes_.size();
    for (std::size_t i = 0; i < nodes; ++i)
      for (const int from : nodes_[i].inputs) {
        Arrow arrow{{place(from)}};
        for (std::size_t layer = points_[place(from)].layer + 1; layer < points_[i].layer; ++layer) {
          points_.push_back({.layer = layer, .width = 12});
          arrow.points.push_back(points_.size() - 1);
        }
        arrow.points.push_back(i);
        for (std::size_t p = 1; p < arrow.points.size(); ++p) {
          points_[arrow.points[p - 1]].below.push_back(arrow.points[p]);
          points_[arrow.points[p]].above.push_back(arrow.points[p - 1]);
        }
        arrows_.push_back(std::move(arrow));
      }
    std::size_t layers = 0;
    for (const Point& point : points_) layers = std::max(layers, point.layer + 1);
    layers_.resize(layers);
    for (std::size_t p = 0; p < points_.size(); ++p) layers_[points_[p].layer].push_back(p);
  }

  // Each layer sorted by the mean place of its neighbours, downward and upward in turn.
  void order_layers() {
    std::vector<double> rank(points_.size());
    const auto number_layer = [&](const std::vector<std::size_t>& layer) {
      for (std::size_t k = 0; k < layer.size(); ++k) rank[layer[k]] = static_cast<double>(k);
    };
    for (const auto& layer : layers_) number_layer(layer);
    for (int round = 0; round < 8; ++round)
      for (std::size_t k = 0; k < layers_.size(); ++k) {
        auto& layer = layers_[round % 2 == 0 ? k : layers_.size() - 1 - k];
        std::vector<double> wish(points_.size());
        for (const std::size_t p : layer) {
          const auto& beside = round % 2 == 0 ? points_[p].above : points_[p].below;
          wish[p] = beside.empty() ? rank[p] : mean(beside, rank);
        }
        std::stable_sort(layer.begin(), layer.end(), [&](std::size_t a, std::size_t b) { return wish[a] < wish[b]; });
        number_layer(layer);
      }
  }
  static double mean(const std::vector<std::size_t>& of, const std::vector<double>& values) {
    double sum = 0;
    for (const std::size_t p : of) sum += values[p];
    return sum / static_cast<double>(of.size());
  }

  // Side by side at first; then each point goes towards the mean of its neighbours as far as those beside it allow.
  void place_points() {
    for (const auto& layer : layers_) {
      double x = margin;
      for (const std::size_t p : layer) {
        points_[p].x = x + points_[p].width / 2;
        x += points_[p].width + gap;
      }
    }
    for (int round = 0; round < 400; ++round)
      for (std::size_t k = 0; k < layers_.size(); ++k) settle(layers_[round % 2 == 0 ? k : layers_.size() - 1 - k]);
    double left = points_.empty() ? 0 : points_[0].x;
    for (const Point& point : points_) left = std::min(left, point.x - point.width / 2);
    for (Point& point : points_) point.x += margin - left;
  }
  void settle(const std::vector<std::size_t>& layer) {
    const auto leads = [&](std::size_t p) { return !points_[p].above.empty(); };
    std::vector<std::size_t> leaders;  // places in the layer; inputs and constants follow beside them
    for (std::size_t k = 0; k < layer.size(); ++k)
      if (leads(layer[k])) leaders.push_back(k);
    if (leaders.empty()) {
      leaders.resize(layer.size());
      std::iota(leaders.begin(), leaders.end(), std::size_t{0});
    }
    const auto apart = [&](std::size_t k) { return (points_[layer[k]].width + points_[layer[k + 1]].width) / 2 + gap; };
    std::vector<double> right, left, reach;
    for (std::size_t i = 0; i < leaders.size(); ++i) {
      const Point& point = points_[layer[leaders[i]]];
      double sum = 0, weights = 0;
      const auto pull = [&](std::size_t p) {
        const double weight = leads(p) ? 1 : 1e-3;
        sum += weight * points_[p].x;
        weights += weight;
      };
      for (const std::size_t p : point.above) pull(p);
      for (const std::size_t p : point.below) pull(p);
      right.push_back(weights == 0 ? point.x : sum / weights);
      reach.push_back(0);  // to the next leader
      for (std::size_t k = leaders[i]; i + 1 < leaders.size() && k < leaders[i + 1]; ++k) reach[i] += apart(k);
    }
    // The mean of pushing everything right and pushing everything left keeps the distances and favours neither side.
    left = right;
    for (std::size_t i = 1; i < leaders.size(); ++i) right[i] = std::max(right[i], right[i - 1] + reach[i - 1]);
    for (std::size_t i = leaders.size() - 1; i-- > 0;) left[i] = std::min(left[i], left[i + 1] - reach[i]);
    for (std::size_t i = 0; i < leaders.size(); ++i) points_[layer[leaders[i]]].x = (left[i] + right[i]) / 2;
    for (std::size_t k = leaders[0]; k-- > 0;) points_[layer[k]].x = points_[layer[k + 1]].x - apart(k);
    for (std::size_t k = leaders[0] + 1; k < layer.size(); ++k)
      if (std::find(leaders.begin(), leaders.end(), k) == leaders.end())
        points_[layer[k]].x = points_[layer[k - 1]].x + apart(k - 1);
  }

  static std::string upper_line(const DrawnNode& node) {
    std::string out = node.name;
    for (const std::string& output : node.outputs) out += " → " + output;
    return out;
  }
  static std::string lower_line(const DrawnNode& node) {
    return to_string(node.shape) + (node.kept == 0 ? "" : "  ·  keeps " + bytes_in_words(node.kept));
  }

  static std::string drawn(const DrawnNode& node, const Point& point) {
    struct Colours {
      const char *fill, *line;
    };
    static constexpr std::array<Colours, 4> colours{
        Colours{"#e8f1fb", "#7aa7d9"}, {"#f1f1f1", "#b0b0b0"}, {"#ffffff", "#8a97a6"}, {"#e3f4ee", "#3f9d7c"}};
    const Colours& colour = colours[static_cast<std::size_t>(node.kind)];
    const double x = point.x - point.width / 2, y = layer_y(point.layer), middle = point.x;
    const bool rounded = node.kind == DrawnNode::Kind::input || node.kind == DrawnNode::Kind::constant;
    std::string out = "<g opacity=\"" + std::string(node.used ? "1" : "0.4") + "\">\n";
    out += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(point.width) + "\" height=\"" +
           number(box_height) + "\" rx=\"" + (rounded ? "26" : "7") + "\" fill=\"" + colour.fill + "\" stroke=\"" +
           colour.line + "\" stroke-width=\"" + (node.outputs.empty() ? "1.3" : "2.6") + "\"/>\n";
    const bool details = !node.parameters.empty();
    out += text(middle, y + (details ? 19 : 25), 13, "#1f2933", upper_line(node), "middle", true);
    out += text(middle, y + (details ? 33 : 41), 11, "#44515e", lower_line(node), "middle");
    if (details) out += text(middle, y + 47, 10, "#7b8794", node.parameters, "middle");
    return out + "</g>\n";
  }

  [[nodiscard]] std::string drawn(const Arrow& arrow) const {
    const auto at = [&](std::size_t p) -> const Point& { return points_[arrow.points[p]]; };
    double x = at(0).x, y = layer_y(at(0).layer) + box_height;
    std::string path = "M" + number(x) + "," + number(y);
    for (std::size_t p = 1; p < arrow.points.size(); ++p) {
      const bool last = p + 1 == arrow.points.size();
      const double to_x = at(p).x, to_y = layer_y(at(p).layer) - (last ? 1 : 0);
      const double bend = (to_y - y) / 2;
      path += " C" + number(x) + "," + number(y + bend) + " " + number(to_x) + "," + number(to_y - bend) + " " +
              number(to_x) + "," + number(to_y);
      x = to_x;
      y = to_y;
      if (!last) path += " L" + number(x) + "," + number(y += box_height);
    }
    return "<path d=\"" + path +
           "\" fill=\"none\" stroke=\"#8a97a6\" stroke-width=\"1.4\" marker-end=\"url(#tip)\"/>\n";
  }

  const std::vector<DrawnNode>& nodes_;
  const std::string& caption_;
  std::vector<std::size_t> place_;  // in nodes_, by number
  std::vector<Point> points_;       // the nodes, then the points where arrows pass
  std::vector<Arrow> arrows_;
  std::vector<std::vector<std::size_t>> layers_;
};

inline std::string picture_of(const std::vector<DrawnNode>& nodes, const std::string& caption) {
  return Picture(nodes, caption).svg();
}

}  // namespace cenote::detail
