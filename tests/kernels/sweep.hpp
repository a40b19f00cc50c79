// Comparisons one after the other, as files of tests about kernels make them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/agree.hpp"

namespace cenote::agree {

// One comparison after the other, on every target.
struct Sweep {
  std::uint64_t seed = 0;

  void operator()(const Resolved& resolved, Type type, const Operator& op, unsigned verbs) {
    ++seed;
    (*this)(resolved, type, op, verbs, seed % 5 == 0 ? Values::nans : (seed % 2 == 0 ? Values::ties : Values::spread));
  }
  void operator()(const Resolved& resolved, Type type, const Operator& op, unsigned verbs, Values x) const {
    if (resolved.problem || testing::Test::HasFailure() || !is_due()) return;
    Case c{.type = type, .op = op, .geometry = resolved.geometry, .x = x, .seed = seed, .verbs = verbs};
    c.threads = {1};
    const std::string problem = disagreement(c);
    EXPECT_TRUE(problem.empty()) << problem;
  }
};

}  // namespace cenote::agree
