// What a graph is made of: handles, and the node, a small struct with three payloads. Every node is one, the library's
// own and a user's; nothing here knows what a node computes.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cenote/execution.hpp"
#include "cenote/view.hpp"

namespace cenote {

// ---- handles ----------------------------------------------------------------------------------------------------

// A node of a graph; its shape is known to the graph and checked when nodes are connected. Only graphs give handles
// out, and only for nodes that are there, so a node's inputs stand before it and there are no cycles.
class Handle {
 public:
  constexpr Handle() = default;  // of no node
  [[nodiscard]] constexpr std::uint64_t graph() const { return graph_; }
  [[nodiscard]] constexpr int index() const { return index_; }  // the node's number; -1: none
  friend constexpr bool operator==(const Handle&, const Handle&) = default;

 private:
  template <class T>
  friend class Graph;
  constexpr Handle(std::uint64_t graph, int index) : graph_(graph), index_(index) {}
  std::uint64_t graph_ = 0;
  int index_ = -1;
};

// A handle whose shape is in its type: what does not fit does not compile. It is a Handle wherever one is asked for.
template <StaticShape S>
class Var : public Handle {
 public:
  using shape = S;
  constexpr Var() = default;

 private:
  template <class T>
  friend class Graph;
  constexpr explicit Var(Handle handle) : Handle(handle) {}
};

template <class H>
concept AnyHandle = std::derived_from<H, Handle>;
template <class H>
concept TypedHandle = AnyHandle<H> && StaticShape<typename H::shape>;
template <class H>
concept UntypedHandle = std::same_as<H, Handle>;

// ---- what payloads are given ------------------------------------------------------------------------------------
// Arrays are dense and row-major; their shapes are those the node was made with. A payload writes its outputs
// completely and nothing else, and may be called from several threads at once, each with a memory of its own.

template <class T>
using Values = std::span<const std::span<const T>>;

// What a node owns in a workspace.
template <class T>
struct NodeMemory {
  void* state = nullptr;    // what Node::state made; null where the node has none
  std::span<T> scratch{};   // Node::scratch elements of anything; other nodes write there too
  const Execution* exec{};  // how many threads
};

// y = f(x).
template <class T>
struct Forward {
  Values<T> x;
  std::span<T> y;
  bool keep;  // a derivative will be asked for: the state has to hold what it needs
  NodeMemory<T> memory;
  template <class S>
  [[nodiscard]] S& state() const {
    return *static_cast<S*>(memory.state);
  }
};

// dy = J(x) dx. Of a selective node, dx[i] is empty where the tangent is 0.
template <class T>
struct Jvp {
  Values<T> x;  // x and y are empty where Node::reads does not name them
  std::span<const T> y;
  Values<T> dx;
  std::span<T> dy;
  NodeMemory<T> memory;
  template <class S>
  [[nodiscard]] S& state() const {
    return *static_cast<S*>(memory.state);
  }
};

// gx[i] = J_i(x)^T gy. Of a selective node, gx[i] is empty where no gradient is asked for.
template <class T>
struct Vjp {
  Values<T> x;
  std::span<const T> y;
  std::span<const T> gy;
  std::span<const std::span<T>> gx;
  NodeMemory<T> memory;
  template <class S>
  [[nodiscard]] S& state() const {
    return *static_cast<S*>(memory.state);
  }
};

// ---- the node ---------------------------------------------------------------------------------------------------

// What the derivatives read of the values, besides the state. Whatever nobody reads is not kept, and is empty when a
// payload looks at it. `others`: the derivative by one input reads the other inputs, as that of a product does.
enum class Reads : std::uint8_t { nothing, inputs, others, output, everything };
constexpr bool reads_inputs(Reads reads) { return reads == Reads::inputs || reads == Reads::everything; }
constexpr bool reads_output(Reads reads) { return reads == Reads::output || reads == Reads::everything; }

template <class T>
struct Node {
  std::string name{};            // "max_pool"
  std::vector<Handle> inputs{};  // nodes of the same graph
  Dims shape{};                  // of the output
  std::function<void(const Forward<T>&)> forward{};
  std::function<void(const Jvp<T>&)> jvp{};
  std::function<void(const Vjp<T>&)> vjp{};

  // All of these may be left alone.
  std::string parameters{};                        // in words, for the printed graph
  Reads reads = Reads::everything;                 // saying less saves memory
  std::function<std::shared_ptr<void>()> state{};  // makes what the node keeps in each workspace for its derivatives
  std::size_t state_bytes = 0;                     // how much that is
  std::size_t scratch = 0;                         // elements that each payload may use while it runs
  bool selective = false;  // copes with empty tangents and gradients; otherwise they are zeros, and memory of no use
  bool alias = false;      // the output is input 0 seen as another shape, so nothing need be copied
};

namespace detail {

template <class T>
void copy_into(std::span<const T> from, std::span<T> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

template <class T>
void add_into(std::span<const T> from, std::span<T> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] + from[i];
}

template <class T>
void zero(std::span<T> to) {
  std::fill(to.begin(), to.end(), T(Index{0}));
}

inline std::size_t cells(const Dims& dims) { return static_cast<std::size_t>(volume(dims)); }

// "2x3 and 4x5".
[[gnu::cold]] inline std::string shapes_in_words(std::span<const Dims> shapes) {
  std::string out;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    out += (i == 0 ? "" : i + 1 == shapes.size() ? " and " : ", ") + to_string(shapes[i]);
  return out.empty() ? "none" : out;
}

}  // namespace detail
}  // namespace cenote
