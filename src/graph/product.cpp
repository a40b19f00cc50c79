// Matrix products by Eigen, on one thread: a result depends on neither the machine's load nor the number of cores.
#define CENOTE_COMPILED 1
#include "cenote/graph/product.hpp"

#include <Eigen/Core>
#include <algorithm>

namespace cenote::compiled {

namespace {

// Eigen copies panels of its operands before it multiplies: to the stack if they have at most
// EIGEN_STACK_ALLOCATION_LIMIT bytes, to the heap otherwise. Blocks of this many numbers stay within it, so nothing is
// allocated.
constexpr Index depth = 256;
template <class T>
constexpr Index width = EIGEN_STACK_ALLOCATION_LIMIT / (depth * Index{sizeof(T)});

template <class T, int Order>
using Stored = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>;
template <class T, int Order>
using Block = Eigen::Map<const Stored<T, Order>, Eigen::Unaligned, Eigen::OuterStride<>>;

// Rows i.. and columns j.. of a matrix whose memory has the order `Order`.
template <int Order, class T>
Block<T, Order> block(const Matrix<T>& m, Index i, Index j, Index rows, Index cols) {
  const Index outer = Order == Eigen::RowMajor ? m.cols : m.rows;
  const T* at = m.data + (Order == Eigen::RowMajor ? i * outer + j : j * outer + i);
  return Block<T, Order>(at, rows, cols, Eigen::OuterStride<>(outer));
}

template <int A, int B, class T>
void by_blocks(const Matrix<T>& a, const Matrix<T>& b, T* c) {
  using Result = Eigen::Map<Stored<T, Eigen::RowMajor>, Eigen::Unaligned, Eigen::OuterStride<>>;
  for (Index k = 0; k < a.cols; k += depth)
    for (Index i = 0; i < a.rows; i += width<T>)
      for (Index j = 0; j < b.cols; j += width<T>) {
        const Index rows = std::min(width<T>, a.rows - i);
        const Index cols = std::min(width<T>, b.cols - j);
        const Index inner = std::min(depth, a.cols - k);
        Result(c + i * b.cols + j, rows, cols, Eigen::OuterStride<>(b.cols)).noalias() +=
            block<A>(a, i, k, rows, inner) * block<B>(b, k, j, inner, cols);
      }
}

}  // namespace

template <class T>
void multiply(const Matrix<T>& a, const Matrix<T>& b, T* c, bool add) {
  constexpr int row = Eigen::RowMajor, column = Eigen::ColMajor;
  if (!add) std::fill_n(c, a.rows * b.cols, T(0));
  if (a.transposed)
    b.transposed ? by_blocks<column, column>(a, b, c) : by_blocks<column, row>(a, b, c);
  else
    b.transposed ? by_blocks<row, column>(a, b, c) : by_blocks<row, row>(a, b, c);
}

template void multiply<float>(const Matrix<float>&, const Matrix<float>&, float*, bool);
template void multiply<double>(const Matrix<double>&, const Matrix<double>&, double*, bool);

}  // namespace cenote::compiled
