// Arrays: sizes known at run time (Dims) or in the type (Shape), strided views, owning tensors.
// Nothing here knows what the numbers mean.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cenote/error.hpp"

namespace cenote {

inline constexpr int max_rank = 16;

// A short list of numbers, one per axis: sizes, strides or indices. Fixed capacity, no heap, usable as a template
// argument. Unused entries stay 0, so equal lists are equal values.
struct Dims {
  std::array<Index, max_rank> entries{};
  int rank = 0;

  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<Index> list) : Dims(std::span(list.begin(), list.size())) {}
  constexpr explicit Dims(std::span<const Index> list) {
    if (list.size() > max_rank)
      raise({Rule::rank_limit, "shape", -1, static_cast<Index>(list.size()), max_rank}, "Dims");
    for (const Index entry : list) push_back(entry);
  }
  static constexpr Dims filled(int rank, Index value) {
    Dims out;
    for (int a = 0; a < rank; ++a) out.push_back(value);
    return out;
  }

  constexpr void push_back(Index entry) {
    if (rank == max_rank) raise({Rule::rank_limit, "shape", -1, rank + 1, max_rank}, "Dims");
    entries[static_cast<std::size_t>(rank++)] = entry;
  }
  constexpr Index& operator[](int axis) { return entries[static_cast<std::size_t>(axis)]; }
  constexpr const Index& operator[](int axis) const { return entries[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] constexpr const Index* begin() const { return entries.data(); }
  [[nodiscard]] constexpr const Index* end() const { return entries.data() + rank; }
  friend constexpr bool operator==(const Dims&, const Dims&) = default;
};

// Sizes in a type.
template <Index... N>
struct Shape {
  static constexpr Dims dims{N...};
};

namespace detail {

template <class S>
struct IsShape : std::false_type {};
template <Index... N>
struct IsShape<Shape<N...>> : std::true_type {};

template <class D, class Axes>
struct ShapeOf;
template <class D, int... A>
struct ShapeOf<D, std::integer_sequence<int, A...>> {
  using type = Shape<D::dims[A]...>;
};

}  // namespace detail

template <class S>
concept StaticShape = detail::IsShape<S>::value;

// The shape that carries the sizes D::dims.
template <class D>
using ShapeOf = typename detail::ShapeOf<D, std::make_integer_sequence<int, D::dims.rank>>::type;

// "3x8x8"; a rank-0 shape is "scalar".
[[gnu::cold, gnu::noinline]] inline std::string to_string(const Dims& dims) {
  std::string out;
  for (const Index entry : dims) out.append(out.empty() ? "" : "x").append(std::to_string(entry));
  return out.empty() ? "scalar" : out;
}

// What is wrong with sizes, if anything: a negative one, or a product, zeros aside, that leaves 64 bits (G7).
constexpr std::optional<Problem> size_problem(const Dims& dims, std::string_view argument) {
  Index product = 1;
  for (int a = 0; a < dims.rank; ++a) {
    const Index before = product;
    if (dims[a] < 0) return Problem{Rule::size_nonnegative, argument, a, dims[a]};
    if (dims[a] > 0 && __builtin_mul_overflow(product, dims[a], &product))
      return Problem{Rule::size_overflow, argument, a, before, dims[a]};
  }
  return {};
}

// Number of elements, checked.
constexpr Index volume(const Dims& dims) {
  if (const auto problem = size_problem(dims, "shape")) raise(*problem, "volume");
  Index product = 1;
  for (const Index size : dims) product *= size;
  return product;
}

// Strides, in elements, of a dense array whose last axis is contiguous.
constexpr Dims row_major(const Dims& dims) {
  (void)volume(dims);
  Dims strides = Dims::filled(dims.rank, 0);
  Index step = 1;
  for (int a = dims.rank - 1; a >= 0; --a) {
    strides[a] = step;
    step *= dims[a] > 0 ? dims[a] : 1;
  }
  return strides;
}

// Row-major iteration: the next index of `dims`, or false after the last one.
constexpr bool advance(Dims& index, const Dims& dims) {
  for (int a = dims.rank - 1; a >= 0; --a) {
    if (++index[a] < dims[a]) return true;
    index[a] = 0;
  }
  return false;
}

// A window onto somebody's memory: pointer, sizes, strides in elements (any sign; 0 repeats an element).
// Copying a view copies no elements.
template <class T, class S = Dims>
class View;

template <class T>
class View<T, Dims> {
 public:
  using value_type = std::remove_const_t<T>;

  constexpr View(T* data, const Dims& dims) : View(data, dims, row_major(dims)) {}
  constexpr View(T* data, const Dims& dims, const Dims& strides) : data_(data), dims_(dims), strides_(strides) {
    if (strides.rank != dims.rank) raise({Rule::rank_mismatch, "strides", -1, strides.rank, dims.rank}, "View");
    const Index cells = volume(dims);
    if (data == nullptr && cells != 0) raise({Rule::data_missing, "data", -1, 0, cells}, "View");
  }
  constexpr operator View<const T>() const  // NOLINT(google-explicit-constructor): reading is always allowed
    requires(!std::is_const_v<T>)
  {
    return {data_, dims_, strides_};
  }

  [[nodiscard]] constexpr T* data() const { return data_; }
  [[nodiscard]] constexpr const Dims& dims() const { return dims_; }
  [[nodiscard]] constexpr const Dims& strides() const { return strides_; }
  [[nodiscard]] constexpr int rank() const { return dims_.rank; }
  [[nodiscard]] constexpr Index size() const { return volume(dims_); }

  // The element at an index. Not checked: this is the innermost access.
  constexpr T& operator[](const Dims& index) const {
    Index offset = 0;
    for (int a = 0; a < index.rank; ++a) offset += index[a] * strides_[a];
    return data_[offset];
  }
  template <std::convertible_to<Index>... I>
  constexpr T& operator()(I... index) const {
    return (*this)[Dims{static_cast<Index>(index)...}];
  }

  // The same elements with axis a of the result being axis order[a] of this view.
  [[nodiscard]] constexpr View permuted(const Dims& order) const {
    if (order.rank != rank()) raise({Rule::rank_mismatch, "order", -1, order.rank, rank()}, "permuted");
    View out = *this;
    std::array<bool, max_rank> seen{};
    for (int a = 0; a < rank(); ++a) {
      if (order[a] < 0 || order[a] >= rank()) raise({Rule::axis_range, "order", a, order[a], rank()}, "permuted");
      if (std::exchange(seen[static_cast<std::size_t>(order[a])], true))
        raise({Rule::axis_unique, "order", a, order[a]}, "permuted");
      out.dims_[a] = dims_[static_cast<int>(order[a])];
      out.strides_[a] = strides_[static_cast<int>(order[a])];
    }
    return out;
  }

 private:
  T* data_;
  Dims dims_, strides_;
};

// A view whose sizes are in its type; it is a View<T> wherever one is asked for.
template <class T, StaticShape S>
class View<T, S> : public View<T, Dims> {
 public:
  using shape = S;
  constexpr explicit View(T* data) : View<T, Dims>(data, S::dims) {}
  constexpr View(T* data, const Dims& strides) : View<T, Dims>(data, S::dims, strides) {}
};

template <class T>
View(T*, Dims) -> View<T, Dims>;
template <class T>
View(T*, Dims, Dims) -> View<T, Dims>;

// An array that owns its elements, dense and row-major.
template <class T, class S = Dims>
class Tensor;

template <class T>
class Tensor<T, Dims> {
 public:
  using value_type = T;

  Tensor() : Tensor(Dims{0}) {}
  // `caller` opens the message if so many elements cannot be.
  constexpr explicit Tensor(const Dims& dims, const T& fill = T(Index{0}), std::string_view caller = "Tensor")
      : dims_(dims), data_(elements(dims, caller), fill) {}
  constexpr Tensor(const Dims& dims, std::vector<T> data) : dims_(dims), data_(std::move(data)) {
    const Index have = static_cast<Index>(data_.size());
    if (have != volume(dims)) raise({Rule::element_count, "data", -1, have, volume(dims)}, "Tensor");
  }
  constexpr Tensor(const Dims& dims, std::initializer_list<T> data) : Tensor(dims, std::vector<T>(data)) {}

  [[nodiscard]] constexpr const Dims& dims() const { return dims_; }
  [[nodiscard]] constexpr std::span<T> data() & { return data_; }
  [[nodiscard]] constexpr std::span<const T> data() const& { return data_; }
  [[nodiscard]] constexpr auto data() && { return std::move(data_); }  // a temporary's elements outlive it
  [[nodiscard]] constexpr View<T> view() { return {data_.data(), dims_}; }
  [[nodiscard]] constexpr View<const T> view() const { return {data_.data(), dims_}; }
  friend constexpr bool operator==(const Tensor&, const Tensor&) = default;

 private:
  static constexpr std::size_t elements(const Dims& dims, std::string_view caller) {
    const Index cells = volume(dims);
    const auto most = static_cast<Index>(std::vector<T>().max_size());
    if (cells > most) raise({Rule::element_limit, "shape", -1, cells, most}, caller);
    return static_cast<std::size_t>(cells);
  }

  Dims dims_;
  std::vector<T> data_;
};

// Sizes in the type. Up to a page the elements live in the object (no heap, usable as a constant); larger ones live on
// the heap, so that a big tensor on the stack is no trap.
template <class T, StaticShape S>
class Tensor<T, S> {
 public:
  using value_type = T;
  using shape = S;
  static constexpr std::size_t elements = static_cast<std::size_t>(volume(S::dims));
  static constexpr bool in_place = elements * sizeof(T) <= 4096;

  constexpr Tensor() {
    if constexpr (!in_place) data_.resize(elements, T(Index{0}));
  }
  constexpr Tensor(std::initializer_list<T> data) : Tensor() {
    if (data.size() != elements)
      raise({Rule::element_count, "data", -1, static_cast<Index>(data.size()), static_cast<Index>(elements)}, "Tensor");
    std::copy(data.begin(), data.end(), data_.begin());
  }

  static constexpr const Dims& dims() { return S::dims; }
  [[nodiscard]] constexpr std::span<T> data() & { return data_; }
  [[nodiscard]] constexpr std::span<const T> data() const& { return data_; }
  [[nodiscard]] constexpr auto data() && { return std::move(data_); }  // a temporary's elements outlive it
  [[nodiscard]] constexpr View<T, S> view() { return View<T, S>(data_.data()); }
  [[nodiscard]] constexpr View<const T, S> view() const { return View<const T, S>(data_.data()); }
  friend constexpr bool operator==(const Tensor&, const Tensor&) = default;

 private:
  std::conditional_t<in_place, std::array<T, elements>, std::vector<T>> data_{};
};

// Calls visit(index) for every index of `dims`, row-major.
template <class F>
constexpr void for_each_index(const Dims& dims, F&& visit) {
  if (volume(dims) == 0) return;
  Dims index = Dims::filled(dims.rank, 0);
  do visit(std::as_const(index));
  while (advance(index, dims));
}

// Element by element; the shapes are the same.
template <class T>
constexpr void copy_elements(const View<const T>& from, const View<T>& to) {
  for_each_index(from.dims(), [&](const Dims& index) { to[index] = from[index]; });
}

// What the verbs accept: tensors and views, of run-time or static shape.
template <class T, class S>
constexpr View<const T> read(const Tensor<T, S>& tensor) {
  return tensor.view();
}
template <class T>
constexpr View<const std::remove_const_t<T>> read(const View<T>& view) {
  return view;
}

template <class X>
concept Readable = requires(const X& x) { read(x); };
template <class X>
concept StaticReadable = Readable<X> && StaticShape<typename X::shape>;
template <Readable X>
using Element = typename X::value_type;
// A tangent or a gradient has the scalar of its input.
template <class A, class X>
concept ScalarsAgree = std::same_as<Element<A>, Element<X>>;

}  // namespace cenote
