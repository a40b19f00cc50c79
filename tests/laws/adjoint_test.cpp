// JVP and VJP are adjoint: <J dx, gy> = <dx, J^T gy>.
#include <limits>

#include "cenote/rational.hpp"
#include "support/laws.hpp"

namespace cenote::test {
namespace {

RC_GTEST_PROP(Adjoint, InnerProductsAgreeExactlyOverRationals, ()) {
  const Geometry g = random_geometry();
  const auto x = random_tensor<Rational>(g.in(), 2);  // ties abound
  const auto dx = random_tensor<Rational>(g.in(), 9);
  const auto gy = random_tensor<Rational>(g.out(), 9);
  for_each_algebraic_operator([&](const auto& op) {
    RC_LOG() << describe(g) << ", " << label(op) << "\n";
    RC_ASSERT(dot(push(op, g, x, dx), gy) == dot(dx, pull(op, g, x, gy)));
  });
}

// Bit for bit: column i of J from pushing e_i, row o of J from pulling e_o. NaN and infinities included.
template <class T>
void jacobians_agree(const Geometry& g, const Tensor<T>& x, bool finite = true) {
  for_each_operator<T>([&](const auto& op) {
    const std::size_t ins = x.data().size();
    const std::size_t outs = static_cast<std::size_t>(volume(g.out()));
    std::vector<Tensor<T>> rows;
    for (std::size_t o = 0; o < outs; ++o) rows.push_back(pull(op, g, x, unit<T>(g.out(), o)));
    for (std::size_t i = 0; i < ins; ++i) {
      const auto column = push(op, g, x, unit<T>(g.in(), i));
      for (std::size_t o = 0; o < outs; ++o) {
        const T pushed = column.data()[o];
        const T pulled = rows[o].data()[i];
        RC_LOG() << describe(g) << ", " << label(op) << " output " << o << " input " << i << "\n";
        // A NaN weight times a zero tangent or gradient is NaN, whichever side it is on (S5).
        RC_ASSERT(pushed == pulled || (!finite && (is_nan(pushed) || is_nan(pulled))));
      }
    }
  });
}

// Inputs of up to about 60 cells: the Jacobian is built cell by cell.
Geometry small_geometry() {
  const Geometry g = random_geometry();
  RC_PRE(volume(g.in()) <= 60 && volume(g.out()) <= 60);
  return g;
}

RC_GTEST_PROP(Adjoint, PushAndPullUseOneJacobianInF64, ()) {
  const Geometry g = small_geometry();
  jacobians_agree(g, random_tensor<double>(g.in()));
}

RC_GTEST_PROP(Adjoint, PushAndPullUseOneJacobianInF32, ()) {
  const Geometry g = small_geometry();
  jacobians_agree(g, random_tensor<float>(g.in()));
}

RC_GTEST_PROP(Adjoint, PushAndPullUseOneJacobianWithNaNAndInfinities, ()) {
  const Geometry g = small_geometry();
  auto x = random_tensor<double>(g.in(), 2);
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (double& cell : x.data())
    if (between(0, 3) == 0)
      cell = std::array{inf, -inf, -0.0,
                        std::numeric_limits<double>::quiet_NaN()}[static_cast<std::size_t>(between(0, 3))];
  for_each_algebraic_operator([&](const auto& op) {
    using Op = std::remove_cvref_t<decltype(op)>;
    if constexpr (Selecting<Op>) {  // selections: exact whatever the values are
      for (std::size_t o = 0; o < static_cast<std::size_t>(volume(g.out())); ++o) {
        const auto row = pull(op, g, x, unit<double>(g.out(), o));
        for (std::size_t i = 0; i < x.data().size(); ++i)
          RC_ASSERT(push(op, g, x, unit<double>(g.in(), i)).data()[o] == row.data()[i]);
      }
    }
  });
  jacobians_agree(g, x, false);
}

}  // namespace
}  // namespace cenote::test
