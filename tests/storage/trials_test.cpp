// Trials come back from the file as they were measured, and stand in the report.
#include "storage/trials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "storage/recorder.h"
#include "storage/report/report.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

snapshot::TrialsReport session(double ratio) {
  snapshot::TrialsReport report;
  report.set_step(3);
  snapshot::Trial& slower = *report.add_trials();
  slower.set_option("pass.fuse_epilogue");
  slower.set_from("on");
  slower.set_to("off");
  slower.set_rounds(15);
  slower.set_median_ns_before(2e6);
  slower.set_median_ns_after(2e6 * ratio);
  slower.set_ratio(ratio);
  slower.set_low(ratio - 0.01);
  slower.set_high(ratio + 0.01);
  slower.set_p(6e-5);
  slower.set_adjusted_p(1.2e-4);
  slower.set_peak_before(1000);
  slower.set_peak_after(1200);
  slower.set_measured_peak_before(900);
  slower.set_measured_peak_after(1100);
  slower.set_expected_ns_before(1e6);
  slower.set_expected_ns_after(1.1e6);
  slower.set_verdict("slower");
  snapshot::TrialParity& parity = *slower.mutable_parity();
  parity.set_compared(true);
  parity.set_loss(1e-7);
  parity.set_gradient(2e-6);
  parity.set_parameter(3e-7);
  parity.set_gradient_relative(4e-6);
  parity.set_parameter_relative(5e-8);
  parity.set_cosine(std::nan(""));
  parity.set_worst("h.0.mlp.weight");
  snapshot::Trial& same = *report.add_trials();
  same.set_option("pass.cse");
  same.set_from("on");
  same.set_to("off");
  same.set_identical(true);
  same.set_ratio(1);
  same.set_low(1);
  same.set_high(1);
  same.set_p(1);
  same.set_adjusted_p(1);
  same.mutable_parity()->set_compared(true);
  same.mutable_parity()->set_bits(true);
  same.mutable_parity()->set_cosine(1);
  same.set_verdict("same");
  same.set_note("the plan is the same");
  snapshot::Trial& nothing = *report.add_trials();
  nothing = slower;
  nothing.set_option("(nothing)");
  nothing.set_from("");
  nothing.set_to("");
  nothing.set_verdict("not shown");
  return report;
}

std::string textOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Trials, NewestSessionComesBackAsItWas) {
  const TemporaryFolder folder;
  {
    auto recorder = Recorder::start(Project::create(folder / "p.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    recorder->trials(session(1.5));
    recorder->trials(session(1.25));
    recorder->endRun(RunStatus::kFinished);
    recorder->beginRun(testing::sampleRunInfo());
    recorder->endRun(RunStatus::kFinished);
    ASSERT_TRUE(recorder->close());
  }
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  const auto trials = readTrials(project, 1);
  ASSERT_TRUE(trials) << trials.error().message;
  const snapshot::TrialsReport wanted = session(1.25);
  ASSERT_EQ(trials->size(), 3u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ((*trials)[static_cast<std::size_t>(i)].SerializeAsString(), wanted.trials(i).SerializeAsString())
        << (*trials)[static_cast<std::size_t>(i)].DebugString();
  EXPECT_TRUE(readTrials(project, 2)->empty()) << "of another run";
}

TEST(Trials, StandInTheReport) {
  const TemporaryFolder folder;
  {
    auto recorder = Recorder::start(Project::create(folder / "p.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    recorder->trials(session(1.25));
    recorder->endRun(RunStatus::kFinished);
    ASSERT_TRUE(recorder->close());
  }
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  ASSERT_TRUE(writeReport(project, 0, folder / "r.html"));
  ASSERT_TRUE(writeReport(project, 0, folder / "r.json"));
  const std::string html = textOf(folder / "r.html"), json = textOf(folder / "r.json");
  for (const char* part : {"id=\"trials\"", "pass.fuse_epilogue", "1.240 .. 1.260", "No effect on the plan: pass.cse=off",
                           "the plan with itself: 0 of 1 called different", "gradients off by 4e-06"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* part : {"\"option\": \"pass.fuse_epilogue\"", "\"verdict\": \"slower\"", "\"identical\": true"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace stepscope::storage
