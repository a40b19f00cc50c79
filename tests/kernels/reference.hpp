// The definition at long double, with how far a kernel may be from it: the reference of every result that is rounded.
#pragma once

#include <vector>

#include "kernels/agree.hpp"

namespace cenote::agree {

using Exact = long double;

// The arithmetic that a scalar's kernels are held to.
struct Precision {
  int digits;        // of the arithmetic: 24 or 53
  int min_exponent;  // as in std::numeric_limits
  [[nodiscard]] Exact ulp(Exact x) const;
  [[nodiscard]] Exact smallest_normal() const;
};

// One quantity (y, dy or gx), dense: where it lies exactly, how far off a result may be, the sum of the magnitudes that
// it was added up from, and of the finite ones among them (of dy and gx).
struct Bounded {
  std::vector<Exact> exact, slack, scale, finite_scale;
  std::vector<bool> finite_parts;  // nothing infinite or NaN went into it
};

struct Reference {
  Bounded y, dy, gx;
};

// `dx` and `gy` may be empty; what follows from them is then empty as well. Average, Sum, SmoothMax and Lp only.
Reference reference(const Operator& op, const Geometry& g, const std::vector<Exact>& x, const std::vector<Exact>& dx,
                    const std::vector<Exact>& gy, const Precision& precision);

}  // namespace cenote::agree
