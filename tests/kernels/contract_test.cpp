// The library is compiled with -ffp-contract=off: a product that is fused into a sum is rounded once instead of twice,
// on machines that can, and results would depend on the machine. Two equal products of opposite sign cancel exactly if
// each is rounded; fused, the rounding error of the first remains.
#include <gtest/gtest.h>

#include "cenote/run.hpp"

namespace cenote::test {
namespace {

class Contraction : public testing::Test {
 protected:
  ~Contraction() override { limit_target({}); }

  template <class F>
  static void on_every_target(F&& test) {
    for (const std::string& name : targets()) {
      limit_target(name);
      SCOPED_TRACE(name);
      test();
    }
  }
};

// Numbers whose third, ninth and so on are rounded, and differently for each.
template <class T>
std::vector<T> awkward() {
  std::vector<T> out;
  for (int i = 1; i <= 40; ++i) out.push_back(static_cast<T>(1.0 + i * 0.12345));
  return out;
}

template <class T, class Op>
std::vector<T> gradients(const Op& op, const Geometry& g, const std::vector<T>& x, const std::vector<T>& gy) {
  std::vector<T> gx(x.size());
  vjp<T>(op, g, View<const T>(x.data(), g.in()), View<const T>(gy.data(), g.out()), View<T>(gx.data(), g.in()));
  return gx;
}

template <class T>
void opposite_gradients_cancel() {
  // Two windows of three over four cells; the cells in the middle are in both.
  const Geometry g = resolve({4}, Sliding{.kernel = {3}, .stride = 1});
  for (const T a : awkward<T>()) {
    const std::vector<T> gx = gradients<T>(Average{}, g, {1, 1, 1, 1}, {a, -a});
    EXPECT_EQ(gx[1], 0) << a;
    EXPECT_EQ(gx[2], 0) << a;
    const std::vector<T> split = gradients<T>(Max{Ties::split}, g, {1, 1, 1, 1}, {a, -a});
    EXPECT_EQ(split[1], 0) << a;
    EXPECT_EQ(split[2], 0) << a;
  }
}

TEST_F(Contraction, OppositeGradientsCancelExactly) {
  on_every_target([] {
    opposite_gradients_cancel<float>();
    opposite_gradients_cancel<double>();
  });
}

template <class T, class Op>
T push(const Op& op, const std::vector<T>& x, const std::vector<T>& dx) {
  const Geometry g = resolve({static_cast<Index>(x.size())}, Global{.last = 1});
  T dy = 7;
  jvp<T>(op, g, View<const T>(x.data(), g.in()), View<const T>(dx.data(), g.in()), View<T>(&dy, g.out()));
  return dy;
}

template <class T>
void opposite_tangents_cancel() {
  for (const T a : awkward<T>()) {
    EXPECT_EQ(push<T>(Average{}, {1, 1, 1}, {a, -a, 0}), 0) << a;
    EXPECT_EQ(push<T>(Max{Ties::split}, {1, 1, 1}, {a, -a, 0}), 0) << a;
  }
}

TEST_F(Contraction, OppositeTangentsCancelExactly) {
  on_every_target([] {
    opposite_tangents_cancel<float>();
    opposite_tangents_cancel<double>();
  });
}

// Weights of smooth max and Lp are numbers that are multiplied: the likeliest place for a fused sum.
template <class T>
void weighted_tangents_cancel() {
  const Geometry g = resolve({4}, Sliding{.kernel = {3}, .stride = 1});
  for (const T a : awkward<T>()) {
    EXPECT_EQ(push<T>(SmoothMax{1}, {1, 1, 1}, {a, -a, 0}), 0) << a;
    EXPECT_EQ(push<T>(Lp{2}, {1, 1, 1}, {a, -a, 0}), 0) << a;
    const std::vector<T> gx = gradients<T>(SmoothMax{1}, g, {1, 1, 1, 1}, {a, -a});
    EXPECT_EQ(gx[1], 0) << a;
    EXPECT_EQ(gx[2], 0) << a;
  }
}

TEST_F(Contraction, WeightedTangentsAndGradientsCancelExactly) {
  on_every_target([] {
    weighted_tangents_cancel<float>();
    weighted_tangents_cancel<double>();
  });
}

// Whatever is rounded on the way is rounded alike.
TEST_F(Contraction, AveragesHaveTheSameBitsOnEveryTarget) {
  const Geometry g = resolve({3, 40}, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1});
  std::vector<float> x;
  for (const float a : awkward<float>()) x.push_back(a);
  for (const float a : awkward<float>()) x.push_back(-a * 3.1F);
  for (const float a : awkward<float>()) x.push_back(a * a);
  std::vector<float> first;
  on_every_target([&] {
    std::vector<float> y(x.size());
    forward<float>(Average{}, g, View<const float>(x.data(), g.in()), View<float>(y.data(), g.out()));
    if (first.empty()) first = y;
    EXPECT_EQ(y, first);
  });
}

}  // namespace
}  // namespace cenote::test
