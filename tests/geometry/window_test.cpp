// Windows and output sizes against brute force.
#include <set>

#include "support/laws.hpp"

namespace cenote::test {
namespace {

// Every window's taps, found by walking the padded input, from the words of G1 to G3 alone.
std::vector<std::vector<Index>> windows_by_force(Index n, Index k, Index s, Index r, Index lo, Index hi, bool ceil) {
  std::vector<std::vector<Index>> windows;
  const auto add = [&](Index start) {
    std::vector<Index> taps;
    for (Index w = 0; w < k; ++w) taps.push_back(start + w * r);
    windows.push_back(taps);
  };
  Index start = -lo;
  Index end = -lo;  // one past the last cell covered
  for (; start + r * (k - 1) < n + hi; start += s) {
    add(start);
    end = start + r * (k - 1) + 1;
  }
  if (ceil && end < n + hi) add(start);                         // round up
  if (ceil && windows.back().front() >= n) windows.pop_back();  // it must start in the input or the low padding
  return windows;
}

TEST(Geometry, SlidingWindowsMatchBruteForce) {
  int checked = 0;
  for (Index n = 1; n <= 7; ++n)
    for (Index k = 1; k <= 5; ++k)
      for (Index s = 1; s <= 4; ++s)
        for (Index r = 1; r <= 3; ++r)
          for (Index lo = 0; lo <= 3; ++lo)
            for (Index hi = 0; hi <= 3; ++hi)
              for (const bool ceil : {false, true}) {
                const Resolved resolved =
                    try_resolve({n}, Sliding{.kernel = {k},
                                             .stride = {s},
                                             .padding = {Pad{lo, hi}},
                                             .dilation = {r},
                                             .rounding = ceil ? Rounding::ceil : Rounding::floor});
                const Index span = r * (k - 1) + 1;
                if (!ceil && span > n + lo + hi) {
                  ASSERT_TRUE(resolved.problem.has_value());
                  EXPECT_EQ(resolved.problem->rule, Rule::window_fits);
                  continue;
                }
                if (ceil && span > n + lo + hi) continue;  // CeilOfAnOversizedKernel has these
                ASSERT_FALSE(resolved.problem.has_value());
                const Axis& axis = resolved.geometry.axis(0);
                const auto windows = windows_by_force(n, k, s, r, lo, hi, ceil);
                ASSERT_EQ(axis.out, static_cast<Index>(windows.size()))
                    << "n " << n << " k " << k << " s " << s << " r " << r << " lo " << lo << " hi " << hi << " ceil "
                    << ceil;
                for (Index o = 0; o < axis.out; ++o) {
                  const AxisWindow window = axis.window(o);
                  std::vector<Index> real;
                  Index padded = 0;
                  for (Index w = 0; w < k; ++w) {
                    const Index at = windows[static_cast<std::size_t>(o)][static_cast<std::size_t>(w)];
                    EXPECT_EQ(axis.position(o, w), at);
                    if (at >= 0 && at < n) real.push_back(at);
                    if (at < n + hi) ++padded;
                  }
                  ASSERT_EQ(window.real, static_cast<Index>(real.size()));
                  ASSERT_EQ(window.padded, padded);
                  for (Index i = 0; i < window.real; ++i) {
                    EXPECT_EQ(window.start + i * r, real[static_cast<std::size_t>(i)]);
                    EXPECT_EQ(axis.position(o, window.first + i), real[static_cast<std::size_t>(i)]);
                  }
                  ++checked;
                }
              }
  EXPECT_GT(checked, 10000);
}

// G3 in the words of PyTorch's source: add stride - 1, floor-divide, drop a last window that starts too far right.
TEST(Geometry, CeilSizesFollowTheStartInsideRule) {
  const auto floor_div = [](Index a, Index b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
  for (Index n = 1; n < 12; ++n)
    for (Index k = 1; k < 6; ++k)
      for (Index s = 1; s < 6; ++s)
        for (Index p = 0; p < 4; ++p) {
          Index expected = floor_div(n + 2 * p - k + s - 1, s) + 1;
          if ((expected - 1) * s >= n + p) --expected;
          const Resolved resolved =
              try_resolve({n}, Sliding{.kernel = {k}, .stride = {s}, .padding = p, .rounding = Rounding::ceil});
          if (expected < 1) {
            ASSERT_TRUE(resolved.problem.has_value());
            EXPECT_EQ(resolved.problem->rule, Rule::window_starts);
          } else {
            ASSERT_FALSE(resolved.problem.has_value());
            EXPECT_EQ(resolved.geometry.axis(0).out, expected) << n << " " << k << " " << s << " " << p;
          }
        }
}

TEST(Geometry, AdaptiveWindowsMatchTheFormulaAndTheirBoxIsTight) {
  for (Index n = 1; n <= 40; ++n)
    for (Index m = 1; m <= 50; ++m) {
      const Geometry g = resolve({n}, Adaptive{.output = {m}});
      Index largest = 0;
      for (Index i = 0; i < m; ++i) {
        const AxisWindow window = g.axis(0).window(i);
        EXPECT_EQ(window.start, i * n / m);
        EXPECT_EQ(window.start + window.real, ((i + 1) * n + m - 1) / m);
        largest = std::max(largest, window.real);
      }
      EXPECT_EQ(g.axis(0).kernel, largest) << n << " -> " << m;
    }
}

TEST(Geometry, AdaptiveArithmeticDoesNotOverflow) {
  constexpr Index big = Index{1} << 62;
  static_assert(adaptive_start(big - 1, big, big) == big - 1);
  static_assert(adaptive_end(big - 1, big, big) == big);
  static_assert(adaptive_start(3, big + 1, 7) == (big + 1) / 7 * 3 + (big + 1) % 7 * 3 / 7);
  EXPECT_EQ(adaptive_end(6, big + 1, 7), big + 1);
  EXPECT_EQ(adaptive_start(16777217, 16777219, 16777218), 16777217);  // float32 would lose these
}

TEST(Geometry, SamePaddingKeepsTheSizeDividedByTheStride) {
  for (Index n = 1; n <= 12; ++n)
    for (Index k = 1; k <= 5; ++k)
      for (Index s = 1; s <= 6; ++s)
        for (Index r = 1; r <= 3; ++r) {
          const auto upper = resolve({n}, Sliding{.kernel = {k}, .stride = {s}, .padding = same, .dilation = {r}});
          const auto lower =
              resolve({n}, Sliding{.kernel = {k}, .stride = {s}, .padding = same_lower, .dilation = {r}});
          EXPECT_EQ(upper.axis(0).out, (n + s - 1) / s);
          EXPECT_EQ(lower.axis(0).out, (n + s - 1) / s);
          const Index total = std::max<Index>(0, ((n + s - 1) / s - 1) * s + r * (k - 1) + 1 - n);
          EXPECT_EQ(upper.axis(0).padding.low, total / 2);
          EXPECT_EQ(upper.axis(0).padding.high, total - total / 2);
          EXPECT_EQ(lower.axis(0).padding.low, total - total / 2);
          EXPECT_EQ(lower.axis(0).padding.high, total / 2);
        }
  EXPECT_EQ(resolve({5, 5}, Sliding{.kernel = {2, 2}, .padding = valid}).out(), (Dims{2, 2}));
  EXPECT_EQ(resolve({5, 5}, Sliding{.kernel = {2, 2}, .stride = 2, .padding = same}).out(), (Dims{3, 3}));
}

TEST(Geometry, HugeNumbersAreExactOrRefused) {
  constexpr Index most = std::numeric_limits<Index>::max();
  EXPECT_EQ(resolve({9}, Sliding{.kernel = {2}, .stride = {most}}).out(), Dims{1});
  EXPECT_EQ(resolve({9}, Sliding{.kernel = {2}, .stride = {most}, .rounding = Rounding::ceil}).out(), Dims{1});
  EXPECT_EQ(resolve({most}, Sliding{.kernel = {1}, .stride = {most / 2}, .rounding = Rounding::ceil}).out(), Dims{3});
  EXPECT_EQ(resolve({16777219}, Sliding{.kernel = {2}, .stride = {2}, .rounding = Rounding::ceil}).out(),
            Dims{8388610});
  EXPECT_EQ(try_resolve({9}, Sliding{.kernel = {most}, .dilation = {2}}).problem->rule, Rule::size_overflow);
  EXPECT_EQ(try_resolve({9}, Sliding{.kernel = {2}, .padding = most}).problem->rule, Rule::size_overflow);
  EXPECT_EQ(try_resolve({most, 2}, Sliding{.kernel = {2}}).problem->rule, Rule::size_overflow);
  EXPECT_EQ(try_resolve({9, 9}, Adaptive{.output = {most, 2}}).problem->rule, Rule::size_overflow);
}

TEST(Geometry, DescribesItselfInOneLine) {
  EXPECT_EQ(describe(resolve({8, 64, 112, 112}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1})),
            "8x64x112x112 -> 8x64x56x56, sliding 3x3 stride 2 padding 1");
  EXPECT_EQ(describe(resolve({3, 8, 8}, Sliding{.kernel = {2, 3}, .stride = {1, 2}, .padding = {{0, 1}, {1, 1}}})),
            "3x8x8 -> 3x8x4, sliding 2x3 stride 1x2 padding (0,1)x1");
  EXPECT_EQ(describe(resolve({9}, Sliding{.kernel = {2}, .dilation = {3}, .rounding = Rounding::ceil})),
            "9 -> 4, sliding 2 stride 2 dilation 3 ceil");
  EXPECT_EQ(describe(resolve({2, 13, 13, 5}, Adaptive{.output = 7, .axes = {1, 2}})),
            "2x13x13x5 -> 2x7x7x5, adaptive 7x7 axes 1,2");
  EXPECT_EQ(describe(resolve({4, 7, 7}, Global{.last = 2, .keep = false})), "4x7x7 -> 4, global");
  EXPECT_EQ(describe(resolve({4, 7}, Global{.last = 2, .keep = false})), "4x7 -> scalar, global");
}

TEST(Geometry, NegativeAxesCountFromTheEnd) {
  EXPECT_EQ(resolve({2, 8, 8, 3}, Sliding{.kernel = 2, .axes = {-3, -2}}).out(), (Dims{2, 4, 4, 3}));
  EXPECT_EQ(resolve({2, 8, 9}, Sliding{.kernel = {2, 3}, .axes = {-1, 1}}).out(), (Dims{2, 2, 4}));
}

}  // namespace
}  // namespace cenote::test
