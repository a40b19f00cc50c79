// The tour: pools a bundled picture by every operator, shows the results in the terminal, and checks the laws that the
// library is built on. `tour FILE.pgm` takes another picture (binary PGM, 8 bits).
#include <algorithm>
#include <cenote/dual.hpp>
#include <cenote/fraction.hpp>
#include <cenote/interval.hpp>
#include <cenote/pool.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

using namespace cenote;

namespace {

// Rows by columns, 0 to 1. Throws with the file's name and what is wrong with it.
Tensor<float> read_picture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::size_t at = 0;
  // The header's next word; comments run to the end of their line.
  const auto word = [&] {
    while (at < bytes.size() && (std::isspace(static_cast<unsigned char>(bytes[at])) != 0 || bytes[at] == '#')) {
      if (bytes[at] == '#')
        while (at < bytes.size() && bytes[at] != '\n') ++at;
      else
        ++at;
    }
    std::string out;
    while (at < bytes.size() && std::isspace(static_cast<unsigned char>(bytes[at])) == 0) out += bytes[at++];
    return out;
  };
  const auto number = [&](const char* name) {
    const std::string text = word();
    if (text.empty() || text.size() > 5 ||
        !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
      throw std::runtime_error(path + ": " + name + " is '" + text + "'; a number of up to five digits is legal");
    return static_cast<Index>(std::stol(text));
  };
  if (word() != "P5") throw std::runtime_error(path + ": not a binary PGM file (it must start with P5)");
  const Index width = number("width");
  const Index height = number("height");
  if (number("maximum") != 255) throw std::runtime_error(path + ": only 8-bit pictures (maximum 255) are read");
  ++at;  // the one space after the header
  const auto cells = static_cast<std::size_t>(width * height);
  if (bytes.size() < at + cells)
    throw std::runtime_error(path + ": " + std::to_string(cells) + " pixels announced, " +
                             std::to_string(bytes.size() - std::min(at, bytes.size())) + " found");
  Tensor<float> out({height, width});
  for (std::size_t i = 0; i < cells; ++i)
    out.data()[i] = static_cast<float>(static_cast<unsigned char>(bytes[at + i])) / 255;
  return out;
}

// Two pictures side by side, a character a cell.
void show(const char* left_name, const Tensor<float>& left, const char* right_name, const Tensor<float>& right) {
  static const std::string ink = " .:-=+*#%@";
  const auto line = [](const Tensor<float>& picture, Index row) {
    std::string out;
    for (Index column = 0; column < picture.dims()[1]; ++column) {
      const float value = std::clamp(picture.view()(row, column), 0.0F, 1.0F);
      out += ink[static_cast<std::size_t>(value * 9.99F)];
    }
    return out;
  };
  const int width = static_cast<int>(left.dims()[1]);
  std::printf("\n  %-*s   %s\n", width, left_name, right_name);
  for (Index row = 0; row < left.dims()[0]; ++row)
    std::printf("  %s   %s\n", line(left, row).c_str(), line(right, row).c_str());
}

template <class T>
T dot(const Tensor<T>& a, const Tensor<T>& b) {
  T sum(Index{0});
  for (std::size_t i = 0; i < a.data().size(); ++i) sum = sum + a.data()[i] * b.data()[i];
  return sum;
}

void check(const char* what, bool holds) {
  std::printf("  %-72s %s\n", what, holds ? "yes" : "NO");
  if (!holds) throw std::runtime_error(std::string("a law does not hold: ") + what);
}

// The same definitions at other scalars. The picture's corner, as small exact numbers with many ties.
void laws(const Tensor<float>& picture) {
  const Dims dims{12, 12};
  Tensor<Fraction> x(dims);
  Tensor<Fraction> dx(dims);
  Tensor<Dual<Fraction>> both(dims);
  Tensor<Interval> boxes(dims);
  for (Index i = 0; i < 144; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float shade = picture.view()(i / 12 % picture.dims()[0], i % 12 % picture.dims()[1]);
    x.data()[at] = Fraction(static_cast<Index>(shade * 8));
    dx.data()[at] = Fraction(i * 5 % 7 - 3);
    both.data()[at] = {x.data()[at], dx.data()[at]};
    boxes.data()[at] = Interval(static_cast<Index>(shade * 8));
  }
  const Sliding windows{.kernel = {3, 3}, .stride = 2, .padding = 1};
  const Geometry g = resolve(dims, windows);
  Tensor<Fraction> gy(g.out());
  for (std::size_t i = 0; i < gy.data().size(); ++i) gy.data()[i] = Fraction(static_cast<Index>(i * 3 % 5) - 2);

  std::printf("\nLaws, exactly, on %s:\n", describe(g).c_str());
  for (const auto& [name, ties] : {std::pair{"max, ties first: <J dx, gy> = <dx, J^T gy> over fractions", Ties::first},
                                   std::pair{"max, ties all:   <J dx, gy> = <dx, J^T gy> over fractions", Ties::all},
                                   std::pair{"max, ties split: <J dx, gy> = <dx, J^T gy> over fractions", Ties::split}})
    check(name, dot(max_pool_jvp(x, dx, windows, {ties}), gy) == dot(dx, max_pool_vjp(x, gy, windows, {ties})));
  check("average:         <J dx, gy> = <dx, J^T gy> over fractions",
        dot(avg_pool_jvp(x, dx, windows), gy) == dot(dx, avg_pool_vjp(x, gy, windows)));
  const auto dual = max_pool(both, windows);
  const auto value = max_pool(x, windows);
  const auto tangent = max_pool_jvp(x, dx, windows);
  bool equal = true;
  for (std::size_t i = 0; i < value.data().size(); ++i)
    equal = equal && dual.data()[i].value == value.data()[i] && dual.data()[i].tangent == tangent.data()[i];
  check("max at dual numbers is (max, JVP of max)", equal);
  const auto enclosure = smooth_max_pool(boxes, windows, {.beta = 3});
  Tensor<double> centres(dims);
  for (std::size_t i = 0; i < 144; ++i) centres.data()[i] = boxes.data()[i].lower();
  const auto smooth = smooth_max_pool(centres, windows, {.beta = 3});
  bool inside = true;
  for (std::size_t i = 0; i < smooth.data().size(); ++i)
    inside = inside && enclosure.data()[i].contains(smooth.data()[i]);
  check("smooth max at intervals encloses smooth max in binary64", inside);
}

void tour(const std::string& path) {
  const Tensor<float> picture = read_picture(path);
  const Sliding windows{.kernel = {4, 2}};  // a character is about twice as high as wide
  std::printf("%s\n%s\n", path.c_str(), describe(resolve(picture.dims(), windows, path)).c_str());
  show("max", max_pool(picture, windows), "average", avg_pool(picture, windows));
  show("min", min_pool(picture, windows), "smooth max, beta 20", smooth_max_pool(picture, windows, {.beta = 20}));
  const auto shares = [&](const Tensor<float>& gradient) {
    Tensor<float> out = max_pool(gradient, windows);
    for (float& cell : out.data()) cell = std::min(cell, 1.0F);
    return out;
  };
  const Tensor<float> ones(resolve(picture.dims(), Sliding{.kernel = {8, 8}}).out(), 1.0F);
  show("where max 8x8 sends its gradient", shares(max_pool_vjp(picture, ones, {.kernel = {8, 8}})),
       "where smooth max 8x8, beta 20, does",
       shares(smooth_max_pool_vjp(picture, ones, {.kernel = {8, 8}}, {.beta = 20})));
  std::printf("\n  the whole picture:  max %.4f  min %.4f  average %.4f  smooth max, beta 20: %.4f\n",
              static_cast<double>(global_max_pool(picture, {.last = 2}).data()[0]),
              static_cast<double>(global_min_pool(picture, {.last = 2}).data()[0]),
              static_cast<double>(global_avg_pool(picture, {.last = 2}).data()[0]),
              static_cast<double>(global_smooth_max_pool(picture, {.last = 2}, {.beta = 20}).data()[0]));
  laws(picture);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    tour(argc > 1 ? argv[1] : "examples/data/cenote.pgm");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tour: %s\n", error.what());
    return 2;
  }
}
