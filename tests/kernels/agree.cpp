#include "kernels/agree.hpp"

#include <cstdlib>

#include "kernels/engine.hpp"

namespace cenote::agree {

namespace {

const Case* current = nullptr;

std::string name_of(Type type) {
#define CENOTE_NAME(name, type) #name,
  static constexpr const char* names[] = {CENOTE_MACHINE_SCALARS(CENOTE_NAME)};
#undef CENOTE_NAME
  return names[static_cast<std::size_t>(type)];
}

std::string name_of(Values values) {
  static constexpr const char* names[] = {"spread", "positive",   "ties",    "zeros",   "one_nan",
                                          "nans",   "infinities", "lowest",  "highest", "subnormal",
                                          "huge",   "rising",     "falling", "bytes",   "mixed"};
  static_assert(std::size(names) == values_count);
  return names[static_cast<std::size_t>(values)];
}

std::string name_of(const Operator& op) {
  return std::visit(
      []<class Op>(const Op& chosen) {
        std::string out = Op::name;
        if constexpr (requires { chosen.ties; }) out += " ties " + std::to_string(static_cast<int>(chosen.ties));
        if constexpr (requires { chosen.divisor; })
          out += " divisor " + std::to_string(static_cast<int>(chosen.divisor.kind)) + ":" +
                 std::to_string(chosen.divisor.number);
        if constexpr (requires { chosen.beta; })
          out += " beta " + std::to_string(chosen.beta) + (chosen.padding == Padding::zeros ? " zeros" : " ignore");
        if constexpr (requires { chosen.p; }) out += " p " + std::to_string(chosen.p);
        return out;
      },
      op);
}

std::string name_of(const char* what, const Layout& layout, int rank) {
  std::string out = std::string(" ") + what + "[";
  if (layout.order.rank == rank && rank > 0) out += "order " + to_string(layout.order) + " ";
  if (layout.reversed != 0) out += "reversed " + std::to_string(layout.reversed) + " ";
  if (layout.repeated != 0) out += "repeated " + std::to_string(layout.repeated) + " ";
  return out + "step " + std::to_string(layout.step) + " gap " + std::to_string(layout.gap) + " offset " +
         std::to_string(layout.offset) + "]";
}

}  // namespace

std::string describe(const Case& c) {
  const int rank = c.geometry.rank();
  std::string out = name_of(c.type) + " " + name_of(c.op) + ", " + cenote::describe(c.geometry) + ", x " +
                    name_of(c.x) + " dx " + name_of(c.dx) + " gy " + name_of(c.gy) + ", seed " +
                    std::to_string(c.seed) + ", verbs " + std::to_string(c.verbs);
  if (!c.strided_threads.empty())
    out += "," + name_of("x", c.x_layout, rank) + name_of("dx", c.dx_layout, rank) +
           name_of("gy", c.gy_layout, c.geometry.out().rank) + name_of("y", c.y_layout, c.geometry.out().rank) +
           name_of("dy", c.dy_layout, c.geometry.out().rank) + name_of("gx", c.gx_layout, rank);
  return out;
}

const Case* current_case() { return current; }

bool is_due() {
  static const unsigned long long every = [] {
    const char* text = std::getenv("CENOTE_EVERY");
    return text == nullptr ? 1 : std::max(1ULL, std::strtoull(text, nullptr, 10));
  }();
  static unsigned long long asked = 0;
  return asked++ % every == 0;
}

std::string disagreement(const Case& c) {
  current = &c;
  std::string problem;
  try {
    switch (c.type) {
#define CENOTE_CASE(name, type) \
  case Type::name: problem = disagreement_of<type>(c); break;
      CENOTE_MACHINE_SCALARS(CENOTE_CASE)
#undef CENOTE_CASE
    }
  } catch (const std::exception& error) {
    problem = std::string("unexpected exception: ") + error.what();
  }
  limit_target({});
  current = nullptr;
  return problem.empty() ? problem : problem + "\n  in " + describe(c);
}

}  // namespace cenote::agree
