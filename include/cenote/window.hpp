// The window of one output: its taps in row-major order, with their values. What operators look at, and the walk over
// all windows of a geometry that every verb shares.
#pragma once

#include "cenote/geometry.hpp"

namespace cenote {

// One real tap. `mark` is a second address, in the units that the walk was asked for (see Marks).
template <class T>
struct Tap {
  T value;
  Index mark;
};

// What the taps of a walk are marked with: position . steps, where position is the tap's index in the input (strides
// of a tangent or gradient; a flat index), or its index inside the window (the compact winner).
struct Marks {
  Dims steps{};
  bool in_window = false;
};

// The real taps of one output.
template <class T>
class Window {
 public:
  using value_type = T;

  [[nodiscard]] constexpr Index real() const { return real_; }      // taps in the input
  [[nodiscard]] constexpr Index padded() const { return padded_; }  // taps in the padded input
  [[nodiscard]] constexpr bool empty() const { return real_ == 0; }

  // The first real tap. The window has one.
  [[nodiscard]] constexpr Tap<T> front() const { return {data_[offset_], mark_}; }

  // Calls visit(tap) for every real tap in row-major order: a plain loop along the innermost pooled axis, an odometer
  // over the others.
  template <class F>
  constexpr void each(F&& visit) const {
    if (empty()) return;
    const Loop inner = loops_[static_cast<std::size_t>(inner_)];
    std::array<Index, max_rank> at;  // only the entries of outer loops are set and read
    for (int i = 0; i < inner_; ++i) at[static_cast<std::size_t>(i)] = 0;
    Index row = offset_;
    Index mark = mark_;
    for (;;) {
      for (Index i = 0; i < inner.count; ++i) visit(Tap<T>{data_[row + i * inner.step], mark + i * inner.mark});
      int outer = inner_ - 1;
      for (; outer >= 0; --outer) {
        const Loop& loop = loops_[static_cast<std::size_t>(outer)];
        Index& n = at[static_cast<std::size_t>(outer)];
        row += loop.step;
        mark += loop.mark;
        if (++n < loop.count) break;
        n = 0;
        row -= loop.count * loop.step;
        mark -= loop.count * loop.mark;
      }
      if (outer < 0) return;
    }
  }

 private:
  template <class X>
  friend class Walk;
  struct Loop {
    Index count, step, mark;
  };
  const T* data_ = nullptr;
  Index offset_ = 0, mark_ = 0;  // of the first real tap
  Index real_ = 1, padded_ = 1;
  int inner_ = 0;                           // loops_[0 .. inner_] are in use
  std::array<Loop, max_rank + 1> loops_{};  // outermost first
};

// All windows of a geometry over x, outputs in row-major order, each with the output's offset under `out_strides`.
// No allocation; between neighbouring outputs only the axes that moved are looked at again.
template <class T>
class Walk {
 public:
  constexpr Walk(const Geometry& g, const View<const T>& x, const Marks& marks, const Dims& out_strides)
      : rank_(g.rank()) {
    window_.data_ = x.data();
    int pooled = 0;
    for (int a = 0; a < rank_; ++a) {
      Track& track = tracks_[static_cast<std::size_t>(a)];
      track.axis = g.axis(a);
      track.stride = x.strides()[a];
      track.mark_stride = marks.steps[a];
      track.marks_in_window = marks.in_window;
      track.out_stride = out_strides[a];
      track.loop = track.axis.pooled() ? pooled++ : -1;
      track.full = full_windows(track.axis);
    }
    window_.inner_ = pooled > 0 ? pooled - 1 : 0;
    if (pooled == 0) window_.loops_[0] = {1, 0, 0};
  }

  // Calls visit(window, output offset) for every output.
  template <class F>
  constexpr void each(F&& visit) {
    for (int a = 0; a < rank_; ++a) {
      if (tracks_[static_cast<std::size_t>(a)].axis.out == 0) return;
      enter(tracks_[static_cast<std::size_t>(a)], 0);
    }
    for (;;) {
      visit(std::as_const(window_), out_offset_);
      int a = rank_ - 1;
      for (; a >= 0; --a) {
        Track& track = tracks_[static_cast<std::size_t>(a)];
        if (track.index + 1 < track.axis.out) {
          step(track);
          break;
        }
        enter(track, 0);
      }
      if (a < 0) return;
    }
  }

  // Calls visit(window, output offset) for one output.
  template <class F>
  constexpr void at(const std::array<Index, max_rank>& output, F&& visit) {
    for (int a = 0; a < rank_; ++a) enter(tracks_[static_cast<std::size_t>(a)], output[static_cast<std::size_t>(a)]);
    visit(std::as_const(window_), out_offset_);
  }

 private:
  struct Range {
    Index begin = 0, end = 0;
  };
  // One axis of the walk: where it stands, and what a move costs.
  struct Track {
    Axis axis{};
    Index stride = 0, mark_stride = 0, out_stride = 0;
    bool marks_in_window = false;
    int loop = -1;  // of the window; -1 for an identity axis
    Range full{};   // outputs whose window lies in the input entirely
    Index index = 0, offset = 0, mark = 0, real = 1, padded = 1;
  };

  static constexpr Range full_windows(const Axis& axis) {
    if (axis.kind == Axis::Kind::identity) return {0, axis.out};
    if (axis.kind == Axis::Kind::adaptive) return {};
    const Index room = axis.in + axis.padding.low - (axis.kernel - 1) * axis.dilation;  // starts below it fit
    if (room <= 0) return {};
    return {detail::ceil_div(axis.padding.low, axis.stride), std::min(axis.out, detail::ceil_div(room, axis.stride))};
  }

  // The next output along an axis; between full windows everything moves by a constant.
  constexpr void step(Track& track) {
    if (track.index < track.full.begin || track.index + 1 >= track.full.end) return enter(track, track.index + 1);
    const Index cells = track.axis.stride;
    const Index offset = cells * track.stride;
    const Index mark = track.marks_in_window ? 0 : cells * track.mark_stride;
    ++track.index;
    track.offset += offset;
    track.mark += mark;
    window_.offset_ += offset;
    window_.mark_ += mark;
    out_offset_ += track.out_stride;
  }

  // Output o along an axis.
  constexpr void enter(Track& track, Index o) {
    const Axis& axis = track.axis;
    const AxisWindow taps = axis.window(o);
    out_offset_ += (o - track.index) * track.out_stride;
    const Index offset = taps.start * track.stride;
    const Index mark = (track.marks_in_window ? taps.first : taps.start) * track.mark_stride;
    window_.offset_ += offset - track.offset;
    window_.mark_ += mark - track.mark;
    track.index = o;
    track.offset = offset;
    track.mark = mark;
    track.real = taps.real;
    track.padded = taps.padded;
    if (track.loop < 0) return;
    window_.loops_[static_cast<std::size_t>(track.loop)] = {
        taps.real, axis.dilation * track.stride, (track.marks_in_window ? 1 : axis.dilation) * track.mark_stride};
    window_.real_ = window_.padded_ = 1;
    for (int a = 0; a < rank_; ++a) {
      window_.real_ *= tracks_[static_cast<std::size_t>(a)].real;
      window_.padded_ *= tracks_[static_cast<std::size_t>(a)].padded;
    }
  }

  int rank_;
  Index out_offset_ = 0;
  std::array<Track, max_rank> tracks_{};
  Window<T> window_{};
};

}  // namespace cenote
