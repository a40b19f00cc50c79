#include "planes.hpp"

#include "parts.hpp"

namespace cenote::cli {

namespace {

constexpr Index few = 32;  // channels; more are neighbours enough

template <class U>
void copy(const Dims& dims, const U* from, const Dims& from_strides, U* to, const Dims& to_strides) {
  // The longest axis innermost: channels are few, and a row has many pixels.
  int inner = 0;
  for (int a = 1; a < dims.rank; ++a)
    if (dims[a] > dims[inner]) inner = a;
  Dims outer = dims;
  outer[inner] = 1;
  const Index count = dims[inner];
  const Index read = from_strides[inner];
  const Index write = to_strides[inner];
  for_each_index(outer, [&](const Dims& index) {
    Index source = 0;
    Index target = 0;
    for (int a = 0; a < index.rank; ++a) {
      source += index[a] * from_strides[a];
      target += index[a] * to_strides[a];
    }
    for (Index i = 0; i < count; ++i) to[target + i * write] = from[source + i * read];
  });
}

}  // namespace

int channel_axis(const Geometry& g, bool fortran) {
  if (g.rank() < 2) return -1;
  const int inner = axis_at(g, g.rank() - 1, fortran);
  const Axis& axis = g.axis(inner);
  return !axis.pooled() && axis.in > 1 && axis.in <= few ? inner : -1;
}

Dims plane_strides(const Dims& dims, int channels, bool fortran) {
  Dims plane = dims;
  plane[channels] = 1;
  Dims strides = strides_of(plane, fortran);
  strides[channels] = volume(plane);
  return strides;
}

void rearrange(Index bytes, const Dims& dims, const std::byte* from, const Dims& from_strides, std::byte* to,
               const Dims& to_strides) {
  const auto as = [&]<class U>(U) {
    copy(dims, reinterpret_cast<const U*>(from), from_strides, reinterpret_cast<U*>(to), to_strides);
  };
  switch (bytes) {
    case 1: return as(std::uint8_t{});
    case 2: return as(std::uint16_t{});
    case 4: return as(std::uint32_t{});
    default: return as(std::uint64_t{});
  }
}

}  // namespace cenote::cli
