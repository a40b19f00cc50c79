#include "parts.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace cenote::cli {

namespace {

// The cells between the first and the last tap of outputs [begin, end), inside the input, and the padding around them.
struct Span {
  Index begin = 0, size = 0;
  Pad padding{};
};

Span span_of(const Axis& axis, Index begin, Index end) {
  if (begin == 0 && end == axis.out) return {0, axis.in, axis.padding};
  switch (axis.kind) {
    case Axis::Kind::identity: return {begin, end - begin, {}};
    case Axis::Kind::adaptive: {
      const Index start = adaptive_start(begin, axis.in, axis.out);
      return {start, adaptive_end(end - 1, axis.in, axis.out) - start, {}};
    }
    case Axis::Kind::sliding: break;
  }
  const Index first = begin * axis.stride - axis.padding.low;
  const Index last = (end - 1) * axis.stride - axis.padding.low + (axis.kernel - 1) * axis.dilation;
  const Index from = std::max<Index>(first, 0);
  const Index to = std::min(axis.in, last + 1);
  // The last part keeps all padding behind it, so that ceil rounding drops the window that it dropped before (G3).
  const Index padded = axis.in + axis.padding.high;
  const Index padded_to = end == axis.out && last >= axis.in ? padded : std::min(last + 1, padded);
  return {from, to - from, {from - first, std::max<Index>(padded_to - to, 0)}};
}

// Outputs whose window lies before or behind the input altogether stay with their neighbours: a part needs a cell.
struct Reach {
  Index first = 0, end = 0;
};
Reach reach_of(const Axis& axis) {
  if (axis.kind != Axis::Kind::sliding) return {0, axis.out};
  const Index before = axis.padding.low - (axis.kernel - 1) * axis.dilation;  // starts below it end before the input
  const Index first = before > 0 ? detail::ceil_div(before, axis.stride) : 0;
  return {std::min(first, axis.out - 1), std::min(axis.out, (axis.in - 1 + axis.padding.low) / axis.stride + 1)};
}

// Outputs that may be cut apart: adaptive windows repeat with this period, and alone each is a window of its own.
Index period_of(const Axis& axis) {
  return axis.kind == Axis::Kind::adaptive ? axis.out / std::gcd(axis.in, axis.out) : 1;
}

bool cuts_anywhere(const Axis& axis) {
  const Reach reach = reach_of(axis);
  return reach.first == 0 && reach.end == axis.out;
}

// The output ranges along the axis that is cut.
std::vector<std::pair<Index, Index>> ranges_of(const Axis& axis, Index step) {
  std::vector<std::pair<Index, Index>> out;
  const Reach reach = reach_of(axis);
  for (Index begin = 0; begin < axis.out;) {
    Index end = std::min(axis.out, std::max(begin, reach.first) + step);
    if (end >= reach.end) end = axis.out;
    out.emplace_back(begin, end);
    begin = end;
  }
  return out;
}

Geometry part_geometry(const Geometry& g, const Part& part, const std::vector<Pad>& padding) {
  Dims axes;
  Dims kernel;
  Dims stride;
  Dims dilation;
  Dims output;
  Pads pads;
  bool sliding = false;
  for (int a = 0; a < g.rank(); ++a) {
    const Axis& axis = g.axis(a);
    if (!axis.pooled()) continue;
    sliding = axis.kind == Axis::Kind::sliding;
    axes.push_back(a);
    kernel.push_back(axis.kernel);
    stride.push_back(axis.stride);
    dilation.push_back(axis.dilation);
    pads.push_back(padding[static_cast<std::size_t>(a)]);
    output.push_back(part.out_size[a]);
  }
  if (axes.rank == 0) return g;
  const Geometry made = sliding ? resolve(part.in_size, Sliding{.kernel = kernel,
                                                                .stride = stride,
                                                                .padding = pads,
                                                                .dilation = dilation,
                                                                .rounding = g.rounding(),
                                                                .axes = axes})
                                : resolve(part.in_size, Adaptive{.output = output, .axes = axes});
  if (!(made.out() == part.out_size)) throw std::logic_error("a part has other outputs than were cut out");
  return made;
}

Part make_part(const Geometry& g, const Dims& begin, const Dims& size) {
  Part part{begin, size, {}, {}, {}};
  std::vector<Pad> padding;
  for (int a = 0; a < g.rank(); ++a) {
    const Span span = span_of(g.axis(a), begin[a], begin[a] + size[a]);
    part.in_begin.push_back(span.begin);
    part.in_size.push_back(span.size);
    padding.push_back(span.padding);
  }
  const bool whole = part.in_size == g.in() && size == g.out_kept();
  part.geometry = whole ? g : part_geometry(g, part, padding);
  return part;
}

// The bytes of the largest part of a cut; sizes were checked, sums of two products in doubles are near enough.
double bytes_of(const Geometry& g, const CutOptions& options, int level, Index step) {
  double in = static_cast<double>(options.input_bytes);
  double out = static_cast<double>(options.output_bytes);
  for (int l = 0; l < g.rank(); ++l) {
    const Axis& axis = g.axis(axis_at(g, l, options.fortran));
    Index taps = axis.in;
    Index outputs = axis.out;
    if (l <= level) {
      outputs = std::min(axis.out, l < level ? 1 : step);
      switch (axis.kind) {
        case Axis::Kind::identity: taps = outputs; break;
        case Axis::Kind::sliding: taps = (outputs - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1; break;
        case Axis::Kind::adaptive: taps = detail::ceil_div(axis.in, axis.out) * outputs + 1; break;
      }
    }
    in *= static_cast<double>(std::min(taps, axis.in));
    out *= static_cast<double>(outputs);
  }
  return in + out;
}

}  // namespace

Geometry with_axes_kept(const Geometry& g) {
  Dims axes;
  for (int a = 0; a < g.rank(); ++a)
    if (g.drops(a)) axes.push_back(a);
  return axes.rank == 0 ? g : resolve(g.in(), Global{.axes = axes});
}

Dims strides_of(const Dims& dims, bool fortran) {
  if (!fortran) return row_major(dims);
  Dims turned;
  for (int a = dims.rank - 1; a >= 0; --a) turned.push_back(dims[a]);
  const Dims strides = row_major(turned);
  Dims out;
  for (int a = dims.rank - 1; a >= 0; --a) out.push_back(strides[a]);
  return out;
}

Cut choose_cut(const Geometry& g, const CutOptions& options) {
  if (g.rank() == 0) return {0, 1, options.input_bytes + options.output_bytes};
  const auto memory = static_cast<double>(options.memory);
  Cut cut;
  bool scattered = false;  // rows of a part lie far from each other: the longer the fewer
  for (int level = 0; level < g.rank(); ++level) {
    const Axis& axis = g.axis(axis_at(g, level, options.fortran));
    const Index period = period_of(axis);
    const Index unit = bytes_of(g, options, level, period) <= memory ? period : 1;
    cut = {level, unit, static_cast<Index>(std::min(bytes_of(g, options, level, unit), 9e18))};
    if (static_cast<double>(cut.bytes) <= memory) {
      const double most = scattered ? memory : std::min(memory, static_cast<double>(options.comfortable));
      while (unit == period && cut.step < axis.out && bytes_of(g, options, level, cut.step * 2) <= most) cut.step *= 2;
      cut.bytes = static_cast<Index>(bytes_of(g, options, level, cut.step));
      return cut;
    }
    // Too large for one output along this axis: on to the next, if this one may be taken output by output.
    if (options.in_order && axis.pooled() && axis.in > 1) break;
    if (!cuts_anywhere(axis)) break;
    scattered = scattered || (axis.pooled() && axis.in > 1);
  }
  return cut;
}

void for_each_part(const Geometry& g, const Cut& cut, bool fortran, const std::function<void(const Part&)>& visit) {
  if (volume(g.out_kept()) == 0) return;
  if (g.rank() == 0) return visit(make_part(g, {}, {}));
  Dims outer;  // sizes of the axes before the one that is cut, outermost first
  for (int l = 0; l < cut.level; ++l) outer.push_back(g.axis(axis_at(g, l, fortran)).out);
  const auto ranges = ranges_of(g.axis(axis_at(g, cut.level, fortran)), cut.step);
  for_each_index(outer, [&](const Dims& index) {
    for (const auto& [from, to] : ranges) {
      Dims begin = Dims::filled(g.rank(), 0);
      Dims size = g.out_kept();
      for (int l = 0; l < cut.level; ++l) {
        begin[axis_at(g, l, fortran)] = index[l];
        size[axis_at(g, l, fortran)] = 1;
      }
      begin[axis_at(g, cut.level, fortran)] = from;
      size[axis_at(g, cut.level, fortran)] = to - from;
      visit(make_part(g, begin, size));
    }
  });
}

}  // namespace cenote::cli
