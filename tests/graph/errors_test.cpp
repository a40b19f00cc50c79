// Every mistake that a graph can be asked to make, with the whole message: the node, the shapes it got and those
// expected.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "cenote/graph.hpp"

namespace cenote {
namespace {

// A graph of every kind of thing, and what goes with it.
struct Fixture {
  Graph<double> g;
  Handle x = g.input("x", {2, 3});
  Handle w = g.input("w", {3, 4});
  Handle y = matmul(g, x, w);
  Graph<double> other;
  Handle stranger = other.input("x", {2, 3});
  Handle image = g.input("image", {1, 4, 4});
  Tensor<double> tx{Dims{2, 3}}, tw{Dims{3, 4}}, ti{Dims{1, 4, 4}}, ty{Dims{2, 4}};
};

// A node whose payloads throw where they are told to.
Node<double> bomb(const Handle& x, const Dims& shape, const std::string& where) {
  const auto go = [where](const char* here) {
    if (where == here) throw std::runtime_error("boom in " + where);
  };
  return {.name = "bomb",
          .inputs = {x},
          .shape = shape,
          .forward =
              [=](const Forward<double>& f) {
                detail::copy_into(f.x[0], f.y);
                go("forward");
              },
          .jvp =
              [=](const Jvp<double>& j) {
                detail::copy_into(j.dx[0], j.dy);
                go("jvp");
              },
          .vjp =
              [=](const Vjp<double>& v) {
                detail::copy_into(v.gy, v.gx[0]);
                go("vjp");
              }};
}

struct Mistake {
  Rule rule;
  std::function<void(Fixture&)> make;
  std::string says;
};

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> list{
      // N1: handles and names
      {Rule::handle_unknown, [](Fixture& f) { relu(f.g, Handle()); },
       "relu: x is no node; use a handle that this graph gave out"},
      {Rule::handle_unknown, [](Fixture& f) { add(f.g, f.x, Handle()); },
       "add: b is no node; use a handle that this graph gave out"},
      {Rule::handle_unknown,
       [](Fixture& f) {
         concatenate(f.g, {f.x, Handle()}, 0);
       },
       "concatenate: xs[1] is no node; use a handle that this graph gave out"},
      {Rule::handle_unknown, [](Fixture& f) { f.g.add(bomb(Handle(), {2}, "")); },
       "bomb: input 0 is no node; use a handle that this graph gave out"},
      {Rule::handle_foreign, [](Fixture& f) { max_pool(f.g, f.stranger, {.kernel = {2}}); },
       "max_pool: x is a node of another graph; use a handle that this graph gave out"},
      {Rule::handle_foreign, [](Fixture& f) { linear(f.g, f.x, f.stranger); },
       "linear: weights is a node of another graph; use a handle that this graph gave out"},
      {Rule::handle_foreign, [](Fixture& f) { f.g.output("y", f.stranger); },
       "output: `y` is a node of another graph; use a handle that this graph gave out"},
      {Rule::handle_foreign,
       [](Fixture& f) {
         f.g.output("y", f.y);
         Program<double>(f.g, {.by = {f.stranger}});
       },
       "Program: by is a node of another graph; use a handle that this graph gave out"},
      {Rule::name_unique, [](Fixture& f) { f.g.input("w", {1}); },
       "input: name is `w`, a name that is taken; inputs need different names, and so do outputs"},
      {Rule::name_unique,
       [](Fixture& f) {
         f.g.output("y", f.y);
         f.g.output("y", f.x);
       },
       "output: name is `y`, a name that is taken; inputs need different names, and so do outputs"},
      {Rule::input_expected,
       [](Fixture& f) {
         f.g.output("y", f.y);
         Program<double>(f.g, {.by = {f.x, f.y}});
       },
       "Program: by is node 2 (matmul: 2x3 and 3x4 -> 2x4); derivatives are taken by inputs, each named once"},
      {Rule::input_expected,
       [](Fixture& f) {
         f.g.output("y", f.y);
         Program<double>(f.g, {.by = {f.x, f.x}});
       },
       "Program: by is `x` twice; derivatives are taken by inputs, each named once"},

      // N2: nodes, and what they are connected to
      {Rule::node_incomplete,
       [](Fixture& f) {
         f.g.add({.name = "mine", .inputs = {f.x}, .shape = {2, 3}});
       },
       "mine: forward is empty; a node has a name, forward, jvp and vjp"},
      {Rule::node_incomplete,
       [](Fixture& f) {
         Node<double> node = bomb(f.x, {2, 3}, "");
         node.vjp = nullptr;
         f.g.add(node);
       },
       "bomb: vjp is empty; a node has a name, forward, jvp and vjp"},
      {Rule::node_incomplete, [](Fixture& f) { f.g.add({}); },
       "add: name is empty; a node has a name, forward, jvp and vjp"},
      {Rule::inputs_expected, [](Fixture& f) { concatenate(f.g, {}, 0); },
       "concatenate: xs has 0 handles; expected at least 1 (inputs none; expected at least one input)"},
      {Rule::shape_mismatch,
       [](Fixture& f) {
         add(f.g, f.x, f.g.input("z", {2, 4}));
       },
       "add: b has size 4 on axis 1; expected 3 (inputs 2x3 and 2x4; expected equal shapes)"},
      {Rule::rank_mismatch, [](Fixture& f) { mul(f.g, f.x, f.image); },
       "mul: b has 3 axes; expected 2 (inputs 2x3 and 1x4x4; expected equal shapes)"},
      {Rule::shape_mismatch, [](Fixture& f) { mean_squared_error(f.g, f.x, f.w); },
       "mean_squared_error: b has size 3 on axis 0; expected 2 (inputs 2x3 and 3x4; expected equal shapes)"},
      {Rule::shape_mismatch, [](Fixture& f) { softmax_cross_entropy(f.g, f.x, f.w); },
       "softmax_cross_entropy: b has size 3 on axis 0; expected 2 (inputs 2x3 and 3x4; expected equal shapes)"},
      {Rule::rank_mismatch, [](Fixture& f) { softmax_cross_entropy(f.g, f.g.input("s", {}), f.g.input("t", {})); },
       "softmax_cross_entropy: a has 0 axes; expected 1 (inputs scalar; expected ... x classes)"},
      {Rule::shape_mismatch, [](Fixture& f) { matmul(f.g, f.x, f.x); },
       "matmul: b has size 2 on axis 0; expected 3 (inputs 2x3 and 2x3; expected n x k and k x m)"},
      {Rule::rank_mismatch, [](Fixture& f) { matmul(f.g, f.image, f.x); },
       "matmul: a has 3 axes; expected 2 (inputs 1x4x4 and 2x3; expected n x k and k x m)"},
      {Rule::shape_mismatch, [](Fixture& f) { linear(f.g, f.x, f.w); },
       "linear: weights has size 4 on axis 1; expected 3 (inputs 2x3 and 3x4; expected ... x in, out x in and out)"},
      {Rule::shape_mismatch,
       [](Fixture& f) {
         linear(f.g, f.x, f.g.input("v", {5, 3}), f.g.input("b", {4}));
       },
       "linear: bias has size 4 on axis 0; expected 5 (inputs 2x3, 5x3 and 4; expected ... x in, out x in and out)"},
      {Rule::shape_mismatch,
       [](Fixture& f) {
         conv(f.g, f.image, f.g.input("k", {2, 3, 3, 3}));
       },
       "conv: weights has size 3 on axis 1; expected 1 (inputs 1x4x4 and 2x3x3x3; expected (batch x) channels x space, "
       "outputs x channels x window and outputs)"},
      {Rule::window_fits,
       [](Fixture& f) {
         conv(f.g, f.image, f.g.input("k", {2, 1, 3, 5}));
       },
       "conv: kernel spans 5 cells on axis 1, but the padded input has 4; the dilated kernel may not be larger than "
       "the "
       "padded input (inputs 1x4x4 and 2x1x3x5; expected (batch x) channels x space, outputs x channels x window and "
       "outputs)"},
      {Rule::torch_rank,
       [](Fixture& f) {
         conv(f.g, f.x, f.g.input("k", {2, 1, 3, 3}));
       },
       "conv: x has 2 axes; expected 3 (unbatched) or one more (batched) (inputs 2x3 and 2x1x3x3; expected (batch x) "
       "channels x space, outputs x channels x window and outputs)"},
      {Rule::element_count, [](Fixture& f) { reshape(f.g, f.x, {5}); },
       "reshape: x has 6 elements; the shape needs 5 (inputs 2x3; expected as many elements as the new shape)"},
      {Rule::axis_range, [](Fixture& f) { flatten(f.g, f.x, 2); },
       "flatten: from names axis 2; the input has 2 axes, so -2 to 2-1 are legal (inputs 2x3; expected one of the "
       "axes)"},
      {Rule::shape_mismatch,
       [](Fixture& f) {
         concatenate(f.g, {f.x, f.w}, 1);
       },
       "concatenate: xs has size 3 on axis 0; expected 2 (inputs 2x3 and 3x4; expected shapes that differ on that axis "
       "only)"},
      {Rule::axis_range, [](Fixture& f) { sum(f.g, f.x, {2}); },
       "sum: axes names axis 2; the input has 2 axes, so -2 to 2-1 are legal (input 2x3)"},
      {Rule::window_fits,
       [](Fixture& f) {
         avg_pool(f.g, f.image, {.kernel = {5, 5}});
       },
       "avg_pool: kernel spans 5 cells on axis 1, but the padded input has 4; the dilated kernel may not be larger "
       "than "
       "the padded input (input 1x4x4)"},
      {Rule::beta_legal,
       [](Fixture& f) {
         smooth_max_pool(f.g, f.image, {.kernel = {2, 2}}, {.beta = 0});
       },
       "smooth_max_pool: beta is 0; it must be finite and not 0 (positive: smooth maximum, negative: smooth minimum)"},
      {Rule::torch_padding,
       [](Fixture& f) {
         max_pool2d_pad(f.g, f.image, {2, 2}, 2);
       },
       "max_pool2d_pad: padding is 2 on axis 1; PyTorch's names allow at most half the effective kernel, here 1"},
      {Rule::size_nonnegative,
       [](Fixture& f) {
         f.g.input("n", {2, -1});
       },
       "input: shape is -1 on axis 1; a size must be at least 0"},
      {Rule::shape_mismatch, [](Fixture& f) { (void)f.g.as<Shape<2, 4>>(f.x); },
       "as: x has size 3 on axis 1; expected 4 (got 2x3, expected 2x4)"},

      // N3: what a run is given
      {Rule::outputs_missing, [](Fixture& f) { Program<double>{f.g}; },
       "Program: outputs are missing; name what the program returns with output()"},
      {Rule::input_missing,
       [](Fixture& f) {
         f.g.output("y", f.y);
         evaluate(f.g, {f.tx});
       },
       "evaluate: input `w` (3x4) is missing; 1 arrays were given for 3 inputs"},
      {Rule::array_count,
       [](Fixture& f) {
         f.g.output("y", f.y);
         evaluate(f.g, {f.tx, f.tw, f.ti, f.ti});
       },
       "evaluate: inputs has 4 arrays; expected 3, one for each of `x` (2x3), `w` (3x4), `image` (1x4x4)"},
      {Rule::shape_mismatch,
       [](Fixture& f) {
         f.g.output("y", f.y);
         evaluate(f.g, {f.tx, f.tx, f.ti});
       },
       "evaluate: inputs[w] has size 2 on axis 0; expected 3 (got 2x3, expected 3x4)"},
      {Rule::array_count,
       [](Fixture& f) {
         f.g.output("y", f.y);
         jvp(f.g, {f.tx, f.tw, f.ti}, {f.tx});
       },
       "jvp: tangents has 1 arrays; expected 3, one for each of `x` (2x3), `w` (3x4), `image` (1x4x4)"},
      {Rule::array_count,
       [](Fixture& f) {
         f.g.output("y", f.y);
         jvp(f.g, {f.tx, f.tw, f.ti}, {f.tx, f.tw}, {f.w});
       },
       "jvp: tangents has 2 arrays; expected 1, one for each of `w` (3x4)"},
      {Rule::rank_mismatch,
       [](Fixture& f) {
         f.g.output("y", f.y);
         jvp(f.g, {f.tx, f.tw, f.ti}, {f.ti}, {f.w});
       },
       "jvp: tangents[w] has 3 axes; expected 2 (got 1x4x4, expected 3x4)"},
      {Rule::array_count,
       [](Fixture& f) {
         f.g.output("y", f.y);
         vjp(f.g, {f.tx, f.tw, f.ti}, {});
       },
       "value_and_vjp: output gradients has 0 arrays; expected 1, one for each of `y` (2x4)"},
      {Rule::shape_mismatch,
       [](Fixture& f) {
         f.g.output("y", f.y);
         vjp(f.g, {f.tx, f.tw, f.ti}, {f.tx});
       },
       "value_and_vjp: output gradients[y] has size 3 on axis 1; expected 4 (got 2x3, expected 2x4)"},
      {Rule::workspace_foreign,
       [](Fixture& f) {
         f.g.output("y", f.y);
         const Program<double> one(f.g), two(f.g);
         Workspace<double> workspace(one);
         (void)two.evaluate(workspace, {f.tx.view(), f.tw.view(), f.ti.view()});
       },
       "evaluate: workspace belongs to another program; make one from this program"},
      {Rule::map_stale,
       [](Fixture& f) {
         f.g.output("y", f.y);
         const Program<double> program(f.g);
         Workspace<double> workspace(program);
         const auto map = program.linearize(workspace, {f.tx.view(), f.tw.view(), f.ti.view()});
         (void)map.pull({f.ty.view()});
         (void)program.evaluate(workspace, {f.tx.view(), f.tw.view(), f.ti.view()});
         (void)map.pull({f.ty.view()});
       },
       "pull: this linear map is out of date, because its workspace has run since; linearize again"},
      {Rule::array_count,
       [](Fixture& f) {
         const auto program = [](auto& g) {
           g.output("y", mean_squared_error(g, g.input("a", {2}), g.input("b", {2})));
         };
         hessian_vector_product<double>(program, {f.tx, f.tx}, {f.tx});
       },
       "hessian_vector_product: direction has 1 arrays; expected 2, one for each of the inputs"},

      // N4: payloads that throw
      {Rule::payload_threw,
       [](Fixture& f) {
         f.g.output("y", f.g.add(bomb(f.x, {2, 3}, "forward")));
         evaluate(f.g, {f.tx, f.tw, f.ti});
       },
       "evaluate: node 4 (bomb: 2x3 -> 2x3) threw: boom in forward"},
      {Rule::payload_threw,
       [](Fixture& f) {
         f.g.output("y", f.g.add(bomb(f.x, {2, 3}, "jvp")));
         jvp(f.g, {f.tx, f.tw, f.ti}, {f.tx, f.tw, f.ti});
       },
       "jvp: node 4 (bomb: 2x3 -> 2x3) threw: boom in jvp"},
      {Rule::payload_threw,
       [](Fixture& f) {
         f.g.output("y", f.g.add(bomb(f.x, {2, 3}, "vjp")));
         vjp(f.g, {f.tx, f.tw, f.ti}, {f.tx});
       },
       "value_and_vjp: node 4 (bomb: 2x3 -> 2x3) threw: boom in vjp"},
  };
  return list;
}

TEST(GraphErrors, N1_N2_N3_N4_EveryMistakeSaysWhatIsWrong) {
  std::set<Rule> seen;
  for (const Mistake& mistake : mistakes()) {
    Fixture f;
    try {
      mistake.make(f);
      ADD_FAILURE() << "nothing was thrown for " << mistake.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.rule, mistake.rule) << error.what();
      EXPECT_EQ(error.what(), mistake.says);
      if (error_rules[static_cast<std::size_t>(error.rule)].kind == ErrorKind::Graph) {
        EXPECT_NE(dynamic_cast<const GraphError*>(&error), nullptr) << error.what();
      }
      seen.insert(error.rule);
    }
  }
  for (const ErrorRule& rule : error_rules)
    EXPECT_EQ(seen.count(rule.rule) == 0 && rule.kind == ErrorKind::Graph, false) << "no call breaks " << rule.name;
}

TEST(GraphErrors, N1_HandlesOfNoNodeAndOfOtherGraphsAreRefused) {
  Fixture f;
  EXPECT_THROW(neg(f.g, Handle()), GraphError);
  EXPECT_THROW(neg(f.g, f.stranger), GraphError);
  Graph<double> moved = std::move(f.g);
  EXPECT_NO_THROW(neg(moved, f.x));  // handles go with the nodes
  EXPECT_THROW(neg(f.g, f.x), GraphError);
}

// Whatever is refused, the graph stays as it was.
TEST(GraphErrors, N2_ARefusedNodeLeavesTheGraphAsItWas) {
  for (const Mistake& mistake : mistakes()) {
    if (mistake.rule == Rule::payload_threw) continue;
    Fixture f;
    const int inputs = static_cast<int>(f.g.inputs().size());
    try {
      mistake.make(f);
    } catch (const Error&) {
      // Some mistakes add their own inputs and outputs first; no operation is ever left behind.
      for (int i = 0; i < f.g.size(); ++i)
        EXPECT_TRUE(f.g.record(i).kind == detail::NodeKind::input || i == 2) << mistake.says;
      EXPECT_EQ(f.g.size() - static_cast<int>(f.g.inputs().size()), 1) << mistake.says;
      EXPECT_GE(static_cast<int>(f.g.inputs().size()), inputs);
    }
  }
}

TEST(GraphErrors, N3_WhatARunIsGivenIsCheckedBeforeAnythingRuns) {
  Fixture f;
  int runs = 0;
  f.g.output("y", pointwise<Reads::nothing>(
                      f.g, "counted", f.y,
                      [&runs](double x) {
                        ++runs;
                        return x;
                      },
                      [](double, double, double d) { return d; }));
  EXPECT_THROW(evaluate(f.g, {f.tx, f.tw}), GraphError);
  EXPECT_THROW(jvp(f.g, {f.tx, f.tw, f.ti}, {f.tx}), GraphError);
  EXPECT_THROW(vjp(f.g, {f.tx, f.tw, f.ti}, {f.tx}), ShapeError);
  EXPECT_EQ(runs, 0);
}

TEST(GraphErrors, N4_WhatAPayloadThrowsIsNested) {
  Fixture f;
  f.g.output("y", f.g.add(bomb(f.x, {2, 3}, "forward")));
  try {
    evaluate(f.g, {f.tx, f.tw, f.ti});
    FAIL();
  } catch (const GraphError& error) {
    try {
      std::rethrow_if_nested(error);
      FAIL();
    } catch (const std::runtime_error& cause) {
      EXPECT_STREQ(cause.what(), "boom in forward");
    }
  }
}

// After a failure the workspace runs as if nothing had happened.
TEST(GraphErrors, N4_AFailedRunLeavesNothingBehind) {
  Graph<double> g;
  bool armed = false;
  const Handle x = g.input("x", {3});
  Node<double> node = bomb(tanh(g, x), {3}, "");
  node.vjp = [&armed](const Vjp<double>& v) {
    if (armed) throw 42;  // not even a std::exception
    for (std::size_t i = 0; i < 3; ++i) v.gx[0][i] = 2 * v.gy[i];
  };
  g.output("y", g.add(node));
  const Program<double> program(g);
  Workspace<double> workspace(program);
  const Tensor<double> tx({3}, {0.5, -1, 2}), seed({3}, {1, 2, 3});
  const auto before = detail::owned<double>(program.vjp(workspace, {tx.view()}, {seed.view()}));
  armed = true;
  try {
    (void)program.vjp(workspace, {tx.view()}, {seed.view()});
    FAIL();
  } catch (const GraphError& error) {
    EXPECT_STREQ(error.what(), "value_and_vjp: node 2 (bomb: 3 -> 3) threw: something that is no std::exception");
  }
  armed = false;
  EXPECT_EQ(detail::owned<double>(program.vjp(workspace, {tx.view()}, {seed.view()})), before);
}

}  // namespace
}  // namespace cenote
