#include "targets/interleave.hpp"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "targets/interleave.cpp"
#include "kernels/highway.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of two, three or four channels, as far as whole vectors go. Returns how far that is.
template <class U>
Index SplitVectors(const U* from, Index channels, Index count, U* to, Index plane) {
  const hn::ScalableTag<U> d;
  const Index n = static_cast<Index>(hn::Lanes(d));
  hn::VFromD<decltype(d)> a, b, c, e;
  Index i = 0;
  if (channels == 2)
    for (; i + n <= count; i += n) {
      hn::LoadInterleaved2(d, from + i * 2, a, b);
      hn::StoreU(a, d, to + i);
      hn::StoreU(b, d, to + plane + i);
    }
  if (channels == 3)
    for (; i + n <= count; i += n) {
      hn::LoadInterleaved3(d, from + i * 3, a, b, c);
      hn::StoreU(a, d, to + i);
      hn::StoreU(b, d, to + plane + i);
      hn::StoreU(c, d, to + 2 * plane + i);
    }
  if (channels == 4)
    for (; i + n <= count; i += n) {
      hn::LoadInterleaved4(d, from + i * 4, a, b, c, e);
      hn::StoreU(a, d, to + i);
      hn::StoreU(b, d, to + plane + i);
      hn::StoreU(c, d, to + 2 * plane + i);
      hn::StoreU(e, d, to + 3 * plane + i);
    }
  return i;
}
template <class U>
Index JoinVectors(const U* from, Index plane, Index channels, Index count, U* to) {
  const hn::ScalableTag<U> d;
  const Index n = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  const auto at = [&](Index c) HWY_ATTR { return hn::LoadU(d, from + c * plane + i); };
  if (channels == 2)
    for (; i + n <= count; i += n) hn::StoreInterleaved2(at(0), at(1), d, to + i * 2);
  if (channels == 3)
    for (; i + n <= count; i += n) hn::StoreInterleaved3(at(0), at(1), at(2), d, to + i * 3);
  if (channels == 4)
    for (; i + n <= count; i += n) hn::StoreInterleaved4(at(0), at(1), at(2), at(3), d, to + i * 4);
  return i;
}

// The others in blocks that stay in the first-level cache while they are read once per channel.
constexpr Index block = 256;

template <class U>
void Split(const U* from, Index channels, Index count, U* to, Index plane) {
  for (Index i = SplitVectors(from, channels, count, to, plane); i < count; i += block)
    for (Index c = 0; c < channels; ++c)
      for (Index j = i; j < HWY_MIN(count, i + block); ++j) to[c * plane + j] = from[j * channels + c];
}
template <class U>
void Join(const U* from, Index plane, Index channels, Index count, U* to) {
  for (Index i = JoinVectors(from, plane, channels, count, to); i < count; i += block)
    for (Index c = 0; c < channels; ++c)
      for (Index j = i; j < HWY_MIN(count, i + block); ++j) to[j * channels + c] = from[c * plane + j];
}

template <class F>
void WithBytes(Index bytes, F&& use) {
  switch (bytes) {
    case 1: return use(std::uint8_t{});
    case 2: return use(std::uint16_t{});
    case 4: return use(std::uint32_t{});
    default: return use(std::uint64_t{});
  }
}

void SplitChannels(Index bytes, const void* from, Index channels, Index count, void* to, Index plane) {
  WithBytes(bytes,
            [&]<class U>(U) { Split(static_cast<const U*>(from), channels, count, static_cast<U*>(to), plane); });
}
void JoinChannels(Index bytes, const void* from, Index plane, Index channels, Index count, void* to) {
  WithBytes(bytes, [&]<class U>(U) { Join(static_cast<const U*>(from), plane, channels, count, static_cast<U*>(to)); });
}

}  // namespace
}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cenote {

HWY_EXPORT(SplitChannels);
HWY_EXPORT(JoinChannels);

void split_channels(Index bytes, const void* from, Index channels, Index count, void* to, Index plane) {
  CENOTE_DISPATCH(SplitChannels)(bytes, from, channels, count, to, plane);
}
void join_channels(Index bytes, const void* from, Index plane, Index channels, Index count, void* to) {
  CENOTE_DISPATCH(JoinChannels)(bytes, from, plane, channels, count, to);
}

}  // namespace cenote
#endif
