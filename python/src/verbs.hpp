// What the verbs of the module share: the inputs of a call, and computing without Python's lock.
#pragma once

#include "arguments.hpp"
#include "arrays.hpp"
#include "cenote/indices.hpp"
#include "cenote/run.hpp"
#include "torch.hpp"

namespace cenote::python {

// Lets other Python threads run while a call computes. Calls of a few microseconds keep the lock: handing it over
// would cost them more than they take.
class Unlocked {
 public:
  explicit Unlocked(const Geometry& g) : state_(volume(g.in()) > small ? PyEval_SaveThread() : nullptr) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }

 private:
  static constexpr Index small = 4096;  // cells
  PyThreadState* state_;
};

// Calls use(op, std::type_identity<T>{}) with the operator and the scalar of a call; TypeError where the operator has
// no value (or, for derivatives, no derivative) on that scalar.
[[noreturn]] void raise_unsupported(const char* op, const Place& place, Type type, bool derivative);
template <bool derivative, class F>
void dispatch(const AnyOperator& any, Type type, const Place& place, F&& use) {
  std::visit(
      [&]<class Op>(const Op& op) {
        with_scalar(type, [&]<class T>(std::type_identity<T> scalar) {
          if constexpr (derivative ? DifferentiableOn<Op, T> : OperatorOn<Op, T>)
            use(op, scalar);
          else
            raise_unsupported(Op::name, place, type, derivative);
        });
      },
      any);
}

bool is_linear(const AnyOperator& op);

// Threads as cenote.torch gives them, which are torch's, if not more than the library may use; 0: the library's own.
Execution at_most(int threads);

// An array to write to: the caller's, or one that a marked function makes of a shape.
Array given_or_made(nb::handle object, const Dims& dims, const Place& place);
// Where a result goes: to what the caller gave (None: nothing), or to a new tensor like x.
struct Target {
  Target(nb::handle given) : out(given) {}  // NOLINT(google-explicit-constructor): it is one
  Target(const Array& x, Format of) : like(&x), format(of) {}
  nb::handle out{};
  const Array* like = nullptr;
  Format format{};
};
// The array that a result goes to: given, made, or a new one of numpy's.
Array result_array(const Target& target, const Dims& dims, Type type, std::string_view caller);

// The verbs on arrays that have been read.
nb::object forward_array(const Array& x, nb::handle op, nb::handle windows, const Target& to, const char* caller,
                         int threads);
nb::object forward_array(const Array& x, const AnyOperator& op, const Geometry& g, const Target& to, const char* caller,
                         int threads);
// The value, and the winners as PyTorch numbers them, which `indices` (None: a new array) takes.
nb::object indexed_array(const Array& x, nb::handle op, nb::handle windows, const Target& to, nb::handle indices,
                         const char* caller, int threads);
// Value and tangent in one read of the input, for frameworks that want both.
struct Dual {
  nb::object y, dy;
};
Dual dual_array(const Array& x, const Array& dx, nb::handle op, nb::handle windows, const Target& to,
                const char* caller, int threads);
nb::object vjp_array(nb::handle op, nb::handle windows, nb::handle x, const Array& gy, const Target& to,
                     const char* caller, int threads);
// The same where operator and geometry are known; the operator is linear.
nb::object transpose_array(const AnyOperator& op, const Geometry& g, const Array& gy, const Target& to,
                           const char* caller, int threads);
struct Selected {
  nb::object y, winners;
};
Selected select_array(const Array& x, const AnyOperator& op, const Geometry& g, const Target& to, nb::handle winners,
                      const char* caller, int threads);
nb::object pull_array(const Geometry& g, const Array& winners, const Array& gy, const Target& to, const char* caller,
                      int threads);

// Winners as PyTorch numbers them.
nb::object indices_array(const Geometry& g, const Winners& winners, std::string_view caller,
                         nb::handle out = nb::none());

}  // namespace cenote::python
