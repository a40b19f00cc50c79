// The laws as constant expressions: if this file compiles, they hold on these domains without exception.
#include <gtest/gtest.h>

#include <array>

#include "cenote/fraction.hpp"
#include "cenote/spec.hpp"
#include "cenote/static.hpp"

namespace cenote {
namespace {

// Every input over {0, 1} on up to Cells cells (ties everywhere), every pair of basis vectors: the pushed and the
// pulled Jacobian agree, entry by entry.
template <class Op>
constexpr bool adjoint_everywhere(const Op& op, const Geometry& g) {
  constexpr std::size_t cells = 4;
  const auto ins = static_cast<std::size_t>(volume(g.in()));
  const auto outs = static_cast<std::size_t>(volume(g.out()));
  std::array<Fraction, cells> x{};
  std::array<Fraction, cells> dx{};
  std::array<Fraction, cells> gx{};
  std::array<Fraction, 2 * cells> dy{};
  std::array<Fraction, 2 * cells> gy{};
  std::array<Fraction, 2 * cells * cells> jacobian{};
  const auto in = [&](auto& a) { return View<Fraction>(a.data(), g.in()); };
  const auto out = [&](auto& a) { return View<Fraction>(a.data(), g.out()); };
  for (std::size_t bits = 0; bits < (std::size_t{1} << ins); ++bits) {
    for (std::size_t i = 0; i < ins; ++i) x[i] = Fraction(static_cast<Index>(bits >> i & 1));
    for (std::size_t i = 0; i < ins; ++i) {
      dx[i] = Fraction(Index{1});
      spec::jvp<Fraction>(op, g, in(x), in(dx), out(dy));
      dx[i] = Fraction(Index{0});
      for (std::size_t o = 0; o < outs; ++o) jacobian[o * cells + i] = dy[o];
    }
    for (std::size_t o = 0; o < outs; ++o) {
      gy[o] = Fraction(Index{1});
      spec::vjp<Fraction>(op, g, in(x), out(gy), in(gx));
      gy[o] = Fraction(Index{0});
      for (std::size_t i = 0; i < ins; ++i)
        if (!(gx[i] == jacobian[o * cells + i])) return false;
    }
  }
  return true;
}

template <class Op>
constexpr bool adjoint_in_1d(const Op& op) {
  return adjoint_everywhere(op, resolve({3}, Sliding{.kernel = {2}, .stride = {1}})) &&
         adjoint_everywhere(op, resolve({3}, Sliding{.kernel = {3}, .stride = {2}, .padding = {Pad{1, 2}}})) &&
         adjoint_everywhere(op, resolve({3}, Sliding{.kernel = {2}, .padding = {2}, .dilation = {2}})) &&
         adjoint_everywhere(op, resolve({3}, Sliding{.kernel = {2}, .rounding = Rounding::ceil})) &&
         adjoint_everywhere(op, resolve({3}, Adaptive{.output = {2}})) &&
         adjoint_everywhere(op, resolve({2}, Adaptive{.output = {3}}));
}

template <class Op>
constexpr bool adjoint_in_2d(const Op& op) {
  return adjoint_everywhere(op, resolve({2, 2}, Sliding{.kernel = {2, 2}, .stride = 1, .padding = {0, 1}})) &&
         adjoint_everywhere(op, resolve({2, 2}, Global{.last = 2, .keep = false}));
}

static_assert(adjoint_in_1d(Max{Ties::first}));
static_assert(adjoint_in_1d(Max{Ties::all}));
static_assert(adjoint_in_1d(Max{Ties::split}));
static_assert(adjoint_in_1d(Min{Ties::first}));
static_assert(adjoint_in_1d(Min{Ties::split}));
static_assert(adjoint_in_1d(Average{}));
static_assert(adjoint_in_1d(Average{Divisor::real}));
static_assert(adjoint_in_1d(Average{Divisor(5)}));
static_assert(adjoint_in_1d(Sum{}));
static_assert(adjoint_in_2d(Max{Ties::first}));
static_assert(adjoint_in_2d(Max{Ties::all}));
static_assert(adjoint_in_2d(Max{Ties::split}));
static_assert(adjoint_in_2d(Min{Ties::all}));
static_assert(adjoint_in_2d(Average{}));
static_assert(adjoint_in_2d(Average{Divisor::real}));
static_assert(adjoint_in_2d(Sum{}));

// Values, in the types.
constexpr Tensor<int, Shape<1, 4, 4>> image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
constexpr auto pooled = spec::forward<Sliding{.kernel = {2, 2}}>(Max{}, image);
static_assert(std::is_same_v<decltype(pooled), const Tensor<int, Shape<1, 2, 2>>>);
static_assert(pooled == Tensor<int, Shape<1, 2, 2>>{6, 8, 14, 16});
constexpr auto flat = spec::forward<Global{.last = 2, .keep = false}>(Average{}, image);
static_assert(flat == Tensor<int, Shape<1>>{8});  // 8.5, half to even

// The tests themselves are above: they ran when this file was compiled.
TEST(CompileTime, AdjointIdentityHoldsOnExhaustiveDomains) {
  EXPECT_TRUE(adjoint_in_1d(Max{Ties::all}));
  EXPECT_TRUE(adjoint_in_2d(Average{Divisor::real}));
}

}  // namespace
}  // namespace cenote
