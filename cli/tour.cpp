// `cenote tour`: a newcomer's first minute. A picture pooled in three ways, the laws that the library stands on, and
// its speed beside memcpy's.
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "arguments.hpp"
#include "cenote/dual.hpp"
#include "cenote/fraction.hpp"
#include "cenote/interval.hpp"
#include "cenote/pool.hpp"
#include "loaded.hpp"
#include "sheet.hpp"
#include "timing.hpp"

namespace cenote::cli {

namespace {

// The first three channels of a picture, or grey three times, as numbers from 0 to 1.
Tensor<float> colours_of(const Loaded& loaded) {
  const Header& header = loaded.header();
  if (!header.picture || header.spatial() != 2)
    throw FileError(loaded.name() + ": is no picture of rows and columns; PNG and TIFF of one page are legal");
  const Tensor<float> all = loaded.as<float>(Element::f32);
  const Index channels = header.channels ? header.dims[2] : 1;
  const float white = header.type == Element::u8 ? 255.0F : header.type == Element::u16 ? 65535.0F : 1.0F;
  Tensor<float> out({header.dims[0], header.dims[1], 3});
  for_each_index(out.dims(), [&](const Dims& at) {
    const Index cell = (at[0] * header.dims[1] + at[1]) * channels + (channels >= 3 ? at[2] : 0);
    out.view()[at] = all.data()[static_cast<std::size_t>(cell)] / white;
  });
  return out;
}

Tensor<std::uint8_t> pixels_of(const Tensor<float>& picture) {
  Tensor<std::uint8_t> out(picture.dims());
  for (std::size_t i = 0; i < out.data().size(); ++i)
    out.data()[i] = static_cast<std::uint8_t>(std::lround(std::clamp(picture.data()[i], 0.0F, 1.0F) * 255.0F));
  return out;
}

template <class T>
T dot(const Tensor<T>& a, const Tensor<T>& b) {
  T sum(Index{0});
  for (std::size_t i = 0; i < a.data().size(); ++i) sum = sum + a.data()[i] * b.data()[i];
  return sum;
}

void report(const char* what, bool holds) {
  std::printf("  %-66s %s\n", what, holds ? "yes" : "NO");
  if (!holds) throw FileError(std::string("a law does not hold: ") + what);
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
    const float shade = picture.view()(i / 12 % picture.dims()[0], i % 12 % picture.dims()[1], 0);
    x.data()[at] = Fraction(static_cast<Index>(shade * 8));
    dx.data()[at] = Fraction(i * 5 % 7 - 3);
    both.data()[at] = {x.data()[at], dx.data()[at]};
    boxes.data()[at] = Interval(static_cast<Index>(shade * 8));
  }
  const Sliding windows{.kernel = {3, 3}, .stride = 2, .padding = 1};
  const Geometry g = resolve(dims, windows);
  Tensor<Fraction> gy(g.out());
  for (std::size_t i = 0; i < gy.data().size(); ++i) gy.data()[i] = Fraction(static_cast<Index>(i * 3 % 5) - 2);

  std::printf("\nThe two derivatives are adjoint, <J dx, gy> = <dx, J^T gy>, exactly, over\nfractions, on %s:\n",
              describe(g).c_str());
  for (const auto& [name, ties] : {std::pair{"max, ties to the first", Ties::first},
                                   std::pair{"max, ties to all", Ties::all}, std::pair{"max, ties split", Ties::split}})
    report(name, dot(max_pool_jvp(x, dx, windows, {ties}), gy) == dot(dx, max_pool_vjp(x, gy, windows, {ties})));
  report("average", dot(avg_pool_jvp(x, dx, windows), gy) == dot(dx, avg_pool_vjp(x, gy, windows)));

  std::printf("and the same few lines of code keep their meaning at other numbers:\n");
  const auto dual = max_pool(both, windows);
  const auto value = max_pool(x, windows);
  const auto tangent = max_pool_jvp(x, dx, windows);
  bool equal = true;
  for (std::size_t i = 0; i < value.data().size(); ++i)
    equal = equal && dual.data()[i].value == value.data()[i] && dual.data()[i].tangent == tangent.data()[i];
  report("max of dual numbers is max and its derivative", equal);
  const auto enclosure = smooth_max_pool(boxes, windows, {.beta = 3});
  Tensor<double> centres(dims);
  for (std::size_t i = 0; i < 144; ++i) centres.data()[i] = boxes.data()[i].lower();
  const auto smooth = smooth_max_pool(centres, windows, {.beta = 3});
  bool inside = true;
  for (std::size_t i = 0; i < smooth.data().size(); ++i)
    inside = inside && enclosure.data()[i].contains(smooth.data()[i]);
  report("smooth max of intervals encloses smooth max in f64", inside);
}

// Time of memcpy over time of pooling, on an array that no cache holds.
void speed() {
  const Geometry g = resolve({64, 512, 512}, Sliding{.kernel = {2, 2}});
  const Tensor<float> x(g.in(), 1.0F);
  Tensor<float> y(g.out());
  Tensor<float> copy(g.in());
  const int threads = num_threads();
  const double copying =
      seconds_of([&] { copy_in_parallel(x.data().data(), copy.data().data(), volume(g.in()), threads); }, 5);
  std::printf("\nSpeed on %d threads (%s), %s, f32, time of memcpy = 100 %%:\n", threads, target().c_str(),
              describe(g).c_str());
  const auto show = [&](const char* name, double seconds) {
    std::printf("  %-14s %4.0f %%  %6.1f GB/s read\n", name, 100 * copying / seconds,
                static_cast<double>(volume(g.in())) * 4e-9 / seconds);
  };
  show("memcpy", copying);
  show("max", seconds_of([&] { forward<float>(Max{}, g, x.view(), y.view()); }, 5));
  show("average", seconds_of([&] { forward<float>(Average{}, g, x.view(), y.view()); }, 5));
  show("smooth max", seconds_of([&] { forward<float>(SmoothMax{10}, g, x.view(), y.view()); }, 5));
}

}  // namespace

int tour(const TourArguments& a) {
  constexpr Index most_numbers = Index{1} << 26;  // which are held as f32, several times
  const Tensor<float> picture = colours_of(Loaded(a.picture, most_numbers));
  const Sliding windows{.kernel = {8, 8}, .axes = {0, 1}};
  std::printf("%s\n%s\n", a.picture.c_str(), describe(resolve(picture.dims(), windows, "tour")).c_str());
  const Tensor<std::uint8_t> sheet =
      contact_sheet({{"input", pixels_of(picture)},
                     {"max 8x8", pixels_of(max_pool(picture, windows))},
                     {"average 8x8", pixels_of(avg_pool(picture, windows))},
                     {"smooth max 8x8, beta 50", pixels_of(smooth_max_pool(picture, windows, {.beta = 50}))}});
  Header header;
  header.type = Element::u8;
  header.dims = sheet.dims();
  header.picture = header.channels = true;
  const auto sink = open_sink(a.output, Format::png, header);
  sink->write(reinterpret_cast<const std::byte*>(sheet.data().data()), volume(sheet.dims()));
  sink->finish();
  laws(picture);
  speed();
  std::printf("\nInput, max, average and smooth max side by side: %s\n",
              std::filesystem::absolute(a.output).lexically_normal().c_str());
  return 0;
}

}  // namespace cenote::cli
