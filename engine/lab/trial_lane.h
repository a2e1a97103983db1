// A plan that is tried, with what belongs to it: its stepper, the state it steps from, its batches, and what was measured of
// it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/lab/trials.h"
#include "engine/step/flight_recorder.h"
#include "engine/step/stepper.h"

namespace stepscope {

class TrialLane {
 public:
  // Both must outlive it. `shared`: holds the subject's state, which lanes put back before each of their steps.
  TrialLane(const TrialSubject& subject, StepContext& shared) : subject_(&subject), context_(&shared) {}
  TrialLane(const TrialLane&) = delete;
  TrialLane& operator=(const TrialLane&) = delete;

  // Builds the plan under these options; `otherBatch`: for batches of its own. Errors: those of building.
  Status plan(const TrainOptions& options, bool otherBatch);
  // Another state than the shared one: with parameters of another type that one would change under the step as it is.
  Status giveOwnState();
  // Makes the kernels. `listens`: with a flight recorder where the options have one.
  Status bind(bool listens);

  // One step from the start, of the update too; what it wrote stays until the next one. `after` is called behind every
  // instruction, and then no flight recorder listens. Returns nanoseconds, `waits` included. Errors: those of the step.
  Result<double> step(const Batch& batch, std::function<Status(int instruction)> after = {});

  const Variant& variant() const { return *variant_; }
  const SymbolicStep& symbolic() const { return *variant_->step; }
  const State& state() const { return context_->state; }
  // Of the subject, or its own.
  const std::vector<Batch>& batches() const { return batches_.empty() ? subject_->batches : batches_; }
  int threads() const { return symbolic().request.threads; }

  // Of the last step: its loss, NaN where it cannot be read, and the factor of its gradients.
  double loss() const;
  double gradientFactor() const;
  // The gradients that are complete behind this instruction of a step: name of the parameter and value.
  using EachGradient = std::function<Status(const std::string& name, const Tensor& gradient)>;
  Status gradientsAfter(int instruction, const EachGradient& each) const;

  std::int64_t plannedPeak() const { return stepper_->executor().plannedBytes(); }
  std::int64_t measuredPeak() const;
  // Nanoseconds by the roofline, for each sample.
  double expectedNs() const;

  std::int64_t samples = 1;  // by which times are divided
  double lastNs = 0;         // of a step
  double waits = 0;          // a share of its time that it is slowed down by

 private:
  void putBack();
  Status settleLossScale();

  const TrialSubject* subject_;
  std::unique_ptr<StepContext> own_;  // where its parameters have another type; else the state is shared
  StepContext* context_;
  std::shared_ptr<const Variant> variant_;
  std::unique_ptr<Stepper> stepper_;
  LossScale scale_;
  std::vector<Batch> batches_;  // empty: those of the subject
  FlightRecorder flight_;       // on where it is tried
  std::optional<FlightPlan> flown_;
  std::int64_t steps_ = 0;  // that the recorder saw: every one looks at other parts
};

}  // namespace stepscope
