// Geometry: which cells of the input feed which output. Sliding, adaptive and global windows, the one place where
// their arguments are validated (`resolve`), and their printed form. Integers only: no element is ever touched here.
#pragma once

#include <concepts>
#include <numeric>
#include <optional>

#include "cenote/view.hpp"

namespace cenote {

// ---- what a caller writes ---------------------------------------------------------------------------------------

// One number for each pooled axis, or a single number for all of them: {3} is a list of one, 3 is every axis.
struct PerAxis {
  Dims entries{};
  bool every = false;  // entries[0] stands for every axis

  constexpr PerAxis() = default;
  constexpr PerAxis(Index number) : entries{number}, every(true) {}  // NOLINT(google-explicit-constructor)
  constexpr PerAxis(std::initializer_list<Index> list) : entries(list) {}
  constexpr PerAxis(const Dims& list) : entries(list) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] constexpr bool given() const { return entries.rank > 0; }
  constexpr Index operator[](int i) const { return entries[every ? 0 : i]; }
};

// Padding of one axis: `low` cells before the input, `high` cells after it.
struct Pad {
  Index low = 0, high = 0;

  constexpr Pad() = default;
  constexpr Pad(Index both) : low(both), high(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Pad(Index before, Index after) : low(before), high(after) {}
};

// Padding: one number for all, one per axis, a {low, high} pair per axis, or one of the helpers `same`, `same_lower`
// (output size = input size / stride, rounded up; an odd cell goes to the high or to the low end) and `valid` (none).
struct Pads {
  enum class Kind : std::uint8_t { given, same, same_lower };
  std::array<Pad, max_rank> entries{};
  int rank = 0;
  bool every = false;
  Kind kind = Kind::given;

  constexpr Pads() = default;
  constexpr Pads(Index number) : rank(1), every(true) { entries[0] = number; }  // NOLINT(google-explicit-constructor)
  constexpr Pads(std::initializer_list<Pad> list) {
    for (const Pad& pad : list) push_back(pad);
  }
  constexpr explicit Pads(Kind helper) : kind(helper) {}
  constexpr void push_back(const Pad& pad) {
    if (rank == max_rank) raise({Rule::rank_limit, "padding", -1, rank + 1, max_rank}, "Pads");
    entries[static_cast<std::size_t>(rank++)] = pad;
  }
  constexpr Pad operator[](int i) const { return entries[static_cast<std::size_t>(every ? 0 : i)]; }
};
inline constexpr Pads same{Pads::Kind::same};
inline constexpr Pads same_lower{Pads::Kind::same_lower};
inline constexpr Pads valid(0);

enum class Rounding : std::uint8_t { floor, ceil };

// Windows that slide (G1 to G3). The stride defaults to the kernel. `axes` names the pooled axes (negative ones count
// from the end); by default they are the last ones, as many as the kernel has entries.
struct Sliding {
  PerAxis kernel{};
  PerAxis stride{};
  Pads padding = 0;
  PerAxis dilation = 1;
  Rounding rounding = Rounding::floor;
  Dims axes{};
};

// Windows that divide the input into `output` nearly equal parts (G4).
struct Adaptive {
  PerAxis output{};
  Dims axes{};
};

// One window over everything (G5): the last `last` axes, or the ones named. `keep` leaves them behind with size 1.
struct Global {
  int last = 0;
  Dims axes{};
  bool keep = true;
};

template <class G>
concept WindowSpec = std::same_as<G, Sliding> || std::same_as<G, Adaptive> || std::same_as<G, Global>;

// ---- what it resolves to ----------------------------------------------------------------------------------------

// The taps of one output along one axis.
struct AxisWindow {
  Index start = 0;   // input position of the first real tap
  Index first = 0;   // its number inside the window
  Index real = 0;    // taps that lie in the input
  Index padded = 0;  // taps that lie in the padded input
};

// One axis of a geometry, checked.
struct Axis {
  enum class Kind : std::uint8_t { identity, sliding, adaptive };
  Kind kind = Kind::identity;
  Index in = 0, out = 0;
  Index kernel = 1, stride = 1, dilation = 1;  // of an adaptive axis: the largest window, and no more
  Pad padding{};

  [[nodiscard]] constexpr bool pooled() const { return kind != Kind::identity; }
  [[nodiscard]] constexpr AxisWindow window(Index o) const;
  // Input position of tap w of output o; outside the input for taps that are not real.
  [[nodiscard]] constexpr Index position(Index o, Index w) const;
};

namespace detail {

// floor(i * n / m) for 0 <= i <= m without overflow (G4).
constexpr Index scaled(Index i, Index n, Index m) {
  constexpr Index safe = Index{1} << 31;
  if (i < safe && n < safe) return i * n / m;
  __extension__ using Wide = unsigned __int128;
  return static_cast<Index>(static_cast<Wide>(i) * static_cast<Wide>(n) / static_cast<Wide>(m));
}

constexpr Index ceil_div(Index a, Index b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace detail

// First cell of an adaptive window, and the cell after its last one (G4).
constexpr Index adaptive_start(Index i, Index in, Index out) { return detail::scaled(i, in, out); }
constexpr Index adaptive_end(Index i, Index in, Index out) { return in - detail::scaled(out - i - 1, in, out); }

constexpr AxisWindow Axis::window(Index o) const {
  switch (kind) {
    case Kind::identity: return {o, 0, 1, 1};
    case Kind::adaptive: {
      const Index start = adaptive_start(o, in, out);
      const Index count = adaptive_end(o, in, out) - start;
      return {start, 0, count, count};
    }
    case Kind::sliding: break;
  }
  const Index begin = o * stride - padding.low;
  const Index last = begin + (kernel - 1) * dilation;
  if (begin >= 0 && last < in) return {begin, 0, kernel, kernel};
  // Taps 0 .. padded-1 lie in the padded input, taps first .. end-1 in the input itself.
  const Index padded = last < in + padding.high ? kernel : (in + padding.high - 1 - begin) / dilation + 1;
  const Index end = begin >= in ? 0 : (last < in ? kernel : (in - 1 - begin) / dilation + 1);
  const Index first = begin >= 0 ? 0 : detail::ceil_div(-begin, dilation);
  if (first >= end) return {0, 0, 0, padded};
  return {begin + first * dilation, first, end - first, padded};
}

constexpr Index Axis::position(Index o, Index w) const {
  switch (kind) {
    case Kind::identity: return o;
    case Kind::adaptive: return adaptive_start(o, in, out) + w;
    case Kind::sliding: break;
  }
  return o * stride + w * dilation - padding.low;
}

// A checked geometry: every axis of the input, pooled or not. Only resolve and try_resolve make one.
class Geometry {
 public:
  [[nodiscard]] constexpr int rank() const { return rank_; }
  [[nodiscard]] constexpr const Axis& axis(int a) const { return axes_[static_cast<std::size_t>(a)]; }
  [[nodiscard]] constexpr Dims in() const {
    Dims dims;
    for (int a = 0; a < rank_; ++a) dims.push_back(axis(a).in);
    return dims;
  }
  // One output size per input axis; the shape of a result differs where pooled axes are dropped (G5).
  [[nodiscard]] constexpr Dims out_kept() const {
    Dims dims;
    for (int a = 0; a < rank_; ++a) dims.push_back(axis(a).out);
    return dims;
  }
  [[nodiscard]] constexpr Dims out() const {
    Dims dims;
    for (int a = 0; a < rank_; ++a)
      if (!drops(a)) dims.push_back(axis(a).out);
    return dims;
  }
  [[nodiscard]] constexpr bool drops(int a) const { return drop_ && axis(a).pooled(); }
  [[nodiscard]] constexpr Rounding rounding() const { return rounding_; }
  // Taps of the largest window, as a box: what winners count in (M6).
  [[nodiscard]] constexpr Dims window_box() const {
    Dims dims;
    for (int a = 0; a < rank_; ++a) dims.push_back(axis(a).kernel);
    return dims;
  }

  // Some window has no real tap (G6).
  [[nodiscard]] constexpr bool has_empty_windows() const {
    for (int a = 0; a < rank_; ++a)
      for (Index o = 0; o < axis(a).out; ++o)
        if (axis(a).window(o).real == 0) return true;
    return false;
  }

  friend struct Resolver;

 private:
  std::array<Axis, max_rank> axes_{};
  int rank_ = 0;
  Rounding rounding_ = Rounding::floor;
  bool drop_ = false;
};

// A geometry, or the rule that its arguments break.
struct Resolved {
  Geometry geometry{};
  std::optional<Problem> problem{};
};

// The validation. Each step returns at the first broken rule, in the order a reader would check them.
struct Resolver {
  Resolved result{};

  constexpr bool fail(const Problem& problem) {
    result.problem = problem;
    return false;
  }
  constexpr Axis& axis(int a) { return result.geometry.axes_[static_cast<std::size_t>(a)]; }

  constexpr bool sizes(const Dims& dims, const char* argument) {
    const auto problem = size_problem(dims, argument);
    return !problem || fail(*problem);
  }

  constexpr bool input(const Dims& in) {
    result.geometry.rank_ = in.rank;
    for (int a = 0; a < in.rank; ++a) axis(a).in = axis(a).out = in[a];
    return sizes(in, "input");
  }

  // The input axis of each window entry: the axes named, or the last ones.
  constexpr bool pooled_axes(const PerAxis& entries, const char* argument, const Dims& named, Dims& axes) {
    const int rank = result.geometry.rank_;
    if (!entries.given()) return fail({Rule::kernel_missing, argument});
    if (named.rank == 0 && entries.every) return fail({Rule::axes_ambiguous, argument, -1, entries[0]});
    const int count = named.rank > 0 ? named.rank : entries.entries.rank;
    if (!entries.every && entries.entries.rank != count)
      return fail({Rule::length_mismatch, argument, -1, entries.entries.rank, count});
    if (count > rank) return fail({Rule::axes_count, named.rank > 0 ? "axes" : argument, -1, count, rank});
    for (int i = 0; i < count; ++i) {
      const Index a = named.rank == 0 ? rank - count + i : (named[i] < 0 ? named[i] + rank : named[i]);
      if (a < 0 || a >= rank) return fail({Rule::axis_range, "axes", -1, named[i], rank});
      for (int j = 0; j < i; ++j)
        if (axes[j] == a) return fail({Rule::axis_unique, "axes", -1, a});
      if (axis(static_cast<int>(a)).in == 0) return fail({Rule::pooled_axis_empty, "input", static_cast<int>(a)});
      axes.push_back(a);
    }
    return true;
  }

  constexpr bool length(int rank, bool every, const char* argument, int count) {
    return every || rank == 0 || rank == count || fail({Rule::length_mismatch, argument, -1, rank, count});
  }

  // What (outputs - 1) * stride + span cells need beyond the input.
  static constexpr Pad same_pad(Index in, Index stride, Index span, Pads::Kind kind) {
    const Index reach = (detail::ceil_div(in, stride) - 1) * stride;  // < in, so it cannot overflow
    const Index total = span > in - reach ? span - (in - reach) : 0;
    return kind == Pads::Kind::same ? Pad{total / 2, total - total / 2} : Pad{total - total / 2, total / 2};
  }

  constexpr bool slide(int a, Index kernel, Index stride, Index dilation, const Pads& pads, int entry,
                       Rounding rounding) {
    if (kernel < 1) return fail({Rule::kernel_positive, "kernel", a, kernel});
    if (stride < 1) return fail({Rule::stride_positive, "stride", a, stride});
    if (dilation < 1) return fail({Rule::dilation_positive, "dilation", a, dilation});
    Axis& to = axis(a);
    Index span = 0;  // dilation * (kernel - 1) + 1, checked
    if (__builtin_mul_overflow(dilation, kernel - 1, &span) || __builtin_add_overflow(span, 1, &span))
      return fail({Rule::size_overflow, "kernel", a, kernel, dilation});
    const Pad pad = pads.kind == Pads::Kind::given ? pads[entry] : same_pad(to.in, stride, span, pads.kind);
    if (pad.low < 0 || pad.high < 0)
      return fail({Rule::padding_nonnegative, "padding", a, pad.low < 0 ? pad.low : pad.high});
    Index padded = 0;
    if (__builtin_add_overflow(to.in, pad.low, &padded) || __builtin_add_overflow(padded, pad.high, &padded))
      return fail({Rule::size_overflow, "padding", a, pad.low, pad.high});
    Index out = 0;
    if (rounding == Rounding::floor) {  // G2
      if (span > padded) return fail({Rule::window_fits, "kernel", a, span, padded});
      out = (padded - span) / stride + 1;
    } else {  // G3: round up, then the last window must start in the input or in the low padding
      out = span > padded ? 1 - (span - padded) / stride : detail::ceil_div(padded - span, stride) + 1;
      Index start = 0;
      if (out > 0 && (__builtin_mul_overflow(out - 1, stride, &start) || start >= to.in + pad.low)) --out;
      if (out < 1) return fail({Rule::window_starts, "kernel", a, span, padded});
      if (__builtin_add_overflow(to.in - 1, span - 1, &start))  // the end of the last window's overhang
        return fail({Rule::size_overflow, "kernel", a, span, to.in});
    }
    to = {Axis::Kind::sliding, to.in, out, kernel, stride, dilation, pad};
    return true;
  }

  constexpr bool adapt(int a, Index output) {
    if (output < 1) return fail({Rule::output_positive, "output", a, output});
    const Index in = axis(a).in;
    const Index rest = in % output;  // a window that starts inside a cell reaches into one or two more
    const Index extra = rest == 0 ? 0 : (rest > std::gcd(rest, output) ? 2 : 1);
    axis(a) = {Axis::Kind::adaptive, in, output, in / output + extra, 1, 1, {}};
    return true;
  }

  constexpr bool output_fits() {
    return sizes(result.geometry.out_kept(), "output") && sizes(result.geometry.window_box(), "kernel");
  }

  constexpr bool run(const Dims& in, const Sliding& s) {
    Dims axes;
    if (!input(in) || !pooled_axes(s.kernel, "kernel", s.axes, axes)) return false;
    if (!length(s.stride.entries.rank, s.stride.every, "stride", axes.rank) ||
        !length(s.dilation.entries.rank, s.dilation.every, "dilation", axes.rank) ||
        !length(s.padding.rank, s.padding.every, "padding", axes.rank))
      return false;
    result.geometry.rounding_ = s.rounding;
    for (int i = 0; i < axes.rank; ++i)
      if (!slide(static_cast<int>(axes[i]), s.kernel[i], s.stride.given() ? s.stride[i] : s.kernel[i],
                 s.dilation.given() ? s.dilation[i] : 1, s.padding, i, s.rounding))
        return false;
    return output_fits();
  }

  constexpr bool run(const Dims& in, const Adaptive& s) {
    Dims axes;
    if (!input(in) || !pooled_axes(s.output, "output", s.axes, axes)) return false;
    for (int i = 0; i < axes.rank; ++i)
      if (!adapt(static_cast<int>(axes[i]), s.output[i])) return false;
    return output_fits();
  }

  constexpr bool run(const Dims& in, const Global& s) {
    if (s.last < 0 || s.last > in.rank) return fail({Rule::axes_count, "last", -1, s.last, in.rank});
    if (s.last > 0 && s.axes.rank > 0) return fail({Rule::axes_conflict, "last", -1, s.last, s.axes.rank});
    Dims axes = s.axes;
    if (axes.rank == 0)
      for (int i = 0; i < s.last; ++i) axes.push_back(in.rank - s.last + i);
    if (axes.rank == 0) return fail({Rule::axes_missing, "axes"});
    result.geometry.drop_ = !s.keep;
    return run(in, Adaptive{.output = 1, .axes = axes});
  }
};

// The geometry of an input, or the first rule that its arguments break.
template <WindowSpec G>
constexpr Resolved try_resolve(const Dims& in, const G& spec) {
  Resolver resolver;
  resolver.run(in, spec);
  return resolver.result;
}

namespace detail {

[[gnu::cold, gnu::noinline, noreturn]] inline void raise_unresolved(const Problem& problem, std::string_view caller,
                                                                    const Dims& in) {
  raise(problem, caller, "input " + to_string(in));
}

}  // namespace detail

// The geometry of an input; throws ShapeError. `caller` opens the message.
template <WindowSpec G>
constexpr Geometry resolve(const Dims& in, const G& spec, std::string_view caller = "resolve") {
  const Resolved resolved = try_resolve(in, spec);
  if (resolved.problem) detail::raise_unresolved(*resolved.problem, caller, in);
  return resolved.geometry;
}

// ---- one window -------------------------------------------------------------------------------------------------

// A tap that exists: its position in the input, which lies outside it where the tap is padding.
struct TapPlace {
  Dims position;
  bool real;
};

// The taps of one output, row-major, padding included. `index` is an index of the result.
inline std::vector<TapPlace> taps(const Geometry& g, const Dims& index) {
  const Dims out = g.out();
  if (index.rank != out.rank) raise({Rule::rank_mismatch, "index", -1, index.rank, out.rank}, "taps");
  for (int a = 0; a < out.rank; ++a)
    if (index[a] < 0 || index[a] >= out[a]) raise({Rule::index_range, "index", a, index[a], out[a]}, "taps");
  Dims kept;  // one index per input axis
  Dims counts;
  int next = 0;
  for (int a = 0; a < g.rank(); ++a) {
    kept.push_back(g.drops(a) ? 0 : index[next++]);
    counts.push_back(g.axis(a).window(kept[a]).padded);
  }
  std::vector<TapPlace> places;
  for_each_index(counts, [&](const Dims& w) {
    TapPlace place{Dims::filled(g.rank(), 0), true};
    for (int a = 0; a < g.rank(); ++a) {
      place.position[a] = g.axis(a).position(kept[a], w[a]);
      place.real = place.real && place.position[a] >= 0 && place.position[a] < g.axis(a).in;
    }
    places.push_back(place);
  });
  return places;
}

// ---- in words ---------------------------------------------------------------------------------------------------

// "3x8x8 -> 3x4x4, sliding 3x3 stride 2 padding 1".
inline std::string describe(const Geometry& g) {
  std::string kernel;
  std::string stride;
  std::string dilation;
  std::string padding;
  std::string output;
  std::string axes;
  bool sliding = false;
  bool global = true;
  bool trailing = true;  // the pooled axes are the last ones
  // Joins with "x", and shortens "2x2x2" to "2" at the end.
  const auto join = [](std::string& to, const std::string& entry) { to += (to.empty() ? "" : "x") + entry; };
  const auto shorten = [](const std::string& list) {
    const std::string head = list.substr(0, list.find('x'));
    std::string repeated = head;
    while (repeated.size() < list.size()) repeated += "x" + head;
    return repeated == list ? head : list;
  };
  for (int a = 0; a < g.rank(); ++a) {
    const Axis& axis = g.axis(a);
    if (!axis.pooled()) {
      trailing = trailing && axes.empty();
      continue;
    }
    axes += (axes.empty() ? "" : ",") + std::to_string(a);
    sliding = sliding || axis.kind == Axis::Kind::sliding;
    global = global && axis.out == 1;
    join(kernel, std::to_string(axis.kernel));
    join(stride, std::to_string(axis.stride));
    join(dilation, std::to_string(axis.dilation));
    join(output, std::to_string(axis.out));
    const Pad pad = axis.padding;
    join(padding, pad.low == pad.high ? std::to_string(pad.low)
                                      : "(" + std::to_string(pad.low) + "," + std::to_string(pad.high) + ")");
  }
  std::string out = to_string(g.in()) + " -> " + to_string(g.out()) + ", ";
  if (sliding) {
    out += "sliding " + kernel + " stride " + shorten(stride);
    if (shorten(padding) != "0") out += " padding " + shorten(padding);
    if (shorten(dilation) != "1") out += " dilation " + shorten(dilation);
    if (g.rounding() == Rounding::ceil) out += " ceil";
  } else {
    out += global ? "global" : "adaptive " + output;
  }
  if (!trailing) out += " axes " + axes;
  return out;
}

}  // namespace cenote
