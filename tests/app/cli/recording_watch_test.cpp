// What a run says of its recording: steps that wait for the file are told when the first does, and counted at the end.
#include "app/cli/recording_watch.h"

#include <gtest/gtest.h>

#include "storage/queries.h"
#include "tests/storage/sample_run.h"

namespace stepscope::cli {
namespace {

using storage::testing::samplePlan;
using storage::testing::sampleStep;
using storage::testing::TemporaryFolder;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(RecordingWatch, TellsThatStepsWaitAndHowLong) {
  const TemporaryFolder folder;
  storage::RecorderSettings settings;
  settings.queueBytes = 4096;
  settings.stepPatience = std::chrono::minutes(10);
  auto recorder = storage::Recorder::start(storage::Project::create(folder / "a.stepscope").value(), settings).value();
  const auto run = recorder->beginRun({});
  const Output output(false);
  RecordingWatch watch(*recorder, output);
  const auto plan = samplePlan({8, 0});
  ::testing::internal::CaptureStderr();
  std::int64_t steps = 0;
  while (steps < 100 || recorder->state().waits == 0) {
    recorder->step(sampleStep(plan, steps++));
    watch.look();
  }
  const Status closed = watch.close(steps);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(closed.has_value()) << closed.error().message;
  EXPECT_EQ(recorder->state().lost, 0);
  EXPECT_LE(count(said, "warning: recording: steps wait for the file"), 1u) << said;
  const std::string whole = fmt::format("recording: {} of {} steps waited for the file, ", recorder->state().waits, steps);
  EXPECT_EQ(count(said, "warning: " + whole), 1u) << said;
  // And stands in the file.
  const auto project = storage::Project::openReadOnly(folder / "a.stepscope").value();
  const auto alerts = storage::readAlerts(project, run).value();
  EXPECT_TRUE(
      std::any_of(alerts.begin(), alerts.end(), [&](const auto& alert) { return alert.message.starts_with(whole); }));
  EXPECT_EQ(storage::readSteps(project, run)->size(), static_cast<std::size_t>(steps));
}

TEST(RecordingWatch, HasNothingToSayOfARecordingThatKeepsUp) {
  const TemporaryFolder folder;
  auto recorder = storage::Recorder::start(storage::Project::create(folder / "a.stepscope").value()).value();
  recorder->beginRun({});
  const Output output(false);
  RecordingWatch watch(*recorder, output);
  ::testing::internal::CaptureStderr();
  recorder->step({});
  watch.look();
  EXPECT_TRUE(watch.close(1).has_value());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace stepscope::cli
