// Calls so small that a plan would cost more than the work: windows are reduced where they lie, in the kernels' order.
#pragma once

#include <array>
#include <cmath>

#include "plan/plan.hpp"

namespace cenote::plan {

inline constexpr Index tiny_cells = 128;   // of the input, at most
inline constexpr Index small_cells = 512;  // the same, where windows have no more taps in all

struct TinySpan {
  Index start, real, padded;  // as of AxisWindow, but left unset
};

// The windows of one pooled axis.
struct TinyAxis {
  Index out = 1, step = 1;
  Index x = 0, y = 0;                // strides
  std::array<TinySpan, 64> windows;  // only those that exist are set

  TinyAxis() {}  // NOLINT(modernize-use-equals-default): that one would set them all

  bool set(const Axis& axis, Index x_stride, Index y_stride) {
    if (axis.out > static_cast<Index>(windows.size())) return false;
    out = axis.out;
    step = axis.dilation;
    x = x_stride;
    y = y_stride;
    for (Index o = 0; o < out; ++o) {
      const AxisWindow window = axis.window(o);
      windows[static_cast<std::size_t>(o)] = {window.start, window.real, window.padded};
    }
    return true;
  }
  void set_one() { windows[0] = {0, 1, 1}; }
};

// One window: `rows` x `columns` taps from p on.
struct TinyWindow {
  Index rows, columns, row, column;  // taps, and how far apart they are
};

template <bool largest, class T>
T tiny_better(T best, T later) {
  return (largest ? later > best : later < best) ? later : best;
}

// NaN is looked for on the side, so that the rest is an instruction a tap.
template <bool largest, class T>
T tiny_extreme(const T* p, const TinyWindow& w) {
  bool odd = false;
  const auto tap = [&](const T* q) {
    odd |= *q != *q;
    return *q;
  };
  const auto two = [&](const T* q) { return tiny_better<largest>(tap(q), tap(q + w.column)); };
  const auto row = [&](const T* q) {
    if (w.columns == 1) return tap(q);
    T best = two(q);
    if (w.columns == 3) return tiny_better<largest>(best, tap(q + 2 * w.column));
    for (Index c = 2; c < w.columns; ++c) best = tiny_better<largest>(best, tap(q + c * w.column));
    return best;
  };
  T best{};
  if (w.rows == 2 && w.columns == 2) {
    best = tiny_better<largest>(two(p), two(p + w.row));
  } else {
    best = row(p);
    for (Index r = 1; r < w.rows; ++r) best = tiny_better<largest>(best, row(p + r * w.row));
  }
  for (Index r = 0; odd && r < w.rows; ++r)  // the last NaN it is
    for (Index c = 0; c < w.columns; ++c)
      if (const T& cell = p[r * w.row + c * w.column]; cell != cell) best = cell;
  return best;
}

// The sum of rows, each of which is summed first.
template <class Sum, class T>
Sum tiny_sum(const T* p, const TinyWindow& w) {
  const auto row = [&](const T* q) {
    auto sum = static_cast<Sum>(q[0]);
    for (Index c = 1; c < w.columns; ++c) sum += static_cast<Sum>(q[c * w.column]);
    return sum;
  };
  Sum sum = row(p);
  for (Index r = 1; r < w.rows; ++r) sum += row(p + r * w.row);
  return sum;
}

// The sum of a window that holds all of its plane: running sums take the cells in turn and are added in pairs.
template <class T>
double tiny_total(const T* p, const TinyWindow& w) {
  std::array<double, running_totals> sums{};
  std::size_t i = 0;
  for (Index r = 0; r < w.rows; ++r)
    for (Index c = 0; c < w.columns; ++c) sums[i++ % sums.size()] += static_cast<double>(p[r * w.row + c * w.column]);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// A small call: which windows there are and where.
class Tiny {
 public:
  template <class Op>
  static constexpr bool serves =
      std::same_as<Op, Max> || std::same_as<Op, Min> || std::same_as<Op, Average> || std::same_as<Op, Sum>;

  // False: the call is not so small. Strides are those of the geometry's axes.
  bool set(const Geometry& g, const Dims& x_strides, const Dims& y_strides) {
    Index cells = 1;
    for (int a = 0; a < g.rank(); ++a) cells *= g.axis(a).in;
    if (cells > small_cells || cells == 0) return false;
    if (cells > tiny_cells && volume(g.out()) * volume(g.window_box()) > small_cells) return false;
    int pooled = 0;
    for (int a = g.rank() - 1; a >= 0; --a) {
      const Axis& axis = g.axis(a);
      if (axis.out == 0) return false;
      if (!axis.pooled()) {
        if (axis.in != 1) lanes_[static_cast<std::size_t>(lane_axes_++)] = {axis.in, x_strides[a], y_strides[a]};
        continue;
      }
      if (pooled == 2 || !(pooled == 0 ? columns_ : rows_).set(axis, x_strides[a], y_strides[a])) return false;
      ++pooled;
      if (reduces(axis)) whole_ = whole_ && axis.out == 1 && axis.dilation == 1 && axis.window(0).real == axis.in;
    }
    if (pooled < 1) columns_.set_one();
    if (pooled < 2) rows_.set_one();
    return true;
  }

  // y = f(x), where f32 are added in a type `Sum`. True if some mean may have overflowed.
  template <class Sum = double, class T, class Op>
  bool run(const Op& op, const T* x, T* y) const {
    bool unsure = false;
    std::array<Index, max_rank> at;
    for (int i = 0; i < lane_axes_; ++i) at[static_cast<std::size_t>(i)] = 0;
    for (bool more = true; more;) {
      unsure |= plane<Sum>(op, x, y);
      more = false;
      for (int i = 0; i < lane_axes_ && !more; ++i) {
        const Lane& lane = lanes_[static_cast<std::size_t>(i)];
        Index& index = at[static_cast<std::size_t>(i)];
        x += lane.x;
        y += lane.y;
        more = ++index < lane.size;
        if (more) break;
        x -= index * lane.x;
        y -= index * lane.y;
        index = 0;
      }
    }
    return unsure;
  }

 private:
  struct Lane {
    Index size, x, y;
  };

  template <class Sum, class T, class Op>
  bool plane(const Op& op, const T* x, T* y) const {
    bool unsure = false;
    for (Index r = 0; r < rows_.out; ++r) {
      const TinySpan& high = rows_.windows[static_cast<std::size_t>(r)];
      for (Index c = 0; c < columns_.out; ++c) {
        const TinySpan& wide = columns_.windows[static_cast<std::size_t>(c)];
        T& result = y[r * rows_.y + c * columns_.y];
        if (high.real == 0 || wide.real == 0) {
          result = T(Index{0});
          continue;
        }
        const TinyWindow window{high.real, wide.real, rows_.step * rows_.x, columns_.step * columns_.x};
        const T* p = x + high.start * rows_.x + wide.start * columns_.x;
        if constexpr (Op::selects) {
          result = tiny_extreme<std::same_as<Op, Max>>(p, window);
        } else {
          Index number = 1;
          if constexpr (std::same_as<Op, Average>)
            number = op.divisor.kind == Divisor::Kind::fixed  ? op.divisor.number
                     : op.divisor.kind == Divisor::Kind::real ? high.real * wide.real
                                                              : high.padded * wide.padded;
          if constexpr (std::integral<T>) {
            IntegerSum<T> sum;
            sum.sum = tiny_sum<decltype(sum.sum)>(p, window);
            result = std::same_as<Op, Average> ? sum.mean(number) : sum.total();
          } else {
            const bool total = whole_ && !std::same_as<T, double> && std::same_as<Sum, double>;
            const double sum =
                (total ? tiny_total(p, window) : static_cast<double>(tiny_sum<Sum>(p, window))) + 0.0;  // no -0 (A5)
            if constexpr (std::same_as<T, double>)
              result = sum / static_cast<double>(number);
            else if (std::same_as<T, Sum> && number >= -largest_f32_divisor && number <= largest_f32_divisor)
              result = static_cast<T>(sum) / static_cast<T>(number);
            else
              result = static_cast<T>(sum * (1.0 / static_cast<double>(number)));
            if constexpr (std::same_as<T, Sum>) unsure |= !std::isfinite(result);
          }
        }
      }
    }
    return unsure;
  }

  TinyAxis rows_, columns_;
  std::array<Lane, max_rank> lanes_;  // only those of axes longer than 1 are set
  int lane_axes_ = 0;
  bool whole_ = true;  // windows hold all of their planes

 public:
  Tiny() {}  // NOLINT(modernize-use-equals-default): as above
};

}  // namespace cenote::plan
