#include <cenote/pool.hpp>
#include <cstdio>

using namespace cenote;

int main() {
  // One image of 4x4. Any rank, any axes: the last two are pooled because the kernel has two entries.
  const Tensor<float> x({1, 4, 4}, {1, 5, 2, 0,  //
                                    4, 3, 8, 6,  //
                                    7, 9, 1, 1,  //
                                    0, 2, 3, 4});
  const Sliding windows{.kernel = {3, 3}, .stride = 2, .padding = 1};
  std::printf("%s\n", describe(resolve(x.dims(), windows)).c_str());

  const auto [y, winners] = max_pool_with_indices(x, windows);
  for (std::size_t i = 0; i < 4; ++i) std::printf("max %g at cell %ld\n", y.data()[i], long(winners.data()[i]));

  // Backward: each output's gradient goes to the cell that won.
  const Tensor<float> gy({1, 2, 2}, {1, 10, 100, 1000});
  for (const float g : max_pool_vjp(x, gy, windows).data()) std::printf("%g ", g);
  std::printf("\n");

  // Shapes in types: u is a Tensor<float, Shape<1, 2, 2>>, and a window that does not fit does not compile.
  constexpr Tensor<float, Shape<1, 4, 4>> t{1, 5, 2, 0, 4, 3, 8, 6, 7, 9, 1, 1, 0, 2, 3, 4};
  constexpr auto u = avg_pool<Sliding{.kernel = {2, 2}}>(t);
  static_assert(u.data()[0] == 3.25F);

  // Wrong arguments are exceptions that say what would be legal.
  try {
    max_pool(x, {.kernel = {3, 9}});
  } catch (const ShapeError& error) {
    std::printf("%s\n", error.what());
  }
}
