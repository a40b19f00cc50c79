// The verbs allocate nothing: not per output, not per call, for every scalar that adds its gradients in place.
#include <gtest/gtest.h>

#include "cenote/pool.hpp"
#include "support/allocations.hpp"

namespace cenote {
namespace {

using test::allocations;

TEST(Allocation, ForwardJvpAndVjpAllocateNothing) {
  const Geometry g = resolve({2, 9, 9}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1});
  const Tensor<float> x(g.in(), 1.0F);
  Tensor<float> dx(g.in(), 1.0F);
  Tensor<float> y(g.out());
  Tensor<float> gx(g.in());
  const auto count = [&](const auto& op) {
    const std::size_t before = allocations;
    spec::forward<float>(op, g, x.view(), y.view());
    spec::jvp<float>(op, g, x.view(), dx.view(), y.view());
    spec::vjp<float>(op, g, x.view(), y.view(), gx.view());
    return allocations - before;
  };
  EXPECT_EQ(count(Max{}), 0U);
  EXPECT_EQ(count(Max{Ties::split}), 0U);
  EXPECT_EQ(count(Average{}), 0U);
  EXPECT_EQ(count(SmoothMax{2}), 0U);
  EXPECT_EQ(count(Lp{3}), 0U);
}

TEST(Allocation, ResolveAllocatesNothing) {
  const std::size_t before = allocations;
  const Geometry g = resolve({2, 9, 9}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1});
  EXPECT_EQ(g.rank(), 3);
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace cenote
