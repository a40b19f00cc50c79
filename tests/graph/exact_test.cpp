// What holds for every algebraic program, exactly: random graphs over rationals.
#include <gtest/gtest.h>

#include "cenote/rational.hpp"
#include "support/programs.hpp"

namespace cenote::test {
namespace {

RC_GTEST_PROP(GraphLaws, TheVjpIsTheAdjointOfTheJvpExactly, ()) {
  const Case<Rational> c(true);
  const auto pushed = jvp(c.graph, c.inputs, c.tangents);
  const auto pulled = value_and_vjp(c.graph, c.inputs, c.gradients);
  RC_ASSERT(pushed.values == pulled.values);
  RC_ASSERT(inner_product(pushed.tangents, c.gradients) == inner_product(c.tangents, pulled.gradients));
}

RC_GTEST_PROP(GraphLaws, TheJvpIsTheProgramAtDualNumbersExactly, ()) {
  const Case<Rational> c(true);
  RC_PRE(!detaches(c.text));
  const auto duals = by_duals(c);
  const auto pushed = jvp(c.graph, c.inputs, c.tangents);
  RC_ASSERT(duals.values == pushed.values);
  RC_ASSERT(duals.tangents == pushed.tangents);
}

}  // namespace
}  // namespace cenote::test
