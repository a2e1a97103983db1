// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a recorded run into what the views show. Any thread; the file is opened read-only and treated as hostile.
#pragma once

#include <QString>
#include <QStringList>
#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "storage/error.h"
#include "storage/step_facts.h"
#include "views/common/pytorch_times.h"
#include "views/common/rank_times.h"
#include "views/common/run_times.h"
#include "views/common/snapshot_store.h"
#include "views/common/step_plans.h"

namespace stepscope {

struct ProjectContents {
  ModelPtr model;
  MachinePtr machine;
  GraphPtr graph;
  QStringList stages;  // phases of that build that keep a graph, in their order
  PlanPtr plan;
  std::vector<snapshot::Determinism> determinism;
  std::vector<snapshot::Option> options;
  std::vector<snapshot::PhaseSpan> phases;
  std::vector<snapshot::Alert> alerts;
  snapshot::TrialsReport trials;                         // the newest session of them
  std::shared_ptr<const snapshot::LedgerReport> ledger;  // the newest; null: none
  PyTorchTimes::Rows pytorch;                            // of the newest trace that was imported; empty: none
  RankTimes::Table ranks;                                // empty: a run of one process
  std::map<std::int64_t, StepRanksPtr> rankSteps;        // of the newest steps, by their number
  StepSeries series;                                     // of all steps
  std::vector<StepPtr> steps;  // of the newest, which carry their spans, and of older ones that noted something
  std::map<std::int64_t, PlanOfStep> plans;  // that steps with spans ran under
  std::vector<storage::WatchedStatistics> watched;
  std::vector<RunEntry> runs;
  std::map<std::int64_t, RunStepTimes> times;  // of a step, by run
  QStringList warnings;                        // of the file: it is damaged, newer than this program …
  bool damaged = false;                        // the first of them says how, the others what could not be read
};

// Run 0 is the newest. Parts that the run does not have stay empty. `stop`, here and below: as Project::openReadOnly() takes
// it; where it was set meanwhile the answer is kCancelled.
storage::Result<ProjectContents> readProject(const QString& path, std::int64_t run, const std::atomic<bool>* stop = nullptr);
storage::Result<GraphPtr> readStageGraph(const QString& path, std::int64_t run, const QString& stage);
// `liveBefore`: as standingOf() takes it.
storage::Result<std::vector<RunEntry>> readRuns(const QString& path, std::map<std::int64_t, RunStepTimes>* times = nullptr,
                                                std::optional<std::int64_t> liveBefore = {},
                                                const std::atomic<bool>* stop = nullptr);

// Puts it into the store, read-only. GUI thread.
void show(const ProjectContents& contents, SnapshotStore& store);

}  // namespace stepscope
