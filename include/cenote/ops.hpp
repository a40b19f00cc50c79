// The operators: how a window becomes a number. The one closed list, and what the verbs ask of an operator.
#pragma once

#include "cenote/ops/average.hpp"
#include "cenote/ops/lp.hpp"
#include "cenote/ops/max.hpp"
#include "cenote/ops/min.hpp"
#include "cenote/ops/reduce.hpp"
#include "cenote/ops/smooth_max.hpp"
#include "cenote/ops/sum.hpp"

namespace cenote {

// Every operator that has a value and weights.
#define CENOTE_OPERATORS(X) X(Max) X(Min) X(Average) X(Sum) X(SmoothMax) X(Lp)

// An operator whose value is defined for the scalar T.
template <class Op, class T>
concept OperatorOn = Scalar<T> && Op::template accepts<T> && requires(const Op& op, const Window<T>& window) {
  { op.value(window) } -> std::convertible_to<T>;
};

// ... and whose derivative is: it has weights, and T can divide.
template <class Op, class T>
concept DifferentiableOn = OperatorOn<Op, T> && Field<T> && requires(const Op& op, const Window<T>& window) {
  op.weights(window, [](const Tap<T>&, const auto&) {});
};

// ... and whose value is that of one tap, the winner.
template <class Op>
concept Selecting = Op::selects;

}  // namespace cenote
