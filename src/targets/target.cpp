// target(), targets() and limit_target(). Highway reads this file once more for every target but the baseline.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "targets/target.cpp"
#include "kernels/highway.hpp"

HWY_BEFORE_NAMESPACE();
namespace cenote::HWY_NAMESPACE {

std::int64_t compiled_target() { return HWY_TARGET; }

}  // namespace cenote::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cenote/error.hpp"
#include "cenote/execution.hpp"

namespace cenote {

HWY_EXPORT(compiled_target);

namespace {

// In Highway's masks a lower bit is a better target.
using Mask = std::int64_t;

constinit hwy::ChosenTarget chosen;

// The targets that are compiled in and that the machine has. The baseline has no kernels: a machine that has nothing
// better runs the definition, whose averages may differ from the kernels' in the last bit.
Mask available() {
  static constinit std::atomic<Mask> known{0};
  Mask mask = known.load(std::memory_order_relaxed);
  if (mask == 0) {
    constexpr Mask baseline = HWY_SCALAR | HWY_EMU128;
    mask = hwy::SupportedTargets() & HWY_TARGETS;
    if ((mask & ~baseline) != 0) mask &= ~baseline;
    // The question has reset the process-wide choice; undone, the next one to need it chooses as before.
    hwy::GetChosenTarget().DeInit();
    known.store(mask, std::memory_order_relaxed);
  }
  return mask;
}

std::string name_of(Mask one) {
  std::string name = hwy::TargetName(one);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name;
}

// Calls visit(target) for each of `mask`, best first.
template <class Visit>
void for_each_target(Mask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(mask & -mask);
}

// `name` and what is worse; everything for an empty name; 0 for a name that is not available.
Mask at_most(std::string_view name) {
  const Mask all = available();
  if (name.empty()) return all;
  Mask found = 0;
  for_each_target(all, [&](Mask one) {
    if (name == name_of(one)) found = all & -one;
  });
  return found;
}

[[gnu::cold]] void choose() {
  const char* wish = std::getenv("CENOTE_TARGET");
  const Mask mask = wish != nullptr ? at_most(wish) : 0;
  chosen.Update(mask != 0 ? mask : available());
}

}  // namespace

std::size_t target_index() {
  if (!chosen.IsInitialized()) choose();
  return chosen.GetIndex();
}

std::string target() { return name_of(CENOTE_DISPATCH(compiled_target)()); }

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for_each_target(available(), [&](Mask one) { names.push_back(name_of(one)); });
  return names;
}

void limit_target(std::string_view name) {
  const Mask mask = at_most(name);
  if (mask == 0) {
    std::string legal;
    for (const std::string& one : targets()) legal += (legal.empty() ? "here " : ", ") + one;
    raise({.rule = Rule::target_available, .argument = "name", .text = name}, "limit_target", legal);
  }
  chosen.Update(mask);
}

}  // namespace cenote
#endif
