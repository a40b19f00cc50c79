// Kernels give the same bits on every number of threads, and from several callers at once. Small enough for the thread
// sanitizer, large enough that the work is divided. That the bits are the right ones is for tests/kernels/ to say:
// under the sanitizer the definition would take minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "cenote/run.hpp"
#include "kernels/agree.hpp"

namespace cenote::agree {
namespace {

std::vector<Geometry> geometries() {
  return {
      resolve({60'000}, Sliding{.kernel = {3}, .stride = 2}),
      resolve({10, 64, 64}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1}),
      resolve({1, 200, 200}, Sliding{.kernel = {2, 2}, .stride = 1}),  // windows overlap where the work is divided
      resolve({44, 48, 17}, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1, .axes = {0, 1}}),
      resolve({6, 8, 700}, Sliding{.kernel = {2, 3}, .stride = 1, .axes = {0, 1}}),  // more lanes than a task has
      resolve({36'000}, Global{.last = 1}),
      resolve({50, 700}, Global{.last = 1, .keep = false}),
      resolve({11, 91, 37}, Adaptive{.output = {13, 40}}),
  };
}

TEST(KernelThreads, EveryNumberOfThreadsGivesTheSameBits) {
  std::uint64_t seed = 0;
  for (const Geometry& g : geometries())
    for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8})
      for (const Operator& op : std::vector<Operator>{Max{}, Average{}, SmoothMax{1}}) {
        if (!accepts(type, op) || HasFailure() || !is_due()) continue;
        Case c{.type = type, .op = op, .geometry = g, .x = Values::ties, .seed = ++seed};
        c.threads = {1, 2, 3, 7};
        c.targets = {targets().front()};
        c.verbs = seed % 2 == 0 ? forward_verb | linearize_verb : forward_with_winners_verb | jvp_verb | vjp_verb;
        c.defined = false;
        const std::string problem = disagreement(c);
        EXPECT_TRUE(problem.empty()) << problem;
      }
}

// The channels are innermost in one of input and output and outermost in the other, and no whole number of vectors.
TEST(KernelThreads, EveryNumberOfThreadsGivesTheSameBitsBetweenLayouts) {
  const Geometry g = resolve({37, 34, 30}, Sliding{.kernel = {3, 3}, .stride = 1, .padding = 1});
  const Layout channels_last{.order = {1, 2, 0}};
  std::uint64_t seed = 100;
  for (const bool to : {false, true})
    for (const Type type : {Type::f32, Type::f64, Type::f16, Type::u8})
      for (const Operator& op : std::vector<Operator>{Max{}, Average{}, SmoothMax{1}, Lp{3}}) {
        if (!accepts(type, op) || HasFailure() || !is_due()) continue;
        Case c{.type = type, .op = op, .geometry = g, .x = Values::ties, .seed = ++seed};
        (to ? c.y_layout : c.x_layout) = channels_last;
        (to ? c.dy_layout : c.dx_layout) = channels_last;
        (to ? c.gx_layout : c.gy_layout) = channels_last;
        c.threads = {};
        c.strided_threads = {1, 2, 7};
        c.targets = {targets().front()};
        c.verbs = forward_with_winners_verb | jvp_verb | vjp_verb;
        c.defined = false;
        const std::string problem = disagreement(c);
        EXPECT_TRUE(problem.empty()) << problem;
      }
}

// Runs tasks one by one and counts the cells of `results` that more than one of them writes, be it the same value: on
// threads that would be a race.
class Shared : public Executor {
 public:
  explicit Shared(std::span<float> results) : results_(results) {}
  void run(Index tasks, Task task, void* context) override {
    std::vector<bool> written(results_.size());
    for (Index i = 0; i < tasks; ++i) {
      const std::vector<float> before(results_.begin(), results_.end());
      std::ranges::fill(results_, untouched);
      task(context, i);
      for (std::size_t c = 0; c < before.size(); ++c) {
        if (results_[c] == untouched) {
          results_[c] = before[c];
        } else {
          cells_ += written[c] ? 1 : 0;
          written[c] = true;
        }
      }
    }
    tasks_ = std::max(tasks_, tasks);
  }
  [[nodiscard]] int cells() const { return cells_; }
  [[nodiscard]] Index tasks() const { return tasks_; }

 private:
  static constexpr float untouched = -123456.789F;
  std::span<float> results_;
  int cells_ = 0;
  Index tasks_ = 0;
};

TEST(KernelThreads, NoTwoTasksWriteTheSameCell) {
  std::vector<Geometry> all = geometries();
  all.push_back(resolve({1021, 14, 14}, Global{.last = 2}));
  all.push_back(resolve({5, 8, 9, 67}, Global{.axes = {1, 2}}));
  all.push_back(resolve({3, 40'000}, Sliding{.kernel = {400}, .stride = 160}));
  int divided = 0;
  for (const Geometry& g : all) {
    Tensor<float> x(g.in());
    Random random{7};
    for (float& cell : x.data()) cell = static_cast<float>(random.below(1000)) / 7;
    const auto look = [&](const auto& op) {
      Tensor<float> y(g.out()), alone(g.out()), gx(g.in());
      Shared forwards(y.data());
      forward<float>(op, g, x.view(), y.view(), {.executor = &forwards});
      EXPECT_EQ(forwards.cells(), 0) << describe(g);
      forward<float>(op, g, x.view(), alone.view(), {.threads = 1});
      EXPECT_EQ(y, alone) << describe(g);
      Shared backwards(gx.data());
      vjp<float>(op, g, x.view(), y.view(), gx.view(), {.executor = &backwards});
      EXPECT_EQ(backwards.cells(), 0) << describe(g);
      divided += forwards.tasks() > 1 ? 1 : 0;
      divided += backwards.tasks() > 1 ? 1 : 0;
    };
    look(Max{});
    look(Average{});
    look(SmoothMax{1});
  }
  EXPECT_GE(divided, 20) << "there is little to see in one task";
}

template <class Op>
struct Results {
  Tensor<float> y, dy, gx;
  friend bool operator==(const Results&, const Results&) = default;
};

template <class Op>
Results<Op> all_verbs(const Op& op, const Geometry& g, const Tensor<float>& x, const Tensor<float>& gy, int threads) {
  Results<Op> out{Tensor<float>(g.out()), Tensor<float>(g.out()), Tensor<float>(g.in())};
  const Execution exec{.threads = threads};
  forward_and_jvp<float>(op, g, x.view(), x.view(), out.y.view(), out.dy.view(), exec);
  vjp<float>(op, g, x.view(), gy.view(), out.gx.view(), exec);
  return out;
}

TEST(KernelThreads, TwoCallersAtOnceGetWhatOneWouldGet) {
  const Geometry g = resolve({10, 64, 64}, Sliding{.kernel = {3, 3}, .stride = 2, .padding = 1});
  Tensor<float> x(g.in());
  Tensor<float> gy(g.out());
  Random random{5};
  for (float& cell : x.data()) cell = static_cast<float>(random.below(1000)) / 7;
  for (float& cell : gy.data()) cell = static_cast<float>(random.below(1000)) / 7;
  const auto alone_max = all_verbs(Max{}, g, x, gy, 1);
  const auto alone_average = all_verbs(Average{}, g, x, gy, 1);
  const auto alone_smooth = all_verbs(SmoothMax{1}, g, x, gy, 1);
  const auto caller = [&](int threads, int& wrong) {
    for (int round = 0; round < 5; ++round) {
      if (!(all_verbs(Max{}, g, x, gy, threads) == alone_max)) ++wrong;
      if (!(all_verbs(Average{}, g, x, gy, threads) == alone_average)) ++wrong;
      if (!(all_verbs(SmoothMax{1}, g, x, gy, threads) == alone_smooth)) ++wrong;
    }
  };
  for (const int threads : {1, 2, 3, 7}) {
    std::array<int, 2> wrong{};
    std::thread other([&] { caller(threads, wrong[0]); });
    caller(8 - threads, wrong[1]);
    other.join();
    EXPECT_EQ(wrong, (std::array<int, 2>{})) << threads;
  }
}

}  // namespace
}  // namespace cenote::agree
