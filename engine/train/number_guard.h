// What a session does about numbers that are not finite: which it looks for at full speed, how the first one is traced to
// where it came from and told, and whether the run ends there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/lab/first_cause.h"
#include "engine/lab/side_step.h"
#include "engine/step/stepper.h"

namespace stepscope {

class NumberGuard {
 public:
  explicit NumberGuard(StepContext& context) : context_(context) {}

  // Full speed stops at what the NaN and Inf breakpoints stop at, whatever option break-on says.
  // `everywhere`: in any value of forward and backward pass; and at conditions on values.
  void stopAtBreakpoints(bool on, bool everywhere = false) {
    stops_ = on;
    everywhere_ = on && everywhere;
  }
  // The first loss or gradient that is not finite is traced to where it came from (engine/lab/first_cause.h): its alert says
  // so, and cause() has it. The flight recorder (option record.flight) does so by itself, as far as it looks; with blame()
  // all gradients are read in every step, and all parameters after it. `stop`: the step is taken back and the run ends
  // there, as with option break-on.
  void blame(bool stop);
  const FirstCause* cause() const { return cause_.get(); }
  const FlightRecorder& flight() const { return context_.flight; }
  const std::vector<std::string>& trail() const { return trail_; }  // of the flight recorder, up to the step of the cause
  const std::string& stoppedBy() const { return stoppedBy_; }       // of the newest step; empty: no number

  // --- told by the session
  // A step comes next: what it looks for is written to the context.
  void arm(const TrainOptions& options);
  void beginStep(const TrainOptions& options, const SymbolicStep& step);  // the same, and the newest stop is forgotten
  void stepDone(const SymbolicStep& step);
  void finished(const Stepper& stepper);  // a begun step, at its end
  // A step that could not be taken back: kCancelled where the run ends here, and stoppedBy() says why.
  Status committed(const Stepper& stepper);
  void restart();  // the state is another one: the first number from here is told
  // The step that `stepper` ran was taken back because of a number or a condition. It is walked through to what made it, and
  // then finished unless the run ends here: kCancelled, and stoppedBy() says why. `subject`: the step from the state of its
  // start.
  Status trace(Stepper& stepper, const std::function<SideSubject()>& subject, snapshot::StepRecord& record);
  // A run by hand that a NaN or Inf breakpoint stopped: what it found is an alert too.
  void tellStop(const Stepper& stepper, const snapshot::Position& stop);

 private:
  NumberWatch wanted(const TrainOptions& options) const;
  Result<snapshot::Position> walk(Stepper& stepper, std::vector<snapshot::Breakpoint> breaks) const;
  Status endAt(std::string why);
  bool isCondition(int breakpoint) const;
  snapshot::Alert tellNumber(const Stepper& stepper, const NumberWatch& watch, int instruction, const std::string& what);
  void lookAtWeights(const SymbolicStep& step);
  Status findCause(const Stepper& stepper, const SideSubject& subject);
  bool flies(const Stepper& stepper) const;
  void noteFlight(std::int64_t step);
  void tellOfJump();

  StepContext& context_;
  bool stops_ = false, everywhere_ = false, told_ = false, jumpTold_ = false;
  std::string stoppedBy_;
  std::unique_ptr<WeightWatch> weights_;  // null: numbers are not blamed
  WeightWatch flown_;                     // what the flight recorder saw of them
  bool blameStops_ = false;
  std::unique_ptr<FirstCause> cause_;
  std::vector<std::string> trail_;
};

}  // namespace stepscope
