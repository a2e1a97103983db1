#include "storage/project.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "storage/checked_files.h"
#include "storage/comparison.h"
#include "storage/queries.h"
#include "storage/recorder.h"
#include "storage/report/report.h"
#include "storage/sqlite.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

TEST(Project, IsASingleFileAfterItWasClosed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Project::create(folder / "a.stepscope")->close());
  EXPECT_TRUE(std::filesystem::exists(folder / "a.stepscope"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.stepscope-wal"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.stepscope.lock"));
}

TEST(Project, CreateRefusesAFileWithContents) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Project::create(folder / "a.stepscope")->close());
  EXPECT_EQ(Project::create(folder / "a.stepscope").error().code, ErrorCode::kExists);
}

TEST(Project, SecondWriterIsRefusedAndToldWhoWrites) {
  const TemporaryFolder folder;
  const auto first = Project::openForWriting(folder / "a.stepscope");
  ASSERT_TRUE(first);
  const auto second = Project::openForWriting(folder / "a.stepscope");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kLocked);
  EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos) << second.error().message;
}

TEST(Project, WriterMayFollowAWriterThatClosed) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Project::openForWriting(folder / "a.stepscope")->close());
  EXPECT_TRUE(Project::openForWriting(folder / "a.stepscope"));
}

TEST(Project, ReadersSeeCommittedStepsWhileAnotherWrites) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun(testing::sampleRunInfo());
  const auto plan = testing::samplePlan({1, 0});
  recorder->step(testing::sampleStep(plan, 0));
  ASSERT_TRUE(recorder->flush());
  const auto reader = Project::openReadOnly(folder / "a.stepscope");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(readSteps(*reader, run)->size(), 1u);
  recorder->step(testing::sampleStep(plan, 1));
  ASSERT_TRUE(recorder->flush());
  EXPECT_EQ(readSteps(*reader, run)->size(), 2u);
  EXPECT_EQ(readRun(*reader, run)->status, "running");
}

// A report of a run that goes on: its parts agree with each other.
TEST(Project, AReadTransactionSeesOneMoment) {
  const testing::TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "p.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  const auto plan = testing::samplePlan({1, 0});
  recorder->plan(plan);
  recorder->step(testing::sampleStep(plan, 0));
  ASSERT_TRUE(recorder->flush());
  const auto reader = Project::openReadOnly(folder / "p.stepscope").value();
  {
    const ReadTransaction oneMoment(reader.connection());
    EXPECT_EQ(readSteps(reader, 1)->size(), 1u);
    recorder->step(testing::sampleStep(plan, 1));
    ASSERT_TRUE(recorder->flush());
    const ReadTransaction inner(reader.connection());
    EXPECT_EQ(readSteps(reader, 1)->size(), 1u);
  }
  EXPECT_EQ(readSteps(reader, 1)->size(), 2u);
  ASSERT_TRUE(recorder->close());
}

TEST(Project, ReaderThatIsStillOpenDoesNotHinderTheNextWriter) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {1, 3});
  const auto reader = Project::openReadOnly(folder / "a.stepscope").value();
  {
    auto recorder = Recorder::start(Project::openForWriting(folder / "a.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    ASSERT_TRUE(recorder->close());
  }
  EXPECT_EQ(listRuns(reader)->size(), 2u);
}

TEST(Project, RunWhoseWriterDiedBecomesInterrupted) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    (void)recorder->flush();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const auto project = Project::openForWriting(folder / "a.stepscope");
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_EQ(listRuns(*project)->at(0).status, "interrupted");
}

TEST(Project, MissingFileIsNotFoundAndIsNotMade) {
  const TemporaryFolder folder;
  EXPECT_EQ(Project::openReadOnly(folder / "none.stepscope").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder / "none.stepscope"));
}

TEST(Project, FollowsASymbolicLinkGivenByTheUser) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {1, 1});
  std::filesystem::create_symlink(folder / "a.stepscope", folder / "link.stepscope");
  const auto project = Project::openReadOnly(folder / "link.stepscope");
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_TRUE(project->path().ends_with("/a.stepscope"));
}

// The list of runs is read every moment while one is recorded: a file that this process has checked is not read to its end
// again.
// Whoever reads is heard of within a query, and what was put together by then is no answer.
TEST(Project, ReadingEndsWhenNobodyWantsTheAnswer) {
  const TemporaryFolder folder;
  const auto path = folder / "a.stepscope";
  testing::recordSample(path, {.blocks = 2, .steps = 20});
  std::atomic<bool> stop = true;
  EXPECT_EQ(Project::openReadOnly(path, &stop).error().code, ErrorCode::kCancelled);
  stop = false;
  const auto project = Project::openReadOnly(path, &stop);
  ASSERT_TRUE(project);
  EXPECT_FALSE(project->stopped());
  EXPECT_TRUE(compareRuns(*project, 1, 1));
  stop = true;
  EXPECT_TRUE(project->stopped());
  EXPECT_EQ(compareRuns(*project, 1, 1).error().code, ErrorCode::kCancelled);
  for (const char* name : {"r.html", "r.json", "r.csv", "r.trace.json"}) {
    const auto written = writeReport(*project, 1, folder / name);
    EXPECT_EQ(written.error().code, ErrorCode::kCancelled) << name;
    EXPECT_FALSE(std::filesystem::exists(folder / name)) << name;
  }
  stop = false;
  EXPECT_TRUE(writeReport(*project, 1, folder / "r.html"));
  const auto unasked = Project::openReadOnly(path);
  EXPECT_TRUE(unasked && !unasked->stopped());
}

TEST(Project, IsCheckedOnceWhileItStaysTheSame) {
  const TemporaryFolder folder;
  const auto path = folder / "p.stepscope";
  testing::recordSample(path, {1, 20});
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // a file that just changed could change again unseen
  int before = wholeChecks();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Project::openReadOnly(path));
  EXPECT_EQ(wholeChecks(), before + 1);
  {
    auto recorder = Recorder::start(Project::openForWriting(path).value()).value();
    before = wholeChecks();
    for (int i = 0; i < 5; ++i) {
      recorder->beginRun(testing::sampleRunInfo());
      ASSERT_TRUE(recorder->flush());
      const auto reader = Project::openReadOnly(path);
      ASSERT_TRUE(reader);
      EXPECT_EQ(listRuns(*reader)->size(), static_cast<std::size_t>(i) + 2);
    }
    EXPECT_EQ(wholeChecks(), before) << "this process wrote what is new in it";
  }
  // What another one did to it is seen.
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
    for (std::streamoff page = 4096; page < size; page += 4096) {
      file.seekp(page);
      file.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    }
  }
  const auto damaged = Project::openReadOnly(path);
  EXPECT_TRUE(!damaged || !damaged->warnings().empty());
  EXPECT_GT(wholeChecks(), before);
}

}  // namespace
}  // namespace stepscope::storage
