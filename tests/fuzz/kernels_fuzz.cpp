// Fuzzes the compiled library against the definition: the input's bytes choose scalar, operator, geometry, values,
// layouts, verb, threads and target, and any disagreement ends the process with its description.
// `make fuzz` runs it; replay.cpp makes a test of its corpus.
#include <cstdio>
#include <cstdlib>

#include "kernels/cases.hpp"

namespace {

// One choice per byte, two where a byte is not enough; zeros when the bytes have run out.
struct Bytes {
  const std::uint8_t* data;
  std::size_t left;
  std::uint64_t byte() {
    if (left == 0) return 0;
    --left;
    return *data++;
  }
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t number = byte();
    for (std::uint64_t reach = 256; reach < n; reach *= 256) number = number * 256 + byte();
    return number % n;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cenote::agree;
  static const std::vector<std::string> names = cenote::targets();
  Bytes bytes{data, size};
  CaseMaker maker(bytes, {.work = 600, .max_axes = 4});
  const std::string& target = names[bytes.below(names.size())];
  const unsigned verb = 1U << bytes.below(7);
  const bool strided = bytes.below(2) == 1;
  const std::uint64_t number = bytes.below(16);  // waking threads costs more than the rest
  auto made = maker.make();
  if (!made) return 0;
  Case& c = *made;
  c.verbs = is_integer(c.type) && verb > forward_with_winners_verb ? forward_verb : verb;
  c.targets = {target};
  (strided ? c.strided_threads : c.threads) = {number < 3 ? 1 + static_cast<int>(number) : 1};
  if (strided) c.threads.clear();
  const std::string problem = disagreement(c);
  if (problem.empty()) return 0;
  std::fprintf(stderr, "%s\n", problem.c_str());
  std::abort();
}
