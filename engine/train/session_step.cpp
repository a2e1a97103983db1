// Running steps: the batch that comes next, the plan that fits it, the ring of states to go back to.
#include <fmt/format.h>

#include "engine/lab/compare_bits.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/breakpoint.h"
#include "engine/train/running.h"

namespace stepscope {

bool Session::inStep() const { return running_ && stepper().inStep(); }

Result<snapshot::StepRecord> Session::step() {
  snapshot::StepRecord record;
  SS_TRY(step(record));
  return record;
}

Status Session::step(snapshot::StepRecord& record) {
  if (!running_ || !data_) return invalid("step: nothing was built; build first");
  if (inStep()) {
    SS_TRY(stepper().finish(record));
  } else {
    SS_TRY(applyOptions());
    SS_ASSIGN(Batch batch, data_->batch(nextStep()));
    SS_TRY(useVariantFor(batch));
    SS_TRY(stepper().run(std::move(batch), record));
  }
  stepDone();
  return {};
}

void Session::stepDone() {
  anchor_.reset();
  recomputeHistory_.add(stepper());
  if (!step_->request.forwardOnly && options_.ringBytes > 0 && ringWanted_)
    ring_.remember(context_.state, options_.ringBytes);
}

Status Session::beginStep() {
  if (!running_ || !data_) return invalid("step: nothing was built; build first");
  SS_TRY(abandonStep());
  SS_TRY(applyOptions());
  anchor_.reset();
  ringWanted_ = true;
  SS_ASSIGN(Batch batch, data_->batch(nextStep()));
  SS_TRY(useVariantFor(batch));
  if (!ring_.endsAt(nextStep())) ring_.remember(context_.state, options_.ringBytes);
  return stepper().begin(std::move(batch));
}

Status Session::ensureStep() { return inStep() ? Status{} : beginStep(); }

Result<snapshot::Position> Session::stepInstructions(int count) {
  SS_TRY(ensureStep());
  return stepper().runTo(stepper().next() + count);
}

Result<snapshot::Position> Session::runTo(int instruction) {
  SS_TRY(ensureStep());
  return stepper().runTo(instruction);
}

Result<snapshot::Position> Session::runToBreak(bool backwards) {
  SS_TRY(ensureStep());
  return stepper().runToBreak(backwards);
}

Result<snapshot::Position> Session::stepPhase(bool backwards) {
  SS_TRY(ensureStep());
  return stepper().stepPhase(backwards);
}

Result<snapshot::StepRecord> Session::finishStep() { return step(); }

Status Session::abandonStep() {
  if (running_) stepper().abandon();
  return {};
}

snapshot::Position Session::position() const {
  if (running_) return stepper().position();
  snapshot::Position position;
  position.set_step(nextStep());
  return position;
}

Status Session::rewind(std::int64_t step) {
  SS_TRY(abandonStep());
  SS_TRY(ring_.rewind(step, context_.state));
  context_.log.setStep(nextStep());
  return {};
}

Result<snapshot::CompareReply> Session::compareBits() {
  if (!running_ || !data_) return invalid("compare: nothing was built; build first");
  SS_TRY(abandonStep());
  SS_TRY(applyOptions());
  SS_ASSIGN(const Batch batch, data_->batch(nextStep()));
  SS_TRY(useVariantFor(batch));
  return stepscope::compareBits(stepper(), context_, batch);
}

Status Session::setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints) {
  int next = 1;
  for (const snapshot::Breakpoint& b : breakpoints) next = std::max(next, b.id() + 1);
  for (snapshot::Breakpoint& b : breakpoints) {
    if (b.id() == 0) b.set_id(next++);
    if (b.condition_case() == snapshot::Breakpoint::kPredicate) SS_TRY(parsePredicate(b.predicate()));
    if (b.condition_case() == snapshot::Breakpoint::CONDITION_NOT_SET)
      return invalid(fmt::format("breakpoint {}: no condition; expected one", b.id()));
  }
  context_.breakpoints = std::move(breakpoints);
  if (running_) pointed_.setBreakpoints(context_.breakpoints, stepper(), stages_);
  tellOfIdlePredicates();
  return {};
}

void Session::watch(std::vector<ValueId> values) {
  context_.watched = std::move(values);
  if (running_) pointed_.setWatched(context_.watched, stepper());
}

// Not an error: another variant, or an option that a pass obeys, may bring the value back.
void Session::tellOfIdlePredicates() {
  if (!running_) return;
  for (const snapshot::Breakpoint& b : context_.breakpoints) {
    if (!b.enabled() || b.condition_case() != snapshot::Breakpoint::kPredicate) continue;
    const auto predicate = parsePredicate(b.predicate());
    if (!predicate || runningGraph().findValue(predicate->value)) continue;
    context_.log.warn("breakpoint_without_value",
                      fmt::format("breakpoint {}: '{}' stops nowhere: the step that runs has no value '{}'", b.id(),
                                  b.predicate(), toUtf8(predicate->value)));
  }
}

}  // namespace stepscope
