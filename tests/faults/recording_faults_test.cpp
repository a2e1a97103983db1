// A recording on a file system that fails at each call in turn: whatever was acknowledged is there afterwards, whatever was
// not is said, and the file opens.
#include <gtest/gtest.h>

#include "storage/queries.h"
#include "storage/recorder.h"
#include "tests/faults/faulty_vfs.h"
#include "tests/storage/sample_run.h"

namespace stepscope::testing {
namespace {

using namespace stepscope::storage;
using storage::testing::TemporaryFolder;

constexpr int kSteps = 4;

struct Outcome {
  std::int64_t acknowledged = 0;  // steps of which flush() said that they are committed
  Status first;                   // the first thing that went wrong
  bool started = false;           // there was a recorder
  bool closed = false;            // close() said that all is well
};

// Opens, or creates, and records one run.
Outcome record(const std::filesystem::path& path) {
  Outcome outcome;
  const auto note = [&outcome](const Status& status) {
    if (!status && outcome.first) outcome.first = status;
    return status.has_value();
  };
  auto project = Project::openForWriting(path);
  if (!project) return note(tl::make_unexpected(project.error())), outcome;
  RecorderSettings settings;
  settings.commitInterval = std::chrono::hours(1);  // flush() alone commits: each run makes the same calls
  settings.closePatience = std::chrono::milliseconds(0);
  auto recorder = Recorder::start(std::move(*project), settings);
  if (!recorder) return note(tl::make_unexpected(recorder.error())), outcome;
  outcome.started = true;
  (*recorder)->beginRun(storage::testing::sampleRunInfo());
  const auto plan = storage::testing::samplePlan({1, 0});
  (*recorder)->graph(storage::testing::sampleGraph({1, 0}));
  (*recorder)->plan(plan);
  for (int step = 0; step < kSteps; ++step) {
    (*recorder)->step(storage::testing::sampleStep(plan, step));
    if (note((*recorder)->flush())) outcome.acknowledged = step + 1;
  }
  outcome.closed = note((*recorder)->close());
  return outcome;
}

// What stands in the file, which must open; -1 when it does not hold that run.
std::int64_t stepsOf(const std::filesystem::path& path, std::int64_t run) {
  const auto project = Project::openForWriting(path);
  EXPECT_TRUE(project) << project.error().message;
  if (!project) return -1;
  const auto runs = listRuns(*project);
  EXPECT_TRUE(runs) << runs.error().message;
  if (!runs || static_cast<std::int64_t>(runs->size()) < run) return -1;
  const auto steps = readSteps(*project, run);
  EXPECT_TRUE(steps) << steps.error().message;
  return steps ? static_cast<std::int64_t>(steps->size()) : -1;
}

class RecordingFaults : public ::testing::TestWithParam<Fault> {
 protected:
  // Fails at every call of a recording into `file` as `prepare` leaves it. Returns how many calls there were.
  template <typename Prepare>
  int failAtEachCall(const Prepare& prepare) {
    for (int call = 1;; ++call) {
      const TemporaryFolder folder;
      const auto file = folder / "a.stepscope";
      const std::int64_t before = prepare(file);
      FaultyVfs vfs(file.parent_path());
      vfs.failAt(GetParam(), call);
      const Outcome outcome = record(file);
      if (!vfs.happened()) {
        EXPECT_TRUE(outcome.first) << outcome.first.error().message;
        EXPECT_EQ(outcome.acknowledged, kSteps);
        return call - 1;
      }
      vfs.restart();
      if (!outcome.first) {
        EXPECT_FALSE(outcome.first.error().message.empty());
      }
      const std::int64_t found = stepsOf(file, before < 0 ? 1 : 2);
      if (outcome.acknowledged > 0) {
        EXPECT_GE(found, outcome.acknowledged) << "call " << call;
      }
      if (before >= 0) {
        EXPECT_EQ(stepsOf(file, 1), before) << "call " << call << ": the run before";
      }
      if (outcome.started && GetParam() != Fault::kPowerCut) {
        EXPECT_GE(outcome.acknowledged, kSteps - 1) << "call " << call << ": what failed once is tried again";
      }
      if (outcome.closed) {
        EXPECT_EQ(found, kSteps) << "call " << call << ": close() said that all is well";
      }
      if (::testing::Test::HasFailure()) return call;
    }
  }
};

TEST_P(RecordingFaults, InANewProject) {
  EXPECT_GT(failAtEachCall([](const std::filesystem::path&) { return std::int64_t{-1}; }), 20);
}

TEST_P(RecordingFaults, InAProjectThatHasARun) {
  EXPECT_GT(failAtEachCall([](const std::filesystem::path& file) { return record(file).acknowledged; }), 20);
}

std::string nameOf(const ::testing::TestParamInfo<Fault>& info) {
  switch (info.param) {
    case Fault::kNone: return "None";
    case Fault::kRefused: return "Refused";
    case Fault::kShortWrite: return "ShortWrite";
    case Fault::kDiskFull: return "DiskFull";
    case Fault::kPowerCut: return "PowerCut";
  }
  return "Unknown";
}

INSTANTIATE_TEST_SUITE_P(Each, RecordingFaults,
                         ::testing::Values(Fault::kRefused, Fault::kShortWrite, Fault::kDiskFull, Fault::kPowerCut), nameOf);

// The harness itself: what was not synced is gone, what was is there.
TEST(FaultyVfs, PowerCutTakesBackWhatWasNotSynced) {
  const TemporaryFolder folder;
  const auto file = folder / "a.stepscope";
  FaultyVfs vfs(file.parent_path());
  ASSERT_EQ(record(file).acknowledged, kSteps);
  const auto whole = std::filesystem::file_size(file);
  vfs.failAt(Fault::kPowerCut, 1);
  EXPECT_FALSE(record(file).first);
  EXPECT_TRUE(vfs.happened());
  EXPECT_FALSE(Project::openForWriting(file)) << "nothing works until the machine is on again";
  vfs.restart();
  EXPECT_EQ(std::filesystem::file_size(file), whole);
  EXPECT_EQ(stepsOf(file, 1), kSteps);
}

}  // namespace
}  // namespace stepscope::testing
