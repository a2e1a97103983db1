// What a micro step notes of its numbers while it runs: the batch it was fed, the loss of every row, statistics of
// parameters, gradients and module outputs.
//
// Values are looked at as soon as they are computed, when their memory is not yet reused, so noting them changes neither
// plan nor numbers. How often is a matter of the options record.batch and record.statistics; what it took stands in the
// record.
#pragma once

#include <map>
#include <vector>

#include "engine/build/batch.h"
#include "engine/build/options.h"
#include "engine/exec/executor.h"
#include "engine/profile/sampler.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

// What there is to note of a variant, by instruction.
struct NotePlan {
  struct Place {
    std::string kind, of;
    ValueId value;
    NodeId node;
  };
  std::vector<Place> parameters;            // read before the step writes them
  std::map<int, std::vector<Place>> after;  // by the instruction that computes the value
  ValueId unscale;                          // a number that gradients are multiplied by: they carry a loss scale
  int rows = -1;                            // after this instruction the losses of the rows can be read; -1 never
};

// Trained parameters, their gradients as accumulated (an invalid id where the loss does not depend on one), and of every
// module the output of its last forward node.
NotePlan planNotes(const Executor& executor, const std::vector<ValueId>& trained, const std::vector<ValueId>& gradients,
                   ValueId loss);

// The contents of a value when the next instruction is `position`. Error: why they are not there.
Result<TensorView> contentsAt(const Executor& executor, ValueId id, int position);

class StepNotes {
 public:
  StepNotes() = default;
  explicit StepNotes(const TrainOptions& options);

  // Whether anything is to be noted of this micro step.
  bool due(std::int64_t step) const { return on_ && (batchSampler_.wants(step) || statisticsSampler_.wants(step)); }
  // Before the first instruction of micro step `step`: looks at what is there already. `plan` must be there when the step is
  // due.
  void begin(const Executor& executor, const NotePlan* plan, const Batch& batch, ValueId loss, std::int64_t step);
  // Whether after() has to be called in this step.
  bool listens() const { return statistics_ || rows_; }
  // Instruction `index` ran, or ran again; `computed` is false when a condition or the update kept it from running.
  void after(int index, bool computed);
  // Puts what was noted into the record of the step, and forgets it.
  void finish(snapshot::StepRecord& record);

 private:
  void note(const NotePlan::Place& place, int position);
  void noteBatch(const Batch& batch);

  Sampler batchSampler_, statisticsSampler_;
  bool on_ = false;
  std::int64_t contentBytes_ = 0;
  const Executor* executor_ = nullptr;  // of this step
  const NotePlan* plan_ = nullptr;
  ValueId loss_;
  bool batch_ = false, statistics_ = false, rows_ = false;
  std::int64_t step_ = 0, batchNs_ = 0, statisticsNs_ = 0;
  std::vector<snapshot::TensorData> inputs_;
  snapshot::RowLosses rowLosses_;
  std::map<int, snapshot::RecordedStatistics> found_;  // by value id: an instruction that runs again replaces what it found
};

}  // namespace stepscope
