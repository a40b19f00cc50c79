// The kernels of one scalar for the instruction set in use: what dispatch chooses and the run layer calls.
#pragma once

#include "plan/plan.hpp"

namespace cenote {

// A reduction cut into tasks that may run in any order.
struct Kernel {
  Index (*tasks)(const plan::Plan&) = nullptr;
  void (*run)(const plan::Plan&, Index task) = nullptr;
  bool common = false;    // it has loops of its own for the most usual windows
  bool overlaps = false;  // taps may be merged twice
  bool runs = false;      // it has a way for large windows of sums
  bool planes = false;    // it has a way for windows that hold whole planes
  bool totals = false;    // and this one, for sums
};

// Null entries mean that the definition serves the case.
struct Kernels {
  Index vector = 0;                                     // bytes of a vector; 0 if this instruction set has no kernels
  Kernel extreme[2], winner[2], tangent[2];             // [0] minimum, [1] maximum
  Kernel sum, weighted;                                 // weighted: taps are multiplied by a number of their position
  Kernel repeat;                                        // the adjoint of a sum over windows that do not overlap
  Kernel pull, push;                                    // the derivative of a selection from its winners
  Kernel near_sum;                                      // of f32, for windows of few taps
  Kernel square_sum;                                    // Lp of f32 with p = 2, for windows of few taps
  Kernel long_sum, long_weighted;                       // of f64, for windows of many taps
  Kernel power_sum, power_sum_tangent, power_sum_pull;  // smooth max and Lp
};

// Specialised in src/targets/.
template <class T>
const Kernels& kernels();

}  // namespace cenote
