// The instruction set: what the machine has is listed, a limit holds for kernels until it is lifted, and an application
// that uses Highway itself keeps its own choice.
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "cenote/error.hpp"
#include "cenote/execution.hpp"

namespace cenote::test {
namespace {

class Target : public testing::Test {
 protected:
  ~Target() override { limit_target(""); }
};

TEST_F(Target, IsTheBestOfTheListByDefault) {
  ASSERT_FALSE(targets().empty());
  if (std::getenv("CENOTE_TARGET") != nullptr) GTEST_SKIP() << "CENOTE_TARGET is set";
  EXPECT_EQ(target(), targets().front());
}

TEST_F(Target, NamesAreDistinctAndLowerCase) {
  std::vector<std::string> names = targets();
  for (const std::string& name : names)
    EXPECT_TRUE(std::none_of(name.begin(), name.end(), [](char c) { return 'A' <= c && c <= 'Z'; })) << name;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST_F(Target, LimitsHoldForKernelsAndAreLifted) {
  const std::vector<std::string> all = targets();
  for (const std::string& name : all) {
    limit_target(name);
    EXPECT_EQ(target(), name);
    EXPECT_EQ(targets(), all) << "a limit does not change what the machine has";
  }
  limit_target(all.back());
  limit_target("");
  EXPECT_EQ(target(), all.front());
}

// Not a fixture: the documentation's check looks for TEST.
TEST(TargetName, E2_AnUnknownNameIsRefusedWithTheLegalOnes) {
  std::string legal;
  for (const std::string& name : targets()) legal += (legal.empty() ? "" : ", ") + name;
  limit_target(targets().back());
  try {
    limit_target("AVX2");
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.what(),
              "limit_target: name is `AVX2`; it must be one of targets(), or empty for no limit (here " + legal + ")");
    EXPECT_EQ(error.rule, Rule::target_available);
    EXPECT_EQ(error.argument, "name");
  }
  EXPECT_EQ(target(), targets().back()) << "a refused limit changes nothing";
  limit_target("");
}

// What a process of its own says of target(), as its place in targets().
int target_of_new_process(const char* environment) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("CENOTE_TARGET", environment, 1);
    setenv("CENOTE_TEST_TELL", "1", 1);
    execl("/proc/self/exe", "target_test", nullptr);
    _exit(255);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Such a process ends here, before it comes to any test.
const bool told = [] {
  if (std::getenv("CENOTE_TEST_TELL") == nullptr) return false;
  const std::vector<std::string> all = targets();
  _exit(static_cast<int>(std::find(all.begin(), all.end(), target()) - all.begin()));
}();

TEST(TargetName, ComesFromTheEnvironmentIfThatIsOnTheList) {
  ASSERT_FALSE(told);
  int place = 0;
  for (const std::string& name : targets()) EXPECT_EQ(target_of_new_process(name.c_str()), place++) << name;
  EXPECT_EQ(target_of_new_process("pentium"), 0);
  EXPECT_EQ(target_of_new_process(""), 0);
}

TEST_F(Target, IsNotTheChoiceOfAnApplicationThatUsesHighwayItself) {
  const std::string best = targets().front();
  hwy::ChosenTarget& of_application = hwy::GetChosenTarget();
  hwy::DisableTargets(hwy::SupportedTargets() & -hwy::SupportedTargets());
  of_application.Update(hwy::SupportedTargets());
  const std::size_t index = of_application.GetIndex();
  EXPECT_EQ(target(), best);
  for (const std::string& name : targets()) {
    limit_target(name);
    EXPECT_EQ(target(), name);
    EXPECT_EQ(of_application.GetIndex(), index);
    of_application.DeInit();
    EXPECT_EQ(target(), name);
    of_application.Update(hwy::SupportedTargets());
  }
  hwy::DisableTargets(0);
}

}  // namespace
}  // namespace cenote::test
