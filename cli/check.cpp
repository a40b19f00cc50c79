// `cenote check`: the comparison that the tests make, on the machine at hand and for as long as its owner wants.
#include <chrono>
#include <cstdio>
#include <random>

#include "arguments.hpp"
#include "kernels/cases.hpp"

namespace cenote::cli {

int check(const CheckArguments& a) {
  if (!(a.seconds > 0)) throw UsageError("--seconds is " + detail::to_text(a.seconds) + "; more than 0 is legal");
  const std::uint64_t seed = a.seed != 0 ? a.seed : (std::uint64_t{std::random_device{}()} << 16) + 1;
  agree::Random random{seed};
  agree::CaseMaker maker(random, {});
  const auto names = targets();
  const int cores = num_threads();
  std::string sets;
  for (const std::string& name : names) sets += (sets.empty() ? "" : ", ") + name;
  if (!a.quiet)
    std::printf("kernels for %s against the definition, on 1 to %d threads, for %g s (seed %llu)\n", sets.c_str(),
                std::max(cores, 3), a.seconds, static_cast<unsigned long long>(seed));

  constexpr std::size_t scalars = agree::all_types.size();
  std::array<std::array<long, scalars>, operator_names.size()> counts{};
  long cases = 0;
  long differences = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(a.seconds);
  for (std::size_t turn = 0; std::chrono::steady_clock::now() < end; ++turn) {
    agree::Case c;
    c.type = agree::all_types[turn % scalars];
    c.op = maker.make_operator(c.type);
    const auto geometry = maker.make_geometry();
    if (!geometry) continue;
    c.geometry = *geometry;
    maker.choose_values(c);
    maker.choose_layouts(c);
    c.threads = {1, 2, 3};
    if (cores > 3) c.threads.push_back(cores);
    if (cores > 4) c.threads.push_back(4 + static_cast<int>(random.below(static_cast<std::uint64_t>(cores - 4))));
    c.strided_threads = {1 + static_cast<int>(random.below(static_cast<std::uint64_t>(cores)))};
    if (agree::is_integer(c.type))
      c.verbs = agree::forward_verb | agree::winners_verb | agree::forward_with_winners_verb;
    const std::string problem = agree::disagreement(c);
    ++cases;
    ++counts[c.op.index()][turn % scalars];
    if (problem.empty()) continue;
    ++differences;
    std::printf("DIFFERENT: %s\n", problem.c_str());
  }

  if (!a.quiet) {
    std::printf("\n%-12s", "cases");
    for (const std::string_view name : element_names) std::printf("%7s", std::string(name).c_str());
    for (std::size_t op = 0; op < counts.size(); ++op) {
      std::printf("\n%-12s", std::string(operator_names[op]).c_str());
      for (std::size_t s = 0; s < scalars; ++s) {
        if (agree::accepts(agree::all_types[s], op == 4   ? agree::Operator(SmoothMax{1})
                                                : op == 5 ? agree::Operator(Lp{})
                                                          : agree::Operator(Max{})))
          std::printf("%7ld", counts[op][s]);
        else
          std::printf("%7s", "-");
      }
    }
    std::printf("\n\n%ld cases, each on %zu instruction sets: %ld differences\n", cases, names.size(), differences);
  }
  return differences == 0 ? 0 : 1;
}

}  // namespace cenote::cli
