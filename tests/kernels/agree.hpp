// The kernels against the definition: one case in, one sentence out if they disagree. What "agree" means is the
// contract of docs/semantics.md: max, min and integers bit for bit; the other results within A7, S6 and their like; and
// nothing may depend on threads, memory layout or, for max and average, on the instruction set.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "cenote/execution.hpp"
#include "cenote/ops.hpp"

namespace cenote::agree {

#define CENOTE_NAME(name, type) name,
enum class Type : std::uint8_t { CENOTE_MACHINE_SCALARS(CENOTE_NAME) };
inline constexpr std::array all_types = [] {
  using enum Type;
  return std::array{CENOTE_MACHINE_SCALARS(CENOTE_NAME)};
}();
#undef CENOTE_NAME
constexpr bool is_integer(Type type) { return type >= Type::i8; }

using Operator = std::variant<Max, Min, Average, Sum, SmoothMax, Lp>;
// Integers have max, min, average and sum only.
inline bool accepts(Type type, const Operator& op) { return !is_integer(type) || op.index() < 4; }

// What the elements of a tensor look like.
enum class Values : std::uint8_t {
  spread,      // many different magnitudes of both signs
  positive,    // near 1: a sum grows with every tap, and a narrow one loses them
  ties,        // a handful of small numbers
  zeros,       // +0 and -0, and little else
  one_nan,     // numbers, and one pattern of NaN
  nans,        // numbers, and NaNs with different payloads and signs
  infinities,  // numbers, +inf and -inf
  lowest,      // the smallest value alone: -inf, or the lowest integer
  highest,
  subnormal,
  huge,    // near the ends of the range
  rising,  // every element larger than the one before
  falling,
  bytes,  // whole numbers of 8 bits, and few others
  mixed,  // all of the above
};
inline constexpr int values_count = static_cast<int>(Values::mixed) + 1;

// Where the elements of a tensor lie. Bit a of a mask is axis a.
struct Layout {
  Dims order{};           // the axes, outermost first; none: in their own order
  unsigned reversed = 0;  // axes that run backwards
  unsigned repeated = 0;  // axes with stride 0; of inputs only
  Index step = 1;         // elements from one to the next along the innermost axis
  Index gap = 0;          // unused elements after every run along an axis
  Index offset = 0;       // unused elements before everything
};

// Where memory comes from: the heap, or between inaccessible pages, flush with the one behind or the one before.
enum class Placement : std::uint8_t { heap, ends_at_guard, begins_at_guard };

enum Verbs : unsigned {
  forward_verb = 1,
  winners_verb = 2,
  forward_with_winners_verb = 4,
  jvp_verb = 8,
  forward_and_jvp_verb = 16,
  vjp_verb = 32,
  linearize_verb = 64,
  every_verb = 127,
};

struct Case {
  Type type = Type::f32;
  Operator op{};
  Geometry geometry{};
  Values x = Values::spread, dx = Values::spread, gy = Values::spread;
  std::uint64_t seed = 0;
  Layout x_layout{}, dx_layout{}, gy_layout{}, y_layout{}, dy_layout{}, gx_layout{};
  unsigned verbs = every_verb;
  std::vector<int> threads{1, 2, 3};   // dense, on each of these
  std::vector<int> strided_threads{};  // in the layouts above, on each of these
  std::vector<std::string> targets{};  // none: all of targets()
  Placement placement = Placement::heap;
  bool defined = true;  // compared with the definition; else the calls are compared with each other alone
};

std::string describe(const Case& c);

// What is wrong, or nothing. Every kernel call is compared with the definition or, where the case is the same up to
// threads, layout and target, with the bits of the first call.
std::string disagreement(const Case& c);

// Sweeps ask this before every case, and leave the case out if it says no: where the environment has CENOTE_EVERY=n, it
// says yes to every n-th question. The dev preset compares everything; another compiler or a sanitizer looks at the
// same source again and has a part. A prime n takes all scalars, operators and widths in turn.
bool is_due();

// The case under way, for whoever has to explain a crash.
const Case* current_case();

// A sequence of numbers that depends on its seed alone.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
};

}  // namespace cenote::agree
