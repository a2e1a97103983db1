// A made-up run of a small transformer with everything a project can hold, for tests and for looking at reports.
#pragma once

#include <filesystem>
#include <string>

#include "storage/recorder.h"

namespace stepscope::storage::testing {

// A fresh folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct SampleSize {
  int blocks = 4;  // transformer blocks; about 40 instructions each
  int steps = 60;
};

// The machine of the sample, per second.
inline constexpr double kSampleOperations = 250e9, kSampleCoreCaches = 100e9;

RunInfo sampleRunInfo();
snapshot::Graph sampleGraph(const SampleSize& size);
snapshot::Plan samplePlan(const SampleSize& size);
std::vector<snapshot::PhaseSpan> samplePhases();
// Spans and numbers are a fixed function of `step`.
snapshot::StepRecord sampleStep(const snapshot::Plan& plan, std::int64_t step);

// Records the whole run and closes the file.
void recordSample(const std::filesystem::path& path, const SampleSize& size = {});

}  // namespace stepscope::storage::testing
