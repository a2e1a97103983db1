// `stepscope train --distributed`: this process as one of several that train one model together.
//
// Rank 0 prints, records and writes files; the others compute, and tell of their errors alone. After each micro step all
// tell each other how it went, so that they stop at the same one. Source of the rules: engine/comm/README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/output.h"
#include "engine/comm/ranks.h"
#include "engine/plan/plan_collectives.h"
#include "engine/train/session.h"
#include "storage/rank_steps.h"

namespace stepscope::cli {

class RankRun {
 public:
  // As option `distributed` says; null where it is off. Starts the other processes, or finds those of mpirun; without the
  // option `threads` each takes its share of the machine's cores. Errors: those of LocalProcesses and MpiRanks.
  static Result<std::unique_ptr<RankRun>> join(TrainOptions& options);

  bool leads() const { return ranks_->rank() == 0; }
  int size() const { return ranks_->size(); }
  Ranks& ranks() { return *ranks_; }

  // After the build. Error: the ranks do not begin at the same place with the same parameters.
  Status begin(const Session& session);
  // What a rank wants after a step, and what all of them do then.
  struct Wish {
    bool stop = false;  // the run ends here
    bool save = false;  // the state is written
  };
  // After each micro step: the record's loss becomes the mean over the ranks. What one rank wants all do. Error, with option
  // ranks.check: the first rank and parameter that differ.
  Result<Wish> stepDone(const Session& session, const Wish& mine, snapshot::StepRecord& record, const Output& output);
  // Of the newest step, for a project.
  const std::vector<storage::RankStep>& newest() const { return newest_; }
  // Spans of ranks that ran another plan than rank 0, since this was asked before: the project has no place for them.
  std::int64_t takeLostSpans();
  // What each rank took, as a table or an event. Rank 0.
  void summary(const Output& output) const;
  // However the run ended: the others are told, and their end is waited for. Error: the run went well, and a rank did not.
  Status end(const Status& run);
  // A signal came: from a handler.
  void asked(int signal);

 private:
  struct Sum {
    double ns = 0, waitNs = 0, moveNs = 0, exposedNs = 0, sentBytes = 0, peakBytes = 0, stateBytes = 0;
    std::int64_t last = 0;  // in how many steps the others waited for it most
  };
  explicit RankRun(std::unique_ptr<Communicator> communicator) : ranks_(std::make_unique<Ranks>(std::move(communicator))) {}
  // Option distributed=nccl: each rank takes a GPU of its machine, and NCCL moves what lies on it.
  Status joinGpus(TrainOptions& options);
  Status sameParameters(const Session& session, std::int64_t step);
  void lookAtPlan(const Session& session);
  std::int64_t plannedBytes(const snapshot::StepRecord& record) const;
  Status bringSpans(const std::string& mine, storage::RankStep& row, int count, std::int64_t bytes, bool samePlan);

  std::unique_ptr<Ranks> ranks_;
  bool mpi_ = false, check_ = false;
  std::vector<Sum> sums_;
  std::int64_t steps_ = 0;
  std::vector<PlannedCollective> planned_;  // of the plan that was looked at last
  std::size_t lookedAt_ = SIZE_MAX;         // whose build that was
  std::int64_t stateBytes_ = 0;
  std::int64_t met_ = 0;  // when all ranks had met last, on the clock of this one
  std::vector<storage::RankStep> newest_;
  std::int64_t lostSpans_ = 0;
};

}  // namespace stepscope::cli
