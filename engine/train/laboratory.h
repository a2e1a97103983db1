// What the laboratory (engine/lab) is asked in a session: its model, options, state and coming batch are the subject.
//
// State, plan and place of the session stay as they are. Session::cancel() ends what runs: kCancelled, unless said
// otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/lab/golden_check.h"
#include "engine/lab/recompute_analysis.h"
#include "engine/lab/recompute_history.h"
#include "engine/snapshot/lab.pb.h"
#include "engine/snapshot/precision.pb.h"
#include "engine/train/batch_feed.h"
#include "engine/train/plan_set.h"

namespace stepscope {

struct CapacitySubject;
struct BisectQuestion;
struct BisectReport;
struct Ledger;
struct NetworkFile;
struct RankPoint;
struct EvaluatedBatch;
struct Evaluation;

class Laboratory {
 public:
  // `request`: what a build would be asked now. All of them outlive it.
  Laboratory(StepContext& context, PlanSet& plans, BatchFeed& feed, std::function<BuildRequest()> request)
      : context_(context), plans_(plans), feed_(feed), request_(std::move(request)) {}

  // What may be computed again, judged on the plan that runs.
  Result<snapshot::RecomputeReport> recompute(const std::optional<RecomputeQuestion>& question);
  void stepDone() { history_.add(plans_.stepper()); }  // after a committed step: what the present choice took

  // The coming step, or the begun one from its start and without edits, in a low precision next to float32
  // (engine/lab/precision_study.h).
  Result<snapshot::PrecisionReport> precision(const snapshot::GetPrecision& question);

  // What fits into a memory: plans of the step under the present options for many extents of a dimension
  // (engine/lab/capacity.h). Nothing has to be built, nothing runs, and no weights are needed: the model may be opened
  // without them. Extents that nobody sets are those of the data; without data as of synthetic data. Where a dimension
  // varies, as many labels count as in synthetic data (option padding). Errors: kNotFound for a dimension that no input has,
  // kInvalidArgument for a range that is empty, those of building.
  Result<snapshot::CapacityReport> capacity(const snapshot::GetCapacity& question);

  // What one of so many ranks needs and sends on a network (engine/lab/rank_capacity.h). As capacity(): nothing has to be
  // built, nothing runs. `machine`: a machine file, `machineName` how errors call it; empty: this one.
  Result<std::vector<RankPoint>> rankCapacity(const NetworkFile& network, const std::vector<std::int64_t>& ranks,
                                              const std::string& machine, const std::string& machineName);

  // The coming step, or the begun one from its start, next to the same step with every option changed in turn
  // (engine/lab/trials.h). Cancelled, it ends with what was measured. `tried`: told of each as soon as it is measured,
  // without its verdict.
  Result<snapshot::TrialsReport> trials(const snapshot::GetTrials& question,
                                        std::function<void(const snapshot::Trial&)> tried = {});

  // The first batch of the data next to what PyTorch computed of it (engine/lab/golden_check.h), from the state as it is
  // now; of `batches` batches the losses, as far as the golden has them.
  Result<GoldenReport> compareWithGolden(const Golden& golden, std::int64_t batches = 1);

  // Which options, and which nodes, make the coming step, or the begun one from its start, compute other numbers than the
  // reference (engine/lab/bisect.h).
  Result<BisectReport> bisect(const BisectQuestion& question);

  // Gradient rules beside finite differences at the values of the coming step, or of the begun one from its start
  // (engine/lab/gradcheck.h).
  Result<snapshot::GradcheckReport> gradcheck(const snapshot::GetGradcheck& question);

  // What every buffer of the plan really takes of its planned bytes, by its index; -1 for those that are not the arena's own
  // (engine/lab/buffer_bytes.h). Runs the coming step, or the begun one from its start, beside the session.
  Result<std::vector<std::int64_t>> bufferBytes();

  // What the coming step, or the begun one from its start, is spent on (engine/lab/ledger_steps.h). Costs a build beside the
  // run, and state and arena once more.
  Result<Ledger> ledger(const snapshot::GetLedger& question);

  // Loss and metrics of `batches` entries of the data (0: all of them; of synthetic data 8), from the first on, by a graph
  // of its own that shares the parameters: Dropout hands on, BatchNormalization uses its running statistics
  // (engine/train/evaluate.h). Nothing has to be built. `each` is told of every batch. Errors: kInvalidArgument inside a
  // begun step; those of finding the loss and of building. `from`: opens batches to take instead.
  Result<Evaluation> evaluate(std::int64_t batches, const std::function<void(const EvaluatedBatch&)>& each = {},
                              const BatchFeed::Open& from = {});

  // The begun step, from the state of its start.
  SideSubject begunStep() const;

 private:
  Status needsTraining(std::string_view what, std::string_view why) const;
  const ImportedModel& model() const { return *plans_.model(); }
  Result<Batch> comingBatch() const;
  StateSnapshot startOfStep() const;
  CapacitySubject capacitySubject();  // without what it varies

  StepContext& context_;
  PlanSet& plans_;
  BatchFeed& feed_;
  std::function<BuildRequest()> request_;
  RecomputeHistory history_;
  std::unique_ptr<RecomputeAnalysis> analysis_;  // of one variant, made when it is asked for
  std::weak_ptr<const Variant> analysed_;
};

}  // namespace stepscope
