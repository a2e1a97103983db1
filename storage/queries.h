// Typed readers of a project: what a report or a view shows. No writing, no SQL for the caller.
//
// Every function takes an open project (any mode) and a run id, and returns values in file order. Enumerations from the file
// are text; contents are untrusted and may be any text. Errors: kNotFound for a run, graph or plan that is not there;
// kCorrupt for contents that do not parse; database errors.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"
#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

// A step stands when it was executed and no rewind took it back: of all executions with its number it is the last, and none
// with a smaller number came after it. So do alerts and statistics of such a step. A rewind is in the file as soon as it is
// committed; until then who made it says that of run `run` only steps below `before` stand.
struct Standing {
  std::int64_t run = 0;
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
};

struct RunRow {
  std::int64_t id = 0;
  std::string name, modelPath, commandLine, device, precision, optimizer, lossName, weights, status, message;
  int threads = 0;
  std::int64_t seed = 0;
  std::int64_t startedAt = 0;  // nanoseconds since 1970
  std::optional<std::int64_t> endedAt;
  std::int64_t steps = 0;        // that stand
  std::int64_t lostSteps = 0;    // that ran and are not recorded: see readLost()
  std::int64_t takenBack = 0;    // executions of the table steps that do not: a rewind took them back
  std::int64_t totalStepNs = 0;  // of those that stand
  std::optional<double> firstLoss, lastLoss;
};

// One option of a run, as set.
struct OptionRow {
  std::string name, value, defaultValue, setBy, doc, effect;
  std::vector<std::string> choices;
};

struct PhaseRow {
  std::int64_t id = 0;
  int build = 0;
  std::optional<std::int64_t> parent;  // id
  int depth = 0;
  std::string name;
  std::int64_t beginNs = 0, ns = 0, peakBytes = 0, count = 0;
  std::string error;
};

// A place where a pass almost applied; and what a pass did.
struct NearMissRow {
  std::int32_t node = -1;
  std::string nodeName, condition;
};
struct PassRow {
  std::int64_t phase = 0;  // id of its span
  std::string name, notes;
  std::int64_t ns = 0, matches = 0, nodesBefore = 0, nodesAfter = 0;
  std::vector<NearMissRow> nearMisses;  // the first
  std::int64_t nearMissesInAll = 0;
};

struct StepRow {
  std::int64_t id = 0, step = 0;
  std::optional<std::int64_t> plan;
  std::optional<double> loss, gradientNorm;
  double learningRate = 0;
  bool updated = false, warmUp = false;
  bool stoppedIn = false;  // by somebody: ns includes the waiting
  bool judged = false;     // ns says how fast a step is: see judged_steps.h
  std::int64_t samples = 0, tokens = 0, beginNs = 0, ns = 0, plannedBytes = 0, peakBytes = 0;
  std::string batch;
  std::int64_t recordingNs = 0;        // of ns
  std::int64_t cpuNs = 0, waitNs = 0;  // see the columns of `steps`
  std::string speed;                   // kFullSpeed, kRecorded, kWatched or kWalked
};

// Rows of the tables alerts, lost, plans and graphs; -1 = of no node, value, instruction or step.
struct AlertRow {
  std::string severity, code, message;
  std::int32_t node = -1, value = -1, instruction = -1;
  std::int64_t step = -1;
};
struct LostRow {
  std::string what, reason, advice;
  std::int64_t amount = 0, firstStep = -1, lastStep = -1;
};
struct PlanRow {
  std::int64_t id = 0;
  int build = 0;
  std::string signature, reason;
  std::int64_t arenaBytes = 0, lowerBoundBytes = 0, persistentBytes = 0;
};
struct GraphRow {
  std::int64_t id = 0;
  int build = 0;
  std::string phase;
  std::int64_t nodes = 0, values = 0, bytes = 0;
};

// A run whose writer died is "interrupted" here, before the next writer notes it.
Result<std::vector<RunRow>> listRuns(const Project& project, const Standing& standing = {});
Result<RunRow> readRun(const Project& project, std::int64_t run);
Result<std::vector<std::int64_t>> listRunIds(const Project& project);  // ascending
Result<std::int64_t> newestRun(const Project& project);                // kNotFound in an empty project

Result<std::vector<OptionRow>> readOptions(const Project& project, std::int64_t run);  // newest revision
Result<snapshot::MachineInfo> readMachine(const Project& project, std::int64_t run);
Result<snapshot::ModelInfo> readModel(const Project& project, std::int64_t run);

// `build` -1 = the newest that has phases.
Result<std::vector<PhaseRow>> readPhases(const Project& project, std::int64_t run, int build = -1);
Result<std::vector<PassRow>> readPasses(const Project& project, std::int64_t run, int build = -1);
// Time of the phases down to `depth` over all runs and builds, newest last: the history of a phase.
struct PhaseHistoryRow {
  std::int64_t run = 0;
  int build = 0;
  std::string name;  // at depth 1 and more with the names around it: "pre-grad passes/fold_constants"
  std::int64_t ns = 0;
  int depth = 0;
  bool failed = false;
};
Result<std::vector<PhaseHistoryRow>> readPhaseHistory(const Project& project, int depth = 0);

// Those that stand, by number, below `before`.
Result<std::vector<StepRow>> readSteps(const Project& project, std::int64_t run,
                                       std::int64_t before = std::numeric_limits<std::int64_t>::max());
// The same, one after the other: a run may have millions of them.
Status visitSteps(const Project& project, std::int64_t run, const std::function<void(StepRow)>& visit);
// One step as last executed; nothing where the run has no such step. And those from `first` to `last`, by number. However
// long the run is, only these are read: `judged`, which depends on all steps, is false.
Result<std::optional<StepRow>> readStep(const Project& project, std::int64_t run, std::int64_t step);
Result<std::vector<StepRow>> readStepsBetween(const Project& project, std::int64_t run, std::int64_t first,
                                              std::int64_t last);

// Those that stand, in the order in which they were recorded.
Result<std::vector<AlertRow>> readAlerts(const Project& project, std::int64_t run);
Result<std::vector<LostRow>> readLost(const Project& project, std::int64_t run);

// The graphs of a run without their contents, oldest first.
Result<std::vector<GraphRow>> listGraphs(const Project& project, std::int64_t run);
// The newest graph taken after `phase` (of any phase when empty).
Result<snapshot::Graph> readGraph(const Project& project, std::int64_t run, const std::string& phase = {});
Result<std::vector<PlanRow>> listPlans(const Project& project, std::int64_t run);
Result<snapshot::Plan> readPlan(const Project& project, std::int64_t run, std::int64_t plan = 0);  // 0 = newest

Result<std::string> readViewState(const Project& project, const std::string& key);  // empty when never set

}  // namespace stepscope::storage
