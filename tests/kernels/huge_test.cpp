// Sizes and offsets beyond 2^31 and 2^32. The tensors lie in memory that is reserved but, but for the cells that
// matter, never touched: a page that was only read costs nothing.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "cenote/run.hpp"
#include "support/sanitizers.hpp"

namespace cenote::test {
namespace {

constexpr Index two_31 = Index{1} << 31;
constexpr Index two_32 = Index{1} << 32;

// Zeros without end.
template <class T>
class Sparse {
 public:
  explicit Sparse(Index elements) : bytes_(static_cast<std::size_t>(elements) * sizeof(T)) {
    start_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() {
    if (there()) munmap(start_, bytes_);
  }
  [[nodiscard]] bool there() const { return start_ != MAP_FAILED; }
  [[nodiscard]] T* data() const { return static_cast<T*>(start_); }
  T& operator[](Index i) const { return data()[i]; }

 private:
  std::size_t bytes_;
  void* start_;
};

#define RESERVE_OR_SKIP(memory) \
  if (!(memory).there()) GTEST_SKIP() << "no address space"

class Huge : public testing::Test {
 protected:
  ~Huge() override { limit_target({}); }
};

// Few windows, far apart along one axis of more than 2^32 cells.
TEST_F(Huge, WindowsBeyondFourBillionCells) {
  const Index n = two_32 + 5000;
  const Index stride = (Index{1} << 22) + 3;
  const Sparse<std::uint8_t> memory(n);
  RESERVE_OR_SKIP(memory);
  const Geometry g = resolve({n}, Sliding{.kernel = {5}, .stride = stride, .padding = {{2, 0}}});
  const Index outputs = g.out()[0];
  for (const Index o : {Index{1}, outputs / 2, outputs / 2 + 1, outputs - 1})
    memory[o * stride + o % 5 - 2] = static_cast<std::uint8_t>(10 + o % 200);
  const View<const std::uint8_t> x(memory.data(), {n});
  std::vector<std::uint8_t> expected(static_cast<std::size_t>(outputs));
  spec::forward<std::uint8_t>(Max{}, g, x, View<std::uint8_t>(expected.data(), g.out()));
  const Winners first = spec::winners<std::uint8_t>(Max{}, g, x);
  ASSERT_EQ(expected.back(), 10 + (outputs - 1) % 200);
  for (const std::string& name : targets()) {
    limit_target(name);
    for (const int threads : {1, 3}) {
      std::vector<std::uint8_t> y(expected.size());
      const Winners winners = forward_with_winners<std::uint8_t>(Max{}, g, x, View<std::uint8_t>(y.data(), g.out()),
                                                                 Execution{.threads = threads});
      EXPECT_EQ(y, expected) << name;
      EXPECT_TRUE(std::equal(winners.bytes().begin(), winners.bytes().end(), first.bytes().begin())) << name;
    }
  }
}

// One window per row, rows that are billions of elements apart, columns that run backwards.
TEST_F(Huge, StridesBeyondFourBillionElements) {
  const Index pitch = two_31 + 4096 + 17;
  const Sparse<float> input(3 * pitch);
  const Sparse<float> output(3 * pitch);
  RESERVE_OR_SKIP(input);
  RESERVE_OR_SKIP(output);
  const Geometry g = resolve({3, 40}, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1});
  const View<float> x(input.data() + 39, {3, 40}, {pitch, -1});
  const View<float> y(output.data() + 39, {3, 40}, {pitch, -1});
  Index i = 0;
  for_each_index(x.dims(), [&](const Dims& index) { x[index] = static_cast<float>(i++ * 37 % 23); });
  const auto agrees = [&](const auto& op, const std::string& name) {
    Tensor<float> expected(g.out());
    const auto expect_elements = [&](const char* verb) {
      for_each_index(g.out(), [&](const Dims& index) {
        EXPECT_NEAR(y[index], expected.view()[index], 1e-5F) << op.name << " " << verb << " " << name;
      });
    };
    spec::forward<float>(op, g, x, expected.view());
    forward<float>(op, g, x, y, Execution{.threads = 2});
    expect_elements("forward");
    spec::jvp<float>(op, g, x, x, expected.view());
    jvp<float>(op, g, x, x, y, Execution{.threads = 2});
    expect_elements("jvp");
    spec::vjp<float>(op, g, x, x, expected.view());  // the output has the input's shape
    vjp<float>(op, g, x, x, y, Execution{.threads = 2});
    expect_elements("vjp");
  };
  for (const std::string& name : targets()) {
    limit_target(name);
    agrees(Max{}, name);
    agrees(Average{}, name);
    agrees(SmoothMax{2}, name);
  }
}

// Planes and channels beyond 2^31: identity axes with large strides, and the last plane is the one that counts.
TEST_F(Huge, PlanesBeyondFourBillionElements) {
  const Index plane = two_31 + 3;
  const Sparse<std::int16_t> memory(4 * plane);
  RESERVE_OR_SKIP(memory);
  const Geometry last = resolve({4, 2, 2}, Sliding{.kernel = {2, 2}});
  const Geometry first = resolve({2, 2, 4}, Sliding{.kernel = {2, 2}, .axes = {0, 1}});
  for (Index p = 0; p < 4; ++p) memory[p * plane + 3] = static_cast<std::int16_t>(100 * (p + 1));
  for (const std::string& name : targets()) {
    limit_target(name);
    std::vector<std::int16_t> y(4);
    forward<std::int16_t>(Max{}, last, View<const std::int16_t>(memory.data(), {4, 2, 2}, {plane, 2, 1}),
                          View<std::int16_t>(y.data(), last.out()));
    EXPECT_EQ(y, (std::vector<std::int16_t>{100, 200, 300, 400})) << name;
    forward<std::int16_t>(Average{}, first, View<const std::int16_t>(memory.data(), {2, 2, 4}, {2, 1, plane}),
                          View<std::int16_t>(y.data(), first.out()));
    EXPECT_EQ(y, (std::vector<std::int16_t>{25, 50, 75, 100})) << name;
  }
}

// A dense run over more than 2^31 elements: outputs, winners and the input are all counted in more than 31 bits.
TEST_F(Huge, DenseRowOfMoreThanTwoBillionBytes) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "too slow with a sanitizer";
  const Index n = two_31 + 1000;
  const Sparse<std::uint8_t> memory(n);
  RESERVE_OR_SKIP(memory);
  const Index cell = two_31 + 777;
  memory[cell] = 9;
  const View<const std::uint8_t> x(memory.data(), {n});
  // Windows of 3 every 256 cells read every page, and the output stays small.
  const Geometry g = resolve({n}, Sliding{.kernel = {3}, .stride = 256, .padding = {{0, 2}}});
  std::vector<std::uint8_t> y(static_cast<std::size_t>(g.out()[0]));
  forward<std::uint8_t>(Max{}, g, x, View<std::uint8_t>(y.data(), g.out()));
  for (std::size_t o = 0; o < y.size(); ++o) {
    const Index begin = static_cast<Index>(o) * 256;
    ASSERT_EQ(y[o], begin <= cell && cell < begin + 3 ? 9 : 0) << o;
  }
  // One window over everything: the winner's offset needs 32 bits.
  const Geometry whole = resolve({n}, Global{.last = 1});
  std::uint8_t most = 0;
  const Winners winners = forward_with_winners<std::uint8_t>(Max{}, whole, x, View<std::uint8_t>(&most, whole.out()));
  EXPECT_EQ(most, 9);
  EXPECT_EQ(winners.bytes_each(), 4);
  EXPECT_EQ(winners[0], cell);
}

}  // namespace
}  // namespace cenote::test
