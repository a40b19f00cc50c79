// Linearisation: evaluate once, then push many tangents and pull many gradients without looking at x again.
// A linear operator keeps nothing, a maximum its winners, every other operator its input.
#pragma once

#include <cstring>
#include <span>

#include "cenote/spec.hpp"

namespace cenote {

// The winning tap of every output, as its offset inside the window (M6): row-major, in the fewest of 1, 2, 4 or 8
// bytes that hold every offset, and the mark for "none" where the geometry has windows without a real tap.
// Owns its bytes, or stands on memory of the caller's: then copies stand on the same, and it must outlive them.
class Winners {
 public:
  static constexpr Index none = -1;  // M5

  explicit Winners(const Geometry& g) : Winners(g, nullptr) { owned_.resize(size()); }
  // On memory of the caller's: bytes_for(g) bytes, aligned as numbers of bytes_each(g) bytes are. Allocates nothing.
  Winners(const Geometry& g, std::span<std::uint8_t> memory) : Winners(g, memory.data()) {
    if (memory.size() != size())
      raise({Rule::element_count, "memory", -1, static_cast<Index>(memory.size()), static_cast<Index>(size())},
            "Winners");
  }

  // How many bytes one winner takes, and all of them.
  [[nodiscard]] static int bytes_each(const Geometry& g) { return bytes_each(g, g.has_empty_windows()); }
  [[nodiscard]] static Index bytes_for(const Geometry& g) { return volume(g.out()) * bytes_each(g); }

  [[nodiscard]] const Dims& dims() const { return dims_; }
  [[nodiscard]] int bytes_each() const { return bytes_each_; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {data(), size()}; }
  [[nodiscard]] std::span<std::uint8_t> bytes() { return {data(), size()}; }
  [[nodiscard]] bool has_none() const { return has_none_; }  // some window has no winner
  [[nodiscard]] Index operator[](Index i) const {
    Index winner = 0;
    with_width([&]<class U>(U stored) {
      std::memcpy(&stored, data() + i * bytes_each_, sizeof(U));
      winner = has_none_ && stored == static_cast<U>(none) ? none : static_cast<Index>(stored);
    });
    return winner;
  }
  void set(Index i, Index winner) {
    with_width([&]<class U>(U stored) {
      stored = static_cast<U>(winner);
      std::memcpy(data() + i * bytes_each_, &stored, sizeof(U));
    });
  }

 private:
  Winners(const Geometry& g, std::uint8_t* memory)
      : dims_(g.out()), has_none_(g.has_empty_windows()), bytes_each_(bytes_each(g, has_none_)), borrowed_(memory) {}

  static int bytes_each(const Geometry& g, bool has_none) {
    const Index codes = volume(g.window_box()) - (has_none ? 0 : 1);  // the largest number to store
    int bytes = 1;
    for (Index most = 0xff; bytes < 8 && codes > most; most = (most + 1) * (most + 1) - 1) bytes *= 2;
    return bytes;
  }
  [[nodiscard]] const std::uint8_t* data() const { return borrowed_ != nullptr ? borrowed_ : owned_.data(); }
  [[nodiscard]] std::uint8_t* data() { return borrowed_ != nullptr ? borrowed_ : owned_.data(); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(volume(dims_) * bytes_each_); }

  template <class F>
  void with_width(F&& use) const {
    switch (bytes_each_) {
      case 1: return use(std::uint8_t{});
      case 2: return use(std::uint16_t{});
      case 4: return use(std::uint32_t{});
      default: return use(std::uint64_t{});
    }
  }

  Dims dims_;
  bool has_none_;
  int bytes_each_;
  std::uint8_t* borrowed_;  // the caller's memory, or none
  std::vector<std::uint8_t> owned_;
};

namespace spec {

// The winner of every output, into memory that is there: `out` was made for this geometry.
template <class T, class Op>
  requires OperatorOn<Op, T> && Selecting<Op>
void find_winners(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x, Winners& out,
                  std::string_view caller = "winners") {
  detail::check_shape(caller, "x", x.dims(), g.in());
  const Marks offsets{row_major(g.window_box()), true};
  Walk<T>(g, x, offsets, row_major(g.out_kept())).each([&](const Window<T>& window, Index o) {
    out.set(o, window.empty() ? Winners::none : op.winner(window).mark);
  });
}

// The winner of every output.
template <class T, class Op>
  requires OperatorOn<Op, T> && Selecting<Op>
Winners winners(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x,
                std::string_view caller = "winners") {
  Winners out(g);
  find_winners<T>(op, g, x, out, caller);
  return out;
}

// Calls visit(out, won, place) for every output: its offset under `out_strides`, whether it has a winner, and the
// winner's input position . strides.
template <class F>
void for_each_winner(const Geometry& g, const Winners& winners, const Dims& strides, const Dims& out_strides,
                     F&& visit) {
  const Dims box = row_major(g.window_box());
  Index number = 0;
  for_each_index(g.out_kept(), [&](const Dims& index) {
    Index rest = winners[number++];
    const bool won = rest != Winners::none;
    Index place = 0;
    Index out = 0;
    for (int a = 0; a < index.rank; ++a) {
      out += index[a] * out_strides[a];
      if (won) place += g.axis(a).position(index[a], rest / box[a]) * strides[a];
      rest %= box[a];
    }
    visit(out, won, place);
  });
}

// Winners as PyTorch numbers them: a flat index into the pooled axes without padding, or -1 (M6).
inline Tensor<std::int64_t> flat_indices(const Geometry& g, const Winners& winners) {
  Dims plane = g.in();
  for (int a = 0; a < g.rank(); ++a)
    if (!g.axis(a).pooled()) plane[a] = 1;
  Dims strides = row_major(plane);
  for (int a = 0; a < g.rank(); ++a)
    if (!g.axis(a).pooled()) strides[a] = 0;
  Tensor<std::int64_t> out(g.out());
  for_each_winner(g, winners, strides, row_major(g.out_kept()), [&](Index o, bool won, Index place) {
    out.data()[static_cast<std::size_t>(o)] = won ? place : Winners::none;
  });
  return out;
}

// dy = the tangents at the winners; 0 where there is none (M5).
template <class T>
void push(const Geometry& g, const Winners& winners, const View<const T>& dx, const View<T>& dy) {
  for_each_winner(g, winners, dx.strides(), detail::output_strides(g, dy.strides()),
                  [&](Index out, bool won, Index place) { dy.data()[out] = won ? dx.data()[place] : T(Index{0}); });
}

// gx = the gradients added at the winners, outputs in row-major order.
template <class T>
void pull(const Geometry& g, const Winners& winners, const View<const T>& gy, const View<T>& gx) {
  detail::accumulate(gx, [&](Gradient<T>* sums, const Dims& strides) {
    for_each_winner(g, winners, strides, detail::output_strides(g, gy.strides()),
                    [&](Index out, bool won, Index place) {
                      if (won) sums[place] = sums[place] + static_cast<Gradient<T>>(gy.data()[out]);
                    });
  });
}

// The verbs as Linearization calls them, carried out by the definition.
struct Definition {
  template <class T, class Op>
  static Winners winners(const Op& op, const Geometry& g, const View<const T>& x, std::string_view caller) {
    return spec::winners<T>(op, g, x, caller);
  }
  template <class T, class Op>
  static void jvp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& dx, const View<T>& dy,
                  std::string_view caller) {
    spec::jvp<T>(op, g, x, dx, dy, caller);
  }
  template <class T, class Op>
  static void vjp(const Op& op, const Geometry& g, const View<const T>& x, const View<const T>& gy, const View<T>& gx,
                  std::string_view caller) {
    spec::vjp<T>(op, g, x, gy, gx, caller);
  }
  template <class T>
  static void push(const Geometry& g, const Winners& winners, const View<const T>& dx, const View<T>& dy) {
    spec::push<T>(g, winners, dx, dy);
  }
  template <class T>
  static void pull(const Geometry& g, const Winners& winners, const View<const T>& gy, const View<T>& gx) {
    spec::pull<T>(g, winners, gy, gx);
  }
};

}  // namespace spec

// An operator's derivative at a point. Owns what it keeps: x may change or go away. `By` carries the verbs out.
template <class Op, class T, class By = spec::Definition>
  requires DifferentiableOn<Op, T>
class Linearization {
 public:
  Linearization(const Op& op, const Geometry& g, const View<const T>& x, std::string_view caller, By by = {})
      : op_(op), geometry_(g), by_(by) {
    if constexpr (Op::linear) return;
    if constexpr (Selecting<Op>) {
      if (op.ties == Ties::first && !set_valued<T>) {
        winners_ = by_.template winners<T>(op, g, x, caller);
        return;
      }
    }
    kept_ = Tensor<T>(x.dims());
    copy_elements(x, kept_.view());
  }
  // From winners that are known already.
  Linearization(const Op& op, const Geometry& g, Winners winners, By by = {})
    requires Selecting<Op>
      : op_(op), geometry_(g), by_(by), winners_(std::move(winners)) {}

  // dy = J dx.
  void push(const View<const T>& dx, const View<T>& dy) const {
    if constexpr (Op::linear) return by_.template jvp<T>(op_, geometry_, dx, dx, dy, "push");  // x does not matter (A6)
    if (!winners_) return by_.template jvp<T>(op_, geometry_, kept_.view(), dx, dy, "push");
    spec::detail::check_shape("push", "dx", dx.dims(), geometry_.in());
    spec::detail::check_shape("push", "dy", dy.dims(), geometry_.out());
    spec::detail::check_output("push", "dy", dy, dx);
    by_.template push<T>(geometry_, *winners_, dx, dy);
  }

  // gx = J^T gy.
  void pull(const View<const T>& gy, const View<T>& gx) const {
    if constexpr (Op::linear) {
      const T anything(Index{0});  // linear operators read no input
      return by_.template vjp<T>(
          op_, geometry_, View<const T>(&anything, geometry_.in(), Dims::filled(geometry_.rank(), 0)), gy, gx, "pull");
    }
    if (!winners_) return by_.template vjp<T>(op_, geometry_, kept_.view(), gy, gx, "pull");
    spec::detail::check_shape("pull", "gy", gy.dims(), geometry_.out());
    spec::detail::check_shape("pull", "gx", gx.dims(), geometry_.in());
    spec::detail::check_output("pull", "gx", gx, gy);
    by_.template pull<T>(geometry_, *winners_, gy, gx);
  }

  [[nodiscard]] Winners winners() const
    requires Selecting<Op>
  {
    return winners_ ? *winners_ : by_.template winners<T>(op_, geometry_, kept_.view(), "winners");
  }
  [[nodiscard]] Tensor<std::int64_t> indices() const
    requires Selecting<Op>
  {
    return spec::flat_indices(geometry_, winners());
  }
  [[nodiscard]] const Geometry& geometry() const { return geometry_; }
  [[nodiscard]] std::size_t bytes_kept() const {
    return winners_ ? winners_->bytes().size() : kept_.data().size() * sizeof(T);
  }

 private:
  Op op_;
  Geometry geometry_;
  [[no_unique_address]] By by_;
  std::optional<Winners> winners_;
  Tensor<T> kept_;
};

namespace spec {

// y = f(x), and the derivative of f at x.
template <class T, class Op>
  requires DifferentiableOn<Op, T>
auto linearize(const Op& op, const Geometry& g, const std::type_identity_t<View<const T>>& x, const View<T>& y,
               std::string_view caller = "linearize") {
  spec::forward<T>(op, g, x, y, caller);
  return Linearization<Op, T>(op, g, x, caller);
}

}  // namespace spec
}  // namespace cenote
