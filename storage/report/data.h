// Everything a report says about one run, read once. All writers of this folder work from it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/device_kernels.h"
#include "storage/error.h"
#include "storage/ledger.h"
#include "storage/queries.h"
#include "storage/rank_steps.h"
#include "storage/roofline.h"
#include "storage/step_facts.h"
#include "storage/timing.h"
#include "storage/trials.h"

namespace stepscope::storage {

struct ReportData {
  std::string projectName;  // file name without folders
  std::string model;        // file name of the model, with its folder where the name says nothing
  RunRow run;
  snapshot::MachineInfo machine;
  snapshot::ModelInfo modelInfo;
  std::vector<OptionRow> options;
  std::vector<PhaseRow> phases;  // newest build
  std::vector<PassRow> passes;
  std::vector<StepRow> steps;      // each step once, as last executed
  std::vector<TokenCount> tokens;  // of each of them
  Timing timing;
  Roofline roofline;
  DeviceKernels kernels;
  std::optional<snapshot::Plan> plan;  // executed last, else newest
  std::map<std::int64_t, std::vector<snapshot::RecordedStatistics>>
      statistics;                       // by step; thinned out where there are very many
  std::int64_t statisticsLeftOut = 0;   // steps that were
  std::vector<snapshot::Trial> trials;  // newest session
  LedgerRecord ledger;                  // newest; without lines: none
  RankReport ranks;                     // of several processes; without rows: of one
  std::vector<AlertRow> alerts;
  std::vector<LostRow> lost;

  bool stoppedIn() const;              // somebody stopped in a step
  std::int64_t startUpNs() const;      // sum of the phases at depth 0
  std::int64_t plannedBytes() const;   // of the newest step, else of the plan; 0 unknown
  std::int64_t measuredBytes() const;  // largest of all steps; 0 unknown
};

// `run` 0 = the newest run.
Result<ReportData> readReportData(const Project& project, std::int64_t run);

}  // namespace stepscope::storage
