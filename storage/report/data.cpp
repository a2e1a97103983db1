#include "storage/report/data.h"

#include <algorithm>

#include "storage/bounded.h"
#include "storage/report/format.h"

namespace stepscope::storage {
namespace {
constexpr std::int64_t kMostStatistics = 100'000;

// Exported models are often all called model.onnx: their folder tells them apart.
std::string modelTitle(const std::string& path) {
  const std::string file = fileNameOf(path);
  if (file != "model.onnx" || path.size() <= file.size() + 1) return file;
  const std::string folder = fileNameOf(path.substr(0, path.size() - file.size() - 1));
  return folder.empty() ? file : folder + '/' + file;
}
}  // namespace

bool ReportData::stoppedIn() const {
  return std::any_of(steps.begin(), steps.end(), [](const StepRow& step) { return step.stoppedIn; });
}

std::int64_t ReportData::startUpNs() const {
  std::int64_t total = 0;
  for (const PhaseRow& phase : phases)
    if (phase.depth == 0) total = saturatingAdd(total, phase.ns);
  return total;
}

std::int64_t ReportData::plannedBytes() const {
  if (!steps.empty() && steps.back().plannedBytes > 0) return steps.back().plannedBytes;
  return plan ? saturatingAdd(boundedSize(plan->persistent_bytes()), boundedSize(plan->arena_bytes())) : 0;
}

std::int64_t ReportData::measuredBytes() const {
  std::int64_t largest = 0;
  for (const StepRow& step : steps) largest = std::max(largest, step.peakBytes);
  return largest;
}

Result<ReportData> readReportData(const Project& project, std::int64_t run) {
  if (run == 0) {
    SS_STORE_ASSIGN(run, newestRun(project));
  }
  ReportData data;
  data.projectName = fileNameOf(project.path());
  SS_STORE_ASSIGN(data.run, readRun(project, run));
  data.model = data.run.modelPath.empty() ? data.run.name : modelTitle(data.run.modelPath);
  SS_STORE_ASSIGN(data.machine, readMachine(project, run));
  SS_STORE_ASSIGN(data.modelInfo, readModel(project, run));
  SS_STORE_ASSIGN(data.options, readOptions(project, run));
  SS_STORE_ASSIGN(data.phases, readPhases(project, run));
  SS_STORE_ASSIGN(data.passes, readPasses(project, run));
  SS_STORE_ASSIGN(data.steps, readSteps(project, run));
  SS_STORE_ASSIGN(data.tokens, readTokenCounts(project, run, data.steps));
  SS_STORE_ASSIGN(data.timing, readTiming(project, run, data.steps));
  SS_STORE_ASSIGN(data.roofline, readRoofline(project, data.timing));
  SS_STORE_ASSIGN(data.kernels, readDeviceKernels(project, run));
  SS_STORE_ASSIGN(data.statistics, readRecordedStatistics(project, run, kMostStatistics, &data.statisticsLeftOut));
  SS_STORE_ASSIGN(data.trials, readTrials(project, run));
  SS_STORE_ASSIGN(data.ledger, readLedger(project, run));
  SS_STORE_ASSIGN(data.ranks, readRanks(project, run));
  SS_STORE_ASSIGN(data.alerts, readAlerts(project, run));
  SS_STORE_ASSIGN(data.lost, readLost(project, run));
  const std::int64_t shown = data.steps.empty() ? 0 : data.steps.back().plan.value_or(0);
  auto plan = readPlan(project, run, shown);
  if (plan)
    data.plan = std::move(*plan);
  else if (plan.error().code != ErrorCode::kNotFound)
    return tl::make_unexpected(plan.error());
  return data;
}

}  // namespace stepscope::storage
