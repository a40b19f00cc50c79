// Cenote against PyTorch 2.13.0: golden.bin holds what PyTorch computed in f64, and every case runs here through
// PyTorch's names, through the definition and through the linearisation. make_golden.py describes the file, byte by
// byte, and what was left out because PyTorch breaks a rule.
//
// What must agree:
//   max       values, winners, JVP and VJP bit for bit, the sign of zero included
//   average   within 4 ulp of the mean of the magnitudes (A7), the derivatives alike; a zero average has PyTorch's sign
//   Lp        within 16 ulp of the sum of the magnitudes of what was added
//   smooth    values within 8 ulp of the larger of |y| and the case's largest |x|, derivatives within
//             8 + 2 |beta| max|x| ulp of the sum of the magnitudes: PyTorch's weights are exp(beta x - logsumexp), and
//             the rounding of that difference is their relative error
// NaN matches every NaN, an infinity only itself.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "cenote/pool.hpp"

#ifndef CENOTE_GOLDEN_FILE
#define CENOTE_GOLDEN_FILE "tests/golden/golden.bin"  // tests run from the root of the tree
#endif

namespace {

using namespace cenote;  // NOLINT(google-build-using-namespace)

enum class Operator : std::uint8_t { max, average, adaptive_max, adaptive_average, lp, smooth_max };
constexpr std::array operator_names = {"max", "average", "adaptive max", "adaptive average", "Lp", "smooth max"};

struct Case {
  std::size_t number = 0;
  Operator op{};
  int rank = 0;  // pooled axes
  std::uint32_t tags = 0;
  Dims in, out;
  Dims output;  // adaptive
  Dims kernel, stride, low, high, dilation;
  bool ceil = false;
  bool count_include_pad = true;
  Index divisor = 0;
  double p = 0, beta = 0;
  bool ignore = false;
  Tensor<double> x, dx, gy, y, dy, gx;
  std::vector<std::int64_t> winners;

  [[nodiscard]] bool adaptive() const { return op == Operator::adaptive_max || op == Operator::adaptive_average; }
  [[nodiscard]] bool selects() const { return op == Operator::max || op == Operator::adaptive_max; }
};

// ---- reading ------------------------------------------------------------------------------------------------------

// One pass over the bytes. Reading beyond the end, or a byte that means nothing, throws with the place.
class Reader {
 public:
  explicit Reader(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

  std::vector<Case> cases() {
    expect("CENOTEG1");
    const auto count = number<std::uint32_t>();
    if (count > bytes_.size()) fail("more cases than bytes");
    std::vector<Case> all(count);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].number = i;
      read_case(all[i]);
    }
    expect("END!");
    if (at_ != bytes_.size()) fail("bytes after the end");
    return all;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("golden.bin, byte " + std::to_string(at_) + " of " + std::to_string(bytes_.size()) + ": " +
                             what);
  }

  template <class U>
  U number() {
    static_assert(std::endian::native == std::endian::little);
    if (bytes_.size() - at_ < sizeof(U)) fail("the file ends too early");
    U value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(U));
    at_ += sizeof(U);
    return value;
  }
  void expect(const std::string& text) {
    for (const char letter : text)
      if (number<char>() != letter) fail("not the mark '" + text + "'");
  }
  Index byte(Index most = 255) {
    const Index value = number<std::uint8_t>();
    if (value > most) fail("byte " + std::to_string(value) + " where at most " + std::to_string(most) + " is legal");
    return value;
  }
  Dims list(int count) {
    Dims dims;
    for (int i = 0; i < count; ++i) dims.push_back(byte());
    return dims;
  }

  template <class Code>
  double decoded() {
    const Code code = number<Code>();
    constexpr Code largest = std::numeric_limits<Code>::max();
    if (code == largest) return std::numeric_limits<double>::quiet_NaN();
    if (code == largest - 1) return std::numeric_limits<double>::infinity();
    if (code == largest - 2) return -std::numeric_limits<double>::infinity();
    if (code == largest - 3) return -0.0;
    return code / 8.0;
  }
  Tensor<double> array(const Dims& dims) {
    Tensor<double> out(dims);
    const Index kind = byte(3);
    for (double& element : out.data()) {
      switch (kind) {
        case 0: element = decoded<std::int8_t>(); break;
        case 1: element = decoded<std::int16_t>(); break;
        case 2: element = static_cast<double>(number<float>()); break;
        default: element = number<double>(); break;
      }
    }
    return out;
  }

  void read_case(Case& c) {
    c.op = static_cast<Operator>(byte(operator_names.size() - 1));
    c.rank = static_cast<int>(byte(3));
    const int axes = c.rank + 1 + static_cast<int>(byte(1));
    c.tags = number<std::uint32_t>();
    c.in = list(axes);
    c.out = list(axes);
    if (c.rank == 0 || volume(c.in) == 0 || volume(c.out) == 0) fail("a case without elements");
    if (c.adaptive()) {
      c.output = list(c.rank);
      for (int a = 0; a < c.rank; ++a)
        if (c.output[a] == 0) c.output[a] = same_size;
    } else {
      for (Dims* dims : {&c.kernel, &c.stride, &c.low, &c.high, &c.dilation}) *dims = list(c.rank);
      c.ceil = byte(1) != 0;
    }
    if (c.op == Operator::average) {
      c.count_include_pad = byte(1) != 0;
      c.divisor = number<std::int8_t>();
    }
    if (c.op == Operator::lp) c.p = number<double>();
    if (c.op == Operator::smooth_max) {
      c.beta = number<double>();
      c.ignore = byte(1) != 0;
    }
    for (Tensor<double>* input : {&c.x, &c.dx}) *input = array(c.in);
    for (Tensor<double>* output : {&c.gy, &c.y, &c.dy}) *output = array(c.out);
    c.gx = array(c.in);
    if (c.selects())
      for (Index i = 0; i < volume(c.out); ++i) c.winners.push_back(byte());
  }

  std::vector<char> bytes_;
  std::size_t at_ = 0;
};

const std::vector<Case>& golden() {
  static const std::vector<Case> cases = [] {
    std::ifstream file(CENOTE_GOLDEN_FILE, std::ios::binary);
    if (!file) throw std::runtime_error("cannot open " CENOTE_GOLDEN_FILE " (run from the root of the tree)");
    return Reader({std::istreambuf_iterator<char>(file), {}}).cases();
  }();
  return cases;
}

// ---- running ------------------------------------------------------------------------------------------------------

// What one route through the library gave.
struct Answer {
  std::string route;
  Tensor<double> y, dy, gx;
  Tensor<std::int64_t> winners{};
};

// A list of equal numbers is also written as one number, in every other case.
PerAxis spelled(const Case& c, const Dims& list) {
  const bool equal = std::all_of(list.begin(), list.end(), [&](Index entry) { return entry == list[0]; });
  return equal && list[0] != same_size && c.number % 2 == 0 ? PerAxis(list[0]) : PerAxis(list);
}
PerAxis stride_of(const Case& c) { return c.stride[0] == 0 ? PerAxis{} : spelled(c, c.stride); }

// The geometry without PyTorch's names.
Geometry geometry_of(const Case& c) {
  Dims axes;
  for (int a = 0; a < c.rank; ++a) axes.push_back(a - c.rank);
  if (c.adaptive()) {
    Dims output = c.output;
    for (int a = 0; a < c.rank; ++a)
      if (output[a] == same_size) output[a] = c.in[c.in.rank - c.rank + a];
    return resolve(c.in, Adaptive{.output = output, .axes = axes});
  }
  Pads pads;
  for (int a = 0; a < c.rank; ++a) pads.push_back({c.low[a], c.high[a]});
  return resolve(c.in, Sliding{.kernel = c.kernel,
                               .stride = stride_of(c),
                               .padding = pads,
                               .dilation = c.dilation,
                               .rounding = c.ceil ? Rounding::ceil : Rounding::floor,
                               .axes = axes});
}

template <class Op>
Answer by_definition(const Case& c, const Op& op, const Geometry& g) {
  Answer got{"spec", Tensor<double>(g.out()), Tensor<double>(g.out()), Tensor<double>(g.in())};
  spec::forward<double>(op, g, c.x.view(), got.y.view());
  spec::jvp<double>(op, g, c.x.view(), c.dx.view(), got.dy.view());
  if constexpr (Op::linear)  // from the shape alone (A6)
    spec::vjp<double>(op, g, c.gy.view(), got.gx.view());
  else
    spec::vjp<double>(op, g, c.x.view(), c.gy.view(), got.gx.view());
  if constexpr (Op::selects) got.winners = spec::flat_indices(g, spec::winners<double>(op, g, c.x.view()));
  return got;
}

template <class Op>
Answer by_linearization(const Case& c, const Op& op, const Geometry& g) {
  Answer got{"linearize", Tensor<double>(g.out()), Tensor<double>(g.out()), Tensor<double>(g.in())};
  const auto linear = spec::linearize<double>(op, g, c.x.view(), got.y.view());
  linear.push(c.dx.view(), got.dy.view());
  linear.pull(c.gy.view(), got.gx.view());
  if constexpr (Op::selects) got.winners = spec::flat_indices(g, linear.winners());
  return got;
}

#define BY_RANK(name, verb, ...) \
  (c.rank == 1 ? name##1d##verb(__VA_ARGS__) : c.rank == 2 ? name##2d##verb(__VA_ARGS__) : name##3d##verb(__VA_ARGS__))
#define ALL_VERBS(name, ...)                                                      \
  BY_RANK(name, , c.x, __VA_ARGS__), BY_RANK(name, _jvp, c.x, c.dx, __VA_ARGS__), \
      BY_RANK(name, _vjp, c.x, c.gy, __VA_ARGS__)

Answer by_torch_name(const Case& c) {
  const PerAxis kernel = spelled(c, c.kernel);
  const PerAxis output = spelled(c, c.output);
  switch (c.op) {
    case Operator::max: {
      const MaxPoolOptions options{stride_of(c), spelled(c, c.low), spelled(c, c.dilation), c.ceil};
      return {"max_pool", ALL_VERBS(max_pool, kernel, options)};
    }
    case Operator::average: {
      AvgPoolOptions options{stride_of(c), spelled(c, c.low), c.ceil, c.count_include_pad};
      if (c.divisor != 0) options.divisor_override = c.divisor;
      return {"avg_pool", ALL_VERBS(avg_pool, kernel, options)};
    }
    case Operator::lp: {
      const LpPoolOptions options{stride_of(c), c.ceil};
      return {"lp_pool", ALL_VERBS(lp_pool, c.p, kernel, options)};
    }
    case Operator::adaptive_max: return {"adaptive_max_pool", ALL_VERBS(adaptive_max_pool, output)};
    case Operator::adaptive_average: return {"adaptive_avg_pool", ALL_VERBS(adaptive_avg_pool, output)};
    case Operator::smooth_max: break;
  }
  throw std::runtime_error("PyTorch has no name for this operator");
}

// The values and winners of the function that returns both; the derivatives are those of by_torch_name.
Answer with_indices(const Case& c) {
  Answer got = by_torch_name(c);
  got.route += "_with_indices";
  const MaxPoolOptions options{stride_of(c), spelled(c, c.low), spelled(c, c.dilation), c.ceil};
  auto both = c.adaptive() ? BY_RANK(adaptive_max_pool, _with_indices, c.x, spelled(c, c.output))
                           : BY_RANK(max_pool, _with_indices, c.x, spelled(c, c.kernel), options);
  got.y = std::move(both.values);
  got.winners = std::move(both.indices);
  return got;
}

// ---- comparing ----------------------------------------------------------------------------------------------------

double ulp(double magnitude) { return std::nextafter(magnitude, std::numeric_limits<double>::infinity()) - magnitude; }

std::string shown(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

// Equal, the sign of zero included; NaN is NaN.
struct Bitwise {
  bool operator()(double got, double want, std::size_t) const {
    return std::isnan(want) ? std::isnan(got) : std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(want);
  }
};

// Within `ulps` of the magnitude that belongs to the element. What is not finite must be the same.
struct Within {
  double ulps;
  Tensor<double> magnitudes;
  bool signed_zeros = false;

  bool operator()(double got, double want, std::size_t i) const {
    if (!std::isfinite(want)) return Bitwise{}(got, want, i);
    if (signed_zeros && want == 0 && got == 0) return std::signbit(got) == std::signbit(want);
    return std::abs(got - want) <= ulps * ulp(magnitudes.data()[i]);
  }
};

std::string mismatch(const Case& c, const Geometry& g, const std::string& what) {
  return "case " + std::to_string(c.number) + " (" + operator_names[static_cast<std::size_t>(c.op)] + ", " +
         describe(g) + "): " + what;
}

template <class Same>
void compare(const Case& c, const Geometry& g, const std::string& what, const Tensor<double>& got,
             const Tensor<double>& want, const Same& same) {
  ASSERT_EQ(to_string(got.dims()), to_string(want.dims())) << mismatch(c, g, what);
  for (std::size_t i = 0; i < want.data().size(); ++i)
    ASSERT_TRUE(same(got.data()[i], want.data()[i], i))
        << mismatch(c, g, what) << "[" << i << "] is " << shown(got.data()[i]) << ", PyTorch has "
        << shown(want.data()[i]);
}

template <class SameY, class SameDy, class SameGx>
void compare(const Case& c, const Geometry& g, const Answer& got, const SameY& y, const SameDy& dy, const SameGx& gx) {
  compare(c, g, got.route + " y", got.y, c.y, y);
  compare(c, g, got.route + " dy", got.dy, c.dy, dy);
  compare(c, g, got.route + " gx", got.gx, c.gx, gx);
}

Tensor<double> absolute(Tensor<double> x) {
  for (double& element : x.data()) element = std::abs(element);
  return x;
}

// The three verbs on magnitudes: what an operator with weights of one sign adds up, before anything cancels. Only the
// scale of an allowed error, so it may come from the code that is being checked.
template <class Op>
Answer magnitudes(const Case& c, const Op& op, const Geometry& g) {
  Case positive = c;
  if (c.op != Operator::smooth_max) positive.x = absolute(c.x);
  positive.dx = absolute(c.dx);
  positive.gy = absolute(c.gy);
  return by_definition(positive, op, g);
}

// Calls check(case, geometry) for every case of an operator; ten failures are enough to see what is wrong.
template <class F>
void for_each_case(Operator op, F&& check) {
  int seen = 0;
  const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (const Case& c : golden()) {
    if (c.op != op) continue;
    ++seen;
    try {
      const Geometry g = geometry_of(c);
      ASSERT_EQ(to_string(g.out()), to_string(c.out)) << mismatch(c, g, "the shape of the result");
      check(c, g);
    } catch (const Error& error) {
      ADD_FAILURE() << "case " << c.number << " was refused: " << error.what();
    }
    if (result.total_part_count() >= 10) FAIL() << "there may be more";
  }
  ASSERT_GT(seen, 0);
  std::printf("%5d cases of %s\n", seen, operator_names[static_cast<std::size_t>(op)]);
}

void check_max(const Case& c, const Geometry& g) {
  for (const Answer& got : {with_indices(c), by_definition(c, Max{}, g), by_linearization(c, Max{}, g)}) {
    compare(c, g, got, Bitwise{}, Bitwise{}, Bitwise{});
    ASSERT_EQ(std::vector<std::int64_t>(got.winners.data().begin(), got.winners.data().end()), c.winners)
        << mismatch(c, g, got.route + " winners");
  }
  compare(c, g, "max_pool y", by_torch_name(c).y, c.y, Bitwise{});
}

void check_average(const Case& c, const Geometry& g) {
  const auto op = [&](Index divisor) {
    if (divisor != 0) return Average{.divisor = divisor};
    return Average{.divisor = c.count_include_pad ? Divisor::padded : Divisor::real};
  };
  const Answer size = magnitudes(c, op(std::abs(c.divisor)), g);
  const bool signs = c.divisor >= 0;  // with a negative divisor PyTorch gives +0, where 0 / -n is -0
  for (const Answer& got :
       {by_torch_name(c), by_definition(c, op(c.divisor), g), by_linearization(c, op(c.divisor), g)})
    compare(c, g, got, Within{4, size.y, signs}, Within{4, size.dy, signs}, Within{4, size.gx, signs});
}

void check_lp(const Case& c, const Geometry& g) {
  const Lp op{.p = c.p};
  const Answer size = magnitudes(c, op, g);
  for (const Answer& got : {by_torch_name(c), by_definition(c, op, g), by_linearization(c, op, g)})
    compare(c, g, got, Within{16, size.y}, Within{16, size.dy}, Within{16, size.gx});
}

void check_smooth_max(const Case& c, const Geometry& g) {
  const SmoothMax op{.beta = c.beta, .padding = c.ignore ? Padding::ignore : Padding::zeros};
  double largest = 0;
  for (const double value : c.x.data())
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  Answer size = magnitudes(c, op, g);
  for (std::size_t i = 0; i < c.y.data().size(); ++i) size.y.data()[i] = std::max(std::abs(c.y.data()[i]), largest);
  const double ulps = 8 + 2 * std::abs(c.beta) * largest;
  Sliding windows{.kernel = c.kernel,  // as many entries as pooled axes: the last ones
                  .stride = stride_of(c),
                  .dilation = spelled(c, c.dilation),
                  .rounding = c.ceil ? Rounding::ceil : Rounding::floor};
  windows.padding = {};
  for (int a = 0; a < c.rank; ++a) windows.padding.push_back({c.low[a], c.high[a]});
  const Answer named{"smooth_max_pool", smooth_max_pool(c.x, windows, op), smooth_max_pool_jvp(c.x, c.dx, windows, op),
                     smooth_max_pool_vjp(c.x, c.gy, windows, op)};
  for (const Answer& got : {named, by_definition(c, op, g), by_linearization(c, op, g)})
    compare(c, g, got, Within{8, size.y}, Within{ulps, size.dy}, Within{ulps, size.gx});
}

// ---- the tests ----------------------------------------------------------------------------------------------------

TEST(Golden, MaxValuesWinnersAndDerivativesMatchPyTorch) { for_each_case(Operator::max, check_max); }

TEST(Golden, AdaptiveMaxValuesWinnersAndDerivativesMatchPyTorch) { for_each_case(Operator::adaptive_max, check_max); }

TEST(Golden, AverageValuesAndDerivativesMatchPyTorch) { for_each_case(Operator::average, check_average); }

TEST(Golden, AdaptiveAverageValuesAndDerivativesMatchPyTorch) {
  for_each_case(Operator::adaptive_average, check_average);
}

TEST(Golden, LpValuesAndDerivativesMatchPyTorch) { for_each_case(Operator::lp, check_lp); }

TEST(Golden, SmoothMaxValuesAndDerivativesMatchLogSumExpOfPyTorch) {
  for_each_case(Operator::smooth_max, check_smooth_max);
}

// An empty or thinned-out file would pass all of the above.
TEST(Golden, FileHoldsEveryOperatorOptionAndSpecialValueOftenEnough) {
  struct Tag {
    const char* name;
    int least;
  };
  constexpr std::array<Tag, 32> tags = {{
      {"batched", 1500},
      {"unbatched", 1500},
      {"stride default", 500},
      {"stride given", 1000},
      {"no padding", 1000},
      {"padding", 1000},
      {"padding at the bound", 500},
      {"unequal padding", 60},
      {"dilation", 300},
      {"floor", 1000},
      {"ceil", 1000},
      {"overhang", 400},
      {"pad counted", 300},
      {"pad not counted", 300},
      {"divisor none", 400},
      {"divisor positive", 80},
      {"divisor negative", 60},
      {"adaptive divides", 150},
      {"adaptive does not divide", 400},
      {"adaptive larger than input", 200},
      {"adaptive None", 50},
      {"kernel larger than input", 300},
      {"axis of size 1", 300},
      {"NaN", 500},
      {"+inf", 400},
      {"-inf", 500},
      {"tie", 500},
      {"signed zeros", 1000},
      {"gradient not finite", 80},
      {"zeros", 150},
      {"ignore", 150},
      {"negative beta", 100},
  }};
  std::array<int, tags.size()> tagged{};
  std::array<std::array<int, 4>, operator_names.size()> counts{};
  for (const Case& c : golden()) {
    ++counts[static_cast<std::size_t>(c.op)][static_cast<std::size_t>(c.rank)];
    for (std::size_t i = 0; i < tags.size(); ++i) tagged[i] += static_cast<int>(c.tags >> i & 1U);
  }
  EXPECT_GE(golden().size(), 3000U);
  for (std::size_t op = 0; op < counts.size(); ++op)
    for (std::size_t rank = 1; rank <= 3; ++rank)
      EXPECT_GE(counts[op][rank], 80) << operator_names[op] << " in " << rank << "-D";
  for (std::size_t i = 0; i < tags.size(); ++i) {
    std::printf("%5d cases with %s\n", tagged[i], tags[i].name);
    EXPECT_GE(tagged[i], tags[i].least) << tags[i].name;
  }
}

}  // namespace
