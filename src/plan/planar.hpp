// Arrays that kernels cannot read in vectors, because neither enough lanes nor the cells of the last pooled axis are
// neighbours (pictures of few channels, every other column, reversed rows, Fortran order): copied to planes of
// neighbouring cells first, and results copied back. That costs less than working between the elements.
#pragma once

#include <optional>

#include "plan/execute.hpp"
#include "plan/tables.hpp"
#include "targets/interleave.hpp"

namespace cenote::plan {

// Some of these arguments are scattered.
template <class T, class... V>
bool scattered(const Geometry& g, const V&... views) {
  return (scattered(g, views.dims(), views.strides(), sizeof(T), kernels<T>().vector) || ...);
}

// A copy of an array, or memory for one, with the cells of its pooled axes innermost.
template <class T>
class Planar {
 public:
  Planar(const Geometry& g, const Dims& dims, const Execution& exec) : dims_(dims), exec_(exec) {
    strides_ = Dims::filled(dims.rank, 0);
    for (const bool pooled : {true, false})
      for (int a = dims.rank - 1; a >= 0; --a) {
        if (reduces(g.axis(a)) != pooled) continue;
        if (size_ == 1 && dims[a] > 1) cells_ = a;
        strides_[a] = size_;
        size_ *= dims[a];
      }
    piece_ = SparePieces::take(static_cast<std::size_t>(size_) * sizeof(T));
  }
  Planar(const Planar&) = delete;
  Planar& operator=(const Planar&) = delete;
  ~Planar() { SparePieces::give(piece_); }

  [[nodiscard]] View<T> view() const { return {data(), dims_, strides_}; }

  void copy_from(const T* there, const Dims& strides) const { copy<false>(const_cast<T*>(there), strides); }
  void copy_to(T* there, const Dims& strides) const { copy<true>(there, strides); }

 private:
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(piece_ + 1); }

  // Row by row of cells, together with the axis whose elements are nearest to each other there, so that every line of
  // a cache is used up.
  template <bool back>
  void copy(T* there, const Dims& strides) const {
    const auto distance = [&](int a) { return strides[a] < 0 ? -strides[a] : strides[a]; };
    int near = cells_;
    for (int a = 0; a < dims_.rank; ++a)
      if (dims_[a] > 1 && strides[a] != 0 && distance(a) < distance(near)) near = a;
    Dims outer = dims_;
    outer[cells_] = outer[near] = 1;
    const Index rows = volume(outer);
    const Index together = std::max(Index{1}, (Index{1} << 16) * rows / size_);
    each_task(exec_, cenote::detail::ceil_div(rows, together), size_, [&](Index task) {
      for (Index row = task * together; row < std::min(rows, (task + 1) * together); ++row) {
        T* at = there;
        T* here = data();
        Index rest = row;
        for (int a = dims_.rank - 1; a >= 0; --a) {
          at += rest % outer[a] * strides[a];
          here += rest % outer[a] * strides_[a];
          rest /= outer[a];
        }
        copy_square<back>(at, strides, near, here);
      }
    });
  }
  // The axes of cells and of nearest elements.
  template <bool back>
  void copy_square(T* there, const Dims& strides, int near, T* here) const {
    const Index count = dims_[cells_];
    const Index apart = strides[cells_];
    const Index channels = near == cells_ ? 1 : dims_[near];
    if (channels > 1 && strides[near] == 1 && apart == channels) {
      if constexpr (back)
        join_channels(sizeof(T), here, strides_[near], channels, count, there);
      else
        split_channels(sizeof(T), there, channels, count, here, strides_[near]);
      return;
    }
    constexpr Index side = 64;
    for (Index first = 0; first < channels; first += side)
      for (Index i = 0; i < count; i += side)
        for (Index c = first; c < std::min(channels, first + side); ++c)
          for (Index j = i; j < std::min(count, i + side); ++j) {
            T& inner = here[c * strides_[near] + j];
            T& outer = there[c * strides[near] + j * apart];
            if constexpr (back)
              outer = inner;
            else
              inner = outer;
          }
  }

  Dims dims_, strides_;
  const Execution& exec_;
  int cells_ = 0;  // the axis that is innermost here
  Index size_ = 1;
  Piece* piece_ = nullptr;
};

// An argument of a verb as kernels like it: itself, or its planar copy.
template <class T>
class PlanarInput {
 public:
  PlanarInput(const Geometry& g, const View<const T>& x, const Execution& exec) : view_(x) {
    if (!scattered<T>(g, x)) return;
    copy_.emplace(g, x.dims(), exec);
    copy_->copy_from(x.data(), x.strides());
    view_ = copy_->view();
  }
  [[nodiscard]] const View<const T>& view() const { return view_; }

 private:
  View<const T> view_;
  std::optional<Planar<T>> copy_;
};
// A result of one: `finish` takes it to where it belongs.
template <class T>
class PlanarOutput {
 public:
  PlanarOutput(const Geometry& g, const View<T>& y, const Execution& exec) : y_(y), view_(y) {
    if (!scattered<T>(g, y)) return;
    copy_.emplace(g, y.dims(), exec);
    view_ = copy_->view();
  }
  [[nodiscard]] const View<T>& view() const { return view_; }
  void finish() const {
    if (copy_) copy_->copy_to(y_.data(), y_.strides());
  }

 private:
  View<T> y_, view_;
  std::optional<Planar<T>> copy_;
};

}  // namespace cenote::plan
