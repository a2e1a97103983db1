// Runs of many steps: what the program holds does not grow with them.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/app/cli/program.h"
#include "tests/engine/onnx/model_builder.h"

namespace stepscope::testing {
namespace {

// Trains in a process of its own and returns the most memory it had, in bytes; -1: it failed.
std::int64_t peakOf(std::int64_t steps, const std::filesystem::path& model, const std::filesystem::path& project = {}) {
  const std::string count = std::to_string(steps);
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout)) _exit(127);
    execl(SS_PROGRAM, SS_PROGRAM, "train", model.c_str(), "--loss-fn", "mse", "--steps", count.c_str(),
          project.empty() ? nullptr : "--project", project.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
  return std::int64_t{usage.ru_maxrss} * 1024;
}

TEST(LongRun, TakesNoMoreMemoryForTenTimesTheSteps) {
  const TemporaryFolder folder;
  const auto model = folder.write("m.onnx", smallModel().SerializeAsString());
  const std::int64_t few = peakOf(6'000, model), many = peakOf(60'000, model);
  ASSERT_GT(few, 0);
  ASSERT_GT(many, 0);
  EXPECT_LT(many - few, 2 << 20) << few << " bytes, then " << many;
}

// What is recorded waits in a queue of 8 MiB at most; without an end of it 60,000 steps would be more than 60 MiB.
TEST(LongRun, TakesNoMoreMemoryThanTheQueueWhereItIsRecorded) {
  const TemporaryFolder folder;
  const auto model = folder.write("m.onnx", smallModel().SerializeAsString());
  const std::int64_t few = peakOf(6'000, model, folder.path() / "few.stepscope");
  const std::int64_t many = peakOf(60'000, model, folder.path() / "many.stepscope");
  ASSERT_GT(few, 0);
  ASSERT_GT(many, 0);
  EXPECT_LT(many - few, 16 << 20) << few << " bytes, then " << many;
  const Answer rows = run("sql --json " + (folder.path() / "many.stepscope").string() +
                              " 'SELECT count(*), count(DISTINCT step), (SELECT count(*) FROM lost) FROM steps'",
                          folder.path());
  EXPECT_NE(rows.text.find("[60000,60000,0]"), std::string::npos) << rows.text;
}

}  // namespace
}  // namespace stepscope::testing
