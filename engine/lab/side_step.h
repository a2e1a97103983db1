// A micro step beside the session's: a plan, a state and a log of its own, so that nothing it does is seen by the run.
//
// Costs a build, and memory for the state and the arena once more.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "engine/build/builder.h"
#include "engine/state/state.h"
#include "engine/step/stepper.h"

namespace stepscope {

// What is run beside. `request` is that of the present plan, with the changes that the caller wants.
struct SideSubject {
  std::shared_ptr<const ImportedModel> model;
  BuildRequest request;
  Batch batch;
  StateSnapshot start;                     // of the step; what it lacks begins as the model says
  std::atomic<bool>* cancelled = nullptr;  // ends the run; taken back by it
  bool keepGradients = true;               // their memory until the end of the step
  bool findLossScale = false;              // where the first batch decides about it
};

class SideStep {
 public:
  // Errors: those of building and binding; kOutOfMemory where the state does not fit into memory twice more.
  static Result<std::unique_ptr<SideStep>> make(const SideSubject& subject);

  // From the start of the step to its end, from the state of the subject. `after` is called after every instruction,
  // `before` before it, and where it returns false the run ends; both may be null.
  Status run(const Batch& batch, const std::function<Status(int)>& after = {}, const std::function<bool(int)>& before = {});

  // One more step, from what the newest run left: its statistics; nothing updates parameters where the rate is 0.
  Status goOn(const Batch& batch);

  Stepper& stepper() { return *stepper_; }
  const Stepper& stepper() const { return *stepper_; }
  const SymbolicStep& step() const { return stepper_->step(); }
  const State& state() const { return context_.state; }
  // The loss of the newest run; NaN when there is none.
  double loss() const;

 private:
  Status runFrom(const Batch& batch, const std::function<Status(int)>& after, const std::function<bool(int)>& before);
  SideStep() : context_(Observer{}) {}

  StepContext context_;
  StateSnapshot start_;
  std::atomic<bool>* cancelled_ = nullptr;
  std::unique_ptr<Stepper> stepper_;
};

}  // namespace stepscope
