#include "app/cli/record_run.h"

#include <fmt/format.h>

#include "app/cli/machine.h"
#include "engine/build/pass_stages.h"
#include "engine/snapshot/alert.h"
#include "kernels/activity.h"

namespace stepscope::cli {
namespace {

Error fromStorage(const storage::Error& error) { return {ErrorCode::kIo, error.message}; }

}  // namespace

Result<std::unique_ptr<storage::Recorder>> startRecorder(const std::string& projectPath, const std::string& model,
                                                         const Session& session) {
  auto project = storage::Project::openForWriting(projectPath);
  if (!project) return tl::make_unexpected(fromStorage(project.error()));
  // Nobody watches a window here: a step waits for a slow disk, and nothing of it is lost.
  storage::RecorderSettings settings;
  settings.stepPatience = std::chrono::minutes(1);
  settings.queueBytes = std::size_t{8} << 20;  // so it need hold no more than what a commit takes
  auto recorder = storage::Recorder::start(std::move(*project), settings);
  if (!recorder) return tl::make_unexpected(fromStorage(recorder.error()));
  storage::RunInfo info;
  const TrainOptions& o = session.options();
  info.modelPath = model;
  info.commandLine = commandLine();
  info.threads = threadsOf(o);
  if (session.lossValue()) info.lossName = session.runningGraph().value(session.lossValue()).name;
  info.seed = static_cast<std::int64_t>(o.seed);
  info.optimizer = o.optimizer;
  info.device = o.device;
  info.precision = o.precision;
  info.model = session.inspect();
  info.machine = machineInfo();
  info.options = session.optionList();
  for (const snapshot::Alert& alert : session.alerts())
    if (alert.code() == "missing_weights") info.weights = fmt::format("random, external data is missing (seed {})", o.seed);
  (*recorder)->beginRun(std::move(info));
  return std::move(*recorder);
}

void recordBuild(storage::Recorder& recorder, const Session& session) {
  recorder.phases(session.log().spansOf(session.log().builds() - 1));
  recorder.options(session.optionList());
  std::vector<std::string> stages;
  for (const Stage& stage : session.plans().stages())
    if (!isPassStage(stage)) stages.push_back(stage.phase);
  if (auto graph = session.graphSnapshot({})) recorder.graph(std::move(*graph), static_cast<int>(stages.size()));
  if (auto plan = session.planSnapshot()) {
    recorder.plan(std::move(*plan));
    recorder.determinism(session.determinism());
  }
  for (std::size_t i = stages.size(); i-- > 1;)
    if (auto graph = session.graphSnapshot(stages[i - 1])) recorder.stageGraph(std::move(*graph), static_cast<int>(i - 1));
  for (const snapshot::Alert& alert : session.alerts()) recorder.alert(alert);
}

void recordDeviceTimes(storage::Recorder& recorder, const Session& session) {
  const auto device = findDevice(session.options().device);
  if (!device || (*device)->facts().immediate || session.options().record == "off") return;
  const std::string& asked = session.options().recordRung;
  const ActivitySource* const source = asked == "host" ? nullptr : activityOf(**device);
  const bool lower = source && !source->rung().name.empty() && source->rung().name != asked;
  recorder.alert(makeAlert(
      lower && asked == "counters" ? snapshot::Alert::WARNING : snapshot::Alert::INFO, "device_times",
      source ? fmt::format("times of instructions on '{}' are those that the device recorded ({}{}), by the host's "
                           "clock",
                           (*device)->facts().name, source->rung().name,
                           source->rung().reason.empty() ? "" : ": " + source->rung().reason)
             : fmt::format("times of instructions on '{}' are those that the host took to issue them: {}",
                           (*device)->facts().name,
                           asked == "host" ? "nobody asks the device (record.rung=host)" : "the device tells none")));
  if (source && source->lostActivity() > 0)
    recorder.lost("device records", source->lostActivity(), "the device dropped records of what ran when",
                  "such an instruction has the time that the host took to issue it");
}

}  // namespace stepscope::cli
