// Programs over intervals: they enclose what the program gives at points, derivatives included.
#include <gtest/gtest.h>

#include "cenote/interval.hpp"
#include "support/programs.hpp"

namespace cenote::test {
namespace {

// Points inside the inputs' intervals have values, tangents and gradients inside the results'.
RC_GTEST_PROP(GraphLaws, IntervalsEncloseSampledPoints, ()) {
  const Case<double> c(false);
  Graph<Interval> graph;
  build(graph, c.text);
  const double radius = static_cast<double>(uniform(0, 4)) / 16;
  const auto wide = [&](double x) { return Interval(x - radius, x + radius); };
  const auto exact = [](double x) { return Interval(x); };
  const auto inputs = mapped<Interval>(c.inputs, wide);
  const auto pushed = jvp(graph, inputs, mapped<Interval>(c.tangents, exact));
  const auto pulled = vjp(graph, inputs, mapped<Interval>(c.gradients, exact));
  // f64 rounds where intervals enclose; at a point it may leave them by as much.
  const auto inside = [](const Tensors<Interval>& sets, const Tensors<double>& points) {
    for (std::size_t k = 0; k < sets.size(); ++k)
      for (std::size_t i = 0; i < sets[k].data().size(); ++i) {
        const Interval& set = sets[k].data()[i];
        const double x = points[k].data()[i], slack = 1e-9 * (1 + std::abs(x));
        RC_ASSERT(set.lower() - slack <= x && x <= set.upper() + slack);
      }
  };
  for (int sample = 0; sample < 3; ++sample) {
    auto points = c.inputs;
    for (auto& tensor : points)
      for (double& x : tensor.data()) x += radius * static_cast<double>(uniform(-8, 8)) / 8;
    const auto push = jvp(c.graph, points, c.tangents);
    inside(pushed.values, push.values);
    inside(pushed.tangents, push.tangents);
    inside(pulled, vjp(c.graph, points, c.gradients));
  }
}

}  // namespace
}  // namespace cenote::test
