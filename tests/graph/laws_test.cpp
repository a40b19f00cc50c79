// What holds for every program in f64: random graphs over all node types.
#include <gtest/gtest.h>

#include "support/programs.hpp"

namespace cenote::test {
namespace {

bool close(double a, double b, double scale) { return std::abs(a - b) <= 1e-10 * (1 + scale); }

double largest(const Tensors<double>& tensors) {
  double out = 0;
  for (const auto& tensor : tensors)
    for (const double x : tensor.data()) out = std::max(out, std::abs(x));
  return out;
}
void expect_close(const Tensors<double>& a, const Tensors<double>& b) {
  RC_ASSERT(a.size() == b.size());
  const double scale = std::max(largest(a), largest(b));
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].data().size(); ++i) RC_ASSERT(close(a[k].data()[i], b[k].data()[i], scale));
}

RC_GTEST_PROP(GraphLaws, N5_TheVjpIsTheAdjointOfTheJvp, ()) {
  const Case<double> c(false);
  const auto pushed = jvp(c.graph, c.inputs, c.tangents);
  const auto pulled = value_and_vjp(c.graph, c.inputs, c.gradients);
  RC_ASSERT(pushed.values == pulled.values);
  const double left = inner_product(pushed.tangents, c.gradients), right = inner_product(c.tangents, pulled.gradients);
  RC_ASSERT(close(left, right, magnitude(pushed.tangents, c.gradients) + magnitude(c.tangents, pulled.gradients)));
}

RC_GTEST_PROP(GraphLaws, TheJvpIsTheProgramAtDualNumbers, ()) {
  const Case<double> c(false);
  RC_PRE(!detaches(c.text));
  const auto duals = by_duals(c);
  const auto pushed = jvp(c.graph, c.inputs, c.tangents);
  expect_close(duals.values, pushed.values);
  expect_close(duals.tangents, pushed.tangents);
}

// Every way to run gives the same numbers, whatever the workspace ran before; memory is shared differently in each.
RC_GTEST_PROP(GraphLaws, EveryWayToRunAgrees, ()) {
  const Case<double> c(false);
  const Program<double> program(c.graph);
  Workspace<double> workspace(program);
  const auto inputs = detail::views(c.inputs), tangents = detail::views(c.tangents), seeds = detail::views(c.gradients);
  const auto values = detail::owned<double>(program.evaluate(workspace, inputs));
  const auto gradients = detail::owned<double>(program.vjp(workspace, inputs, seeds));
  const auto pushed = detail::owned<double>(program.jvp(workspace, inputs, tangents).tangents);
  const auto map = program.linearize(workspace, inputs);
  RC_ASSERT(detail::owned<double>(map.values()) == values);
  const auto other_tangents = random_arrays<double>(input_shapes(c.graph));
  const auto other_seeds = random_arrays<double>(output_shapes(c.graph));
  for (int again = 0; again < 2; ++again) {
    (void)map.push(detail::views(other_tangents));  // what was pushed or pulled before does not matter
    (void)map.pull(detail::views(other_seeds));
    RC_ASSERT(detail::owned<double>(map.pull(seeds)) == gradients);
    RC_ASSERT(detail::owned<double>(map.push(tangents)) == pushed);
  }
  RC_ASSERT(detail::owned<double>(program.evaluate(workspace, inputs)) == values);
  RC_ASSERT(detail::owned<double>(program.vjp(workspace, inputs, seeds)) == gradients);
}

RC_GTEST_PROP(GraphLaws, GradientsOfSomeInputsAreThoseOfAll, ()) {
  const ProgramText text = RandomProgram(false).program();
  Graph<double> graph;
  const auto handles = build(graph, text);
  const auto inputs = random_arrays<double>(input_shapes(graph));
  const auto gradients = random_arrays<double>(output_shapes(graph));
  std::vector<Handle> by;
  std::vector<std::size_t> chosen;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k)
    if (chance()) {
      by.insert(by.begin(), handles[static_cast<std::size_t>(graph.inputs()[k])]);  // in any order
      chosen.insert(chosen.begin(), k);
    }
  RC_PRE(!by.empty());
  const auto all = vjp(graph, inputs, gradients);
  const auto some = vjp(graph, inputs, gradients, by);
  RC_ASSERT(some.size() == by.size());
  for (std::size_t k = 0; k < by.size(); ++k) RC_ASSERT(some[k] == all[chosen[k]]);
}

}  // namespace
}  // namespace cenote::test
