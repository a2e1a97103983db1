// The OpenMP library of a computing command has heard how long its threads are to spin, unless the user said it first.
#include <gtest/gtest.h>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

const std::string kOneStep = "train " SS_SAMPLES "/digits/model.onnx --steps 1";

// What the library that computes was told: it prints its settings when it is loaded, the last time in the program that
// stays.
std::string spinCount(const std::string& arguments) {
  const TemporaryFolder folder;
  const Answer answer = run(arguments, folder.path());
  EXPECT_EQ(answer.exitCode, 0) << answer.text;
  const std::string key = "GOMP_SPINCOUNT = '";
  const std::size_t at = answer.text.rfind(key);
  if (at == std::string::npos) return "nothing: " + answer.text;
  const std::size_t begin = at + key.size();
  return answer.text.substr(begin, answer.text.find('\'', begin) - begin);
}

class BriefWaits : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("OMP_DISPLAY_ENV", "VERBOSE", 1);
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
  }
  void TearDown() override {
    for (const char* name : {"OMP_DISPLAY_ENV", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) unsetenv(name);
  }
};

TEST_F(BriefWaits, AreSetByACommandThatComputes) {
  EXPECT_EQ(spinCount(kOneStep), "2000");
  EXPECT_NE(spinCount("options"), "2000") << "computes nothing";
}

TEST_F(BriefWaits, LeaveWhatTheUserChose) {
  setenv("GOMP_SPINCOUNT", "77", 1);
  EXPECT_EQ(spinCount(kOneStep), "77");
  unsetenv("GOMP_SPINCOUNT");
  setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_NE(spinCount(kOneStep), "2000");
}

}  // namespace
}  // namespace stepscope::testing
