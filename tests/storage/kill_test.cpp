// A killed run loses no committed step: a child records and acknowledges what is committed through a pipe, and is killed at
// a random moment.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <random>
#include <thread>

#include "storage/queries.h"
#include "storage/timing.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

[[noreturn]] void recordForEver(const std::filesystem::path& path, int pipe) {
  RecorderSettings settings;
  settings.commitInterval = std::chrono::milliseconds(2);
  auto recorder = Recorder::start(Project::openForWriting(path).value(), settings).value();
  recorder->beginRun(testing::sampleRunInfo());
  const auto plan = testing::samplePlan({1, 0});
  recorder->plan(plan);
  for (std::int64_t step = 0;; ++step) {
    recorder->step(testing::sampleStep(plan, step));
    const std::int64_t committed = recorder->state().committedStep;
    if (write(pipe, &committed, sizeof committed) < 0) _exit(1);
    if (step % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Runs the child for `life`, counted from its start or from its first committed step, kills it, returns the newest
// acknowledged step.
enum class Since { kStart, kFirstCommit };
std::int64_t runAndKill(const std::filesystem::path& path, std::chrono::microseconds life, Since since) {
  int ends[2];
  if (pipe(ends) != 0) return -2;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    recordForEver(path, ends[1]);
  }
  close(ends[1]);
  std::int64_t acknowledged = -1, committed = -1;
  std::promise<void> first;
  std::thread killer([&] {
    if (since == Since::kFirstCommit) first.get_future().wait_for(std::chrono::seconds(120));
    std::this_thread::sleep_for(life);
    kill(child, SIGKILL);
  });
  while (read(ends[0], &committed, sizeof committed) == sizeof committed) {
    if (acknowledged < 0 && committed >= 0) first.set_value();
    acknowledged = std::max(acknowledged, committed);
  }
  killer.join();
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? acknowledged : -2;
}

TEST(Kill, LosesNoCommittedStep) {
  std::mt19937 random(7);
  std::int64_t total = 0;
  for (int round = 0; round < 20; ++round) {
    const TemporaryFolder folder;
    const auto life = std::chrono::microseconds(std::uniform_int_distribution<int>(3'000, 150'000)(random));
    const std::int64_t acknowledged =
        runAndKill(folder / "a.stepscope", life, round % 2 == 0 ? Since::kStart : Since::kFirstCommit);
    ASSERT_NE(acknowledged, -2);
    if (!std::filesystem::exists(folder / "a.stepscope")) continue;
    total += acknowledged + 1;
    // A reader sees that nobody writes any more.
    if (const auto reader = Project::openReadOnly(folder / "a.stepscope")) {
      const auto runs = listRuns(*reader);
      ASSERT_TRUE(runs) << runs.error().message;
      for (const RunRow& run : *runs) EXPECT_EQ(run.status, "interrupted");
    }
    // The next writer recovers the file; before its tables were committed, it is simply new.
    const auto project = Project::openForWriting(folder / "a.stepscope");
    ASSERT_TRUE(project) << project.error().message;
    const auto runs = listRuns(*project).value();
    if (runs.empty()) {
      EXPECT_EQ(acknowledged, -1);
      continue;
    }
    EXPECT_EQ(runs[0].status, "interrupted");
    const auto steps = readSteps(*project, runs[0].id).value();
    ASSERT_GE(static_cast<std::int64_t>(steps.size()), acknowledged + 1);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].step, static_cast<std::int64_t>(i));
      EXPECT_FALSE(readSpans(*project, steps[i].id)->empty()) << "a step is whole or absent";
    }
  }
  EXPECT_GT(total, 0) << "no step was ever committed: the test proves nothing";
}

TEST(Kill, ReaderOpensWhatAKilledWriterLeft) {
  const TemporaryFolder folder;
  const std::int64_t acknowledged = runAndKill(folder / "a.stepscope", std::chrono::milliseconds(100), Since::kFirstCommit);
  ASSERT_GE(acknowledged, 0);
  const auto project = Project::openReadOnly(folder / "a.stepscope");
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_GE(static_cast<std::int64_t>(readSteps(*project, 1)->size()), acknowledged + 1);
}

}  // namespace
}  // namespace stepscope::storage
