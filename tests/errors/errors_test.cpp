// The table of error rules, walked: each rule is broken by at least one call, which throws the right type with the
// operator, the argument, the axis, both numbers and what would be legal.
#include <functional>
#include <limits>
#include <map>

#include "cenote/interval.hpp"
#include "support/laws.hpp"

namespace cenote::test {
namespace {

constexpr Index most = std::numeric_limits<Index>::max();

struct Mistake {
  Rule rule;
  std::function<void()> make;
  std::string says;  // the whole message
};

Tensor<float> ones(const Dims& dims) { return Tensor<float>(dims, 1.0F); }

const std::vector<Mistake>& mistakes() {
  static const Tensor<float> x = ones({2, 5, 6});
  static std::vector<float> buffer(400);
  static const Geometry g = resolve({2, 6}, Sliding{.kernel = {2}});
  static const std::vector<Mistake> list{
      {Rule::kernel_positive,
       [] {
         max_pool(x, {.kernel = {3, 0}});
       },
       "max_pool: kernel is 0 on axis 2; it must be at least 1 (input 2x5x6)"},
      {Rule::kernel_positive,
       [] {
         avg_pool(x, {.kernel = {-3, 1}});
       },
       "avg_pool: kernel is -3 on axis 1; it must be at least 1 (input 2x5x6)"},
      {Rule::stride_positive,
       [] {
         max_pool(x, {.kernel = {3, 3}, .stride = 0});
       },
       "max_pool: stride is 0 on axis 1; it must be at least 1 (input 2x5x6)"},
      {Rule::dilation_positive,
       [] {
         max_pool_vjp(x, x, {.kernel = {3, 3}, .dilation = {1, -1}});
       },
       "max_pool_vjp: dilation is -1 on axis 2; it must be at least 1 (input 2x5x6)"},
      {Rule::padding_nonnegative,
       [] {
         max_pool_jvp(x, x, {.kernel = {3, 3}, .padding = {{0, -1}, {0, 0}}});
       },
       "max_pool_jvp: padding is -1 on axis 1; it must be at least 0 (input 2x5x6)"},
      {Rule::window_fits,
       [] {
         smooth_max_pool(x, {.kernel = {3, 3}, .padding = {0, 1}, .dilation = {3, 1}}, {.beta = 1});
       },
       "smooth_max_pool: kernel spans 7 cells on axis 1, but the padded input has 5; the dilated kernel may not be "
       "larger than the padded input (input 2x5x6)"},
      {Rule::window_starts,
       [] {
         max_pool(x, {.kernel = {9, 1}, .stride = 1, .rounding = Rounding::ceil});
       },
       "max_pool: kernel spans 9 cells on axis 1, but the padded input has 5; no window is left even with ceil "
       "rounding, use a smaller kernel or more padding (input 2x5x6)"},
      {Rule::output_positive,
       [] {
         adaptive_max_pool(x, {.output = {3, 0}});
       },
       "adaptive_max_pool: output is 0 on axis 2; it must be at least 1 (input 2x5x6)"},
      {Rule::torch_padding, [] { max_pool2d(x, 3, {.padding = 2}); },
       "max_pool2d: padding is 2 on axis 1; PyTorch's names allow at most half the effective kernel, here 1"},
      {Rule::rank_limit,
       [] {
         Tensor<float>(Dims{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
       },
       "Dims: shape has 17 axes; at most 16 are supported"},
      {Rule::size_nonnegative,
       [] {
         resolve({2, -4}, Sliding{.kernel = {2}});
       },
       "resolve: input is -4 on axis 1; a size must be at least 0 (input 2x-4)"},
      {Rule::size_overflow, [] { resolve({9}, Sliding{.kernel = {2}, .padding = most}); },
       "resolve: padding overflows 64 bits on axis 0 (9223372036854775807 and 9223372036854775807); use smaller sizes "
       "(input 9)"},
      {Rule::size_overflow,
       [] {
         Tensor<float>(Dims{most, 3});
       },
       "volume: shape overflows 64 bits on axis 1 (9223372036854775807 and 3); use smaller sizes"},
      {Rule::pooled_axis_empty,
       [] {
         max_pool(ones({2, 0, 3}), {.kernel = {1, 1}});
       },
       "max_pool: input has size 0 on pooled axis 1; a pooled axis must have at least 1 cell (input 2x0x3)"},
      {Rule::kernel_missing, [] { max_pool(x, {.stride = 2}); },
       "max_pool: kernel names no axis; give one number per pooled axis, or one number together with axes (input "
       "2x5x6)"},
      {Rule::axes_ambiguous, [] { max_pool(x, {.kernel = 3}); },
       "max_pool: kernel is the single number 3; name the axes it is meant for, or give one number per pooled axis "
       "(input 2x5x6)"},
      {Rule::axes_conflict, [] { global_max_pool(x, {.last = 2, .axes = {0}}); },
       "global_max_pool: last asks for 2 axes and axes names 1; give one of the two (input 2x5x6)"},
      {Rule::axes_missing, [] { global_avg_pool(x, {}); },
       "global_avg_pool: axes names no axis; say which axes to pool, or how many of the last ones (input 2x5x6)"},
      {Rule::axes_count,
       [] {
         max_pool(x, {.kernel = {1, 1, 1, 1}});
       },
       "max_pool: kernel names 4 axes, but the input has 3 (input 2x5x6)"},
      {Rule::axes_count, [] { global_max_pool(x, {.last = 4}); },
       "global_max_pool: last names 4 axes, but the input has 3 (input 2x5x6)"},
      {Rule::length_mismatch,
       [] {
         max_pool(x, {.kernel = {2, 2}, .stride = {2, 2, 2}});
       },
       "max_pool: stride has 3 entries; expected 1 or 2, one per pooled axis (input 2x5x6)"},
      {Rule::length_mismatch,
       [] {
         max_pool(x, {.kernel = {2, 2}, .axes = {1}});
       },
       "max_pool: kernel has 2 entries; expected 1 or 1, one per pooled axis (input 2x5x6)"},
      {Rule::axis_range, [] { max_pool(x, {.kernel = 2, .axes = {3}}); },
       "max_pool: axes names axis 3; the input has 3 axes, so -3 to 3-1 are legal (input 2x5x6)"},
      {Rule::axis_range, [] { max_pool(x, {.kernel = 2, .axes = {-4}}); },
       "max_pool: axes names axis -4; the input has 3 axes, so -3 to 3-1 are legal (input 2x5x6)"},
      {Rule::axis_unique,
       [] {
         max_pool(x, {.kernel = {2, 2}, .axes = {1, -2}});
       },
       "max_pool: axes names axis 1 twice; each axis may be pooled once (input 2x5x6)"},
      {Rule::torch_rank, [] { avg_pool3d(x, 2); },
       "avg_pool3d: input has 3 axes; expected 4 (unbatched) or one more (batched)"},
      {Rule::rank_mismatch,
       [] {
         avg_pool_vjp(x, ones({2, 4}), {.kernel = {2, 3}});
       },
       "avg_pool_vjp: gy has 2 axes; expected 3 (got 2x4, expected 2x2x2)"},
      {Rule::shape_mismatch,
       [] {
         max_pool_jvp(x, ones({2, 5, 7}), {.kernel = {2, 3}});
       },
       "max_pool_jvp: dx has size 7 on axis 2; expected 6 (got 2x5x7, expected 2x5x6)"},
      {Rule::data_missing,
       [] {
         View<float>(nullptr, {2, 3});
       },
       "View: data is null; a shape of 6 elements needs memory"},
      {Rule::element_limit, [] { max_pool(x, {.kernel = {1}, .padding = Index{1} << 57}); },
       "max_pool: shape has 2882303761517117500 elements; memory can hold at most 2305843009213693951 of them"},
      {Rule::element_count,
       [] {
         Tensor<float>({2, 2}, {1, 2, 3});
       },
       "Tensor: data has 3 elements; the shape needs 4"},
      {Rule::index_range,
       [] {
         taps(resolve({2, 6}, Sliding{.kernel = {2}}), {1, 3});
       },
       "taps: index is 3 on axis 1; legal are 0 to 3-1"},
      {Rule::unpad_fits,
       [] {
         unpad(x, Pads{{3, 3}, {0, 0}});
       },
       "unpad: padding removes 3 cells on axis 1, but 2 are left (input 2x5x6)"},
      {Rule::unpad_fits,
       [] {
         unpad(x, Pads{{most, most}, {0, 0}});
       },
       "unpad: padding removes 9223372036854775807 cells on axis 1, but 5 are left (input 2x5x6)"},
      {Rule::padding_nonnegative, [] { pad(x, Pads(-1)); },
       "pad: padding is -1 on axis 0; it must be at least 0 (input 2x5x6)"},
      {Rule::padding_given, [] { pad(x, same); },
       "pad: padding is `same`, which needs a kernel to be worked out; give numbers (input 2x5x6)"},
      {Rule::size_overflow,
       [] {
         View<float>(buffer.data(), {0, Index{1} << 40, Index{1} << 40});
       },
       "volume: shape overflows 64 bits on axis 2 (1099511627776 and 1099511627776); use smaller sizes"},
      {Rule::output_overlaps,
       [] {
         spec::forward<float>(Max{}, g, View<float>(buffer.data(), {2, 6}),
                              View<float>(buffer.data() + 99, {2, 3}, {1, 1}));
       },
       "forward: y has two elements at one address; an output's elements must be distinct"},
      {Rule::output_aliases,
       [] {
         spec::forward<float>(Max{}, g, View<float>(buffer.data(), {2, 6}), View<float>(buffer.data() + 11, {2, 3}));
       },
       "forward: y shares memory with an input; an output must have memory of its own"},
      {Rule::output_aliases,
       [] {
         spec::vjp<float>(Max{}, g, View<float>(buffer.data(), {2, 6}), View<float>(buffer.data() + 40, {2, 3}),
                          View<float>(buffer.data() + 35, {2, 6}));
       },
       "vjp: gx shares memory with an input; an output must have memory of its own"},
      {Rule::divisor_nonzero,
       [] {
         avg_pool(x, {.kernel = {2, 2}}, {.divisor = 0});
       },
       "avg_pool: divisor is 0; any other integer is legal"},
      {Rule::beta_legal,
       [] {
         smooth_max_pool(x, {.kernel = {2, 2}}, {});
       },
       "smooth_max_pool: beta is 0; it must be finite and not 0 (positive: smooth maximum, negative: smooth minimum)"},
      {Rule::beta_legal,
       [] {
         smooth_max_pool_vjp(x, x, {.kernel = {1, 1}}, {.beta = std::nan("")});
       },
       "smooth_max_pool_vjp: beta is nan; it must be finite and not 0 (positive: smooth maximum, negative: smooth "
       "minimum)"},
      {Rule::beta_legal,
       [] {
         smooth_max_pool(x, {.kernel = {2, 2}}, {.beta = -HUGE_VAL});
       },
       "smooth_max_pool: beta is -inf; it must be finite and not 0 (positive: smooth maximum, negative: smooth "
       "minimum)"},
      {Rule::p_legal,
       [] {
         lp_pool(x, {.kernel = {2, 2}}, {.p = 0.5});
       },
       "lp_pool: p is 0.5; it must be finite and at least 1"},
      {Rule::p_legal, [] { lp_pool2d(x, HUGE_VAL, 2); }, "lp_pool2d: p is inf; it must be finite and at least 1"},
      {Rule::interval_legal, [] { Interval(2.0, 1.0); },
       "Interval: lower is 2; an interval needs lower <= upper, neither of them NaN (upper is 1)"},
  };
  return list;
}

TEST(Errors, EveryRuleOfTheTableIsBrokenByACallThatSaysSo) {
  std::map<Rule, int> seen;
  for (const Mistake& mistake : mistakes()) {
    const ErrorRule& rule = error_rules[static_cast<std::size_t>(mistake.rule)];
    try {
      mistake.make();
      ADD_FAILURE() << rule.name << ": nothing was thrown for " << mistake.says;
    } catch (const Error& error) {
      EXPECT_EQ(error.rule, mistake.rule) << error.what();
      EXPECT_EQ(error.what(), mistake.says);
      switch (rule.kind) {
        case ErrorKind::Shape: EXPECT_NE(dynamic_cast<const ShapeError*>(&error), nullptr) << rule.name; break;
        case ErrorKind::Parameter: EXPECT_NE(dynamic_cast<const ParameterError*>(&error), nullptr) << rule.name; break;
        case ErrorKind::Overlap: EXPECT_NE(dynamic_cast<const OverlapError*>(&error), nullptr) << rule.name; break;
        case ErrorKind::Graph: EXPECT_NE(dynamic_cast<const GraphError*>(&error), nullptr) << rule.name; break;
      }
      ++seen[error.rule];
    }
  }
  for (const ErrorRule& rule : error_rules) {
    if (rule.id.front() == 'E') continue;  // how the compiled library runs: broken in tests/threads, which links it
    if (rule.id.front() == 'N') continue;  // of graphs: broken in tests/graph/errors_test.cpp
    EXPECT_GT(seen[rule.rule], 0) << "no call breaks " << rule.name;
  }
}

TEST(Errors, CarryTheNumbersOfTheirMessage) {
  try {
    max_pool(ones({2, 5, 6}), {.kernel = {3, 9}});
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_EQ(error.rule, Rule::window_fits);
    EXPECT_EQ(error.argument, "kernel");
    EXPECT_EQ(error.axis, 2);
    EXPECT_EQ(error.got, 9);
    EXPECT_EQ(error.limit, 6);
  }
}

TEST(Errors, AreStandardInvalidArguments) { EXPECT_THROW(max_pool(ones({4}), {.kernel = {9}}), std::invalid_argument); }

TEST(Errors, LeaveTheOutputUntouched) {
  const Geometry g = resolve({6}, Sliding{.kernel = {2}});
  const auto x = ones({6});
  Tensor<float> y({3}, 7.0F);
  EXPECT_THROW(spec::forward<float>(SmoothMax{}, g, x.view(), y.view()), ParameterError);
  EXPECT_THROW(spec::forward<float>(Max{}, g, ones({7}).view(), y.view()), ShapeError);
  EXPECT_EQ(y, Tensor<float>({3}, 7.0F));
}

TEST(Errors, EveryTableRowHasAnIdAndASentence) {
  for (const ErrorRule& rule : error_rules) {
    EXPECT_EQ(rule.id.size(), 2U) << rule.name;
    EXPECT_NE(rule.text.find("{argument}"), std::string_view::npos) << rule.name;
    EXPECT_EQ(&rule, &error_rules[static_cast<std::size_t>(rule.rule)]);
  }
}

}  // namespace
}  // namespace cenote::test
