// Matrix products. With the compiled library f32 and f64 go to Eigen (src/graph/product.cpp); any other scalar, and
// everything without it, is served by the definition below.
#pragma once

#include "cenote/scalar.hpp"

namespace cenote {

// A dense matrix: `rows` by `cols`, row by row in memory, or column by column where it is transposed.
template <class T>
struct Matrix {
  const T* data;
  Index rows, cols;
  bool transposed = false;
  [[nodiscard]] const T& at(Index i, Index j) const { return data[transposed ? j * rows + i : i * cols + j]; }
};

#if defined(CENOTE_COMPILED)
namespace compiled {
// Instantiated for f32 and f64. No allocation.
template <class T>
void multiply(const Matrix<T>& a, const Matrix<T>& b, T* c, bool add);
}  // namespace compiled
#endif

// c = a b, or c += a b; c is row by row and shares no memory with a or b.
template <class T>
void multiply(const Matrix<T>& a, const Matrix<T>& b, T* c, bool add = false) {
#if defined(CENOTE_COMPILED)
  if constexpr (std::same_as<T, float> || std::same_as<T, double>) return compiled::multiply<T>(a, b, c, add);
#endif
  for (Index i = 0; i < a.rows; ++i)
    for (Index j = 0; j < b.cols; ++j) {
      T sum = add ? c[i * b.cols + j] : T(Index{0});
      for (Index k = 0; k < a.cols; ++k) sum = sum + a.at(i, k) * b.at(k, j);
      c[i * b.cols + j] = sum;
    }
}

}  // namespace cenote
