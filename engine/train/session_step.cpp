// Running steps: the batch that comes next, the plan that fits it, the ring of states to go back to.
#include <fmt/format.h>

#include <algorithm>

#include "engine/lab/compare_bits.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/breakpoint.h"
#include "engine/train/session.h"
#include "engine/train/session_alerts.h"

namespace stepscope {

Status Session::needsBuild(std::string_view what) const {
  if (built() && feed_.opened()) return {};
  return invalid(fmt::format("{}: nothing was built; build first", what));
}

// The batch of the coming step; the plan that fits it runs.
Result<Batch> Session::fittingBatch() {
  SS_ASSIGN(Batch batch, feed_.batch(counters().entry));
  SS_TRY(plans_.useFor(batch));
  return batch;
}

Result<snapshot::StepRecord> Session::step() {
  snapshot::StepRecord record;
  SS_TRY(step(record));
  return record;
}

Status Session::step(snapshot::StepRecord& record, bool more) {
  SS_TRY(needsBuild("step"));
  context_.watched.countHistograms(!more);
  numbers_.beginStep(options_, *plans_.step());
  if (inStep()) {
    SS_TRY(stepper().finish(record));
    numbers_.finished(stepper());
  } else {
    SS_TRY(applyOptions());
    SS_ASSIGN(Batch batch, fittingBatch());
    SS_ASSIGN(const bool done, stepper().run(std::move(batch), record));
    if (done)
      SS_TRY(numbers_.committed(stepper()));
    else
      SS_TRY(numbers_.trace(
          stepper(), [this] { return lab_.begunStep(); }, record));
  }
  anchor_.reset();
  numbers_.stepDone(*plans_.step());
  lab_.stepDone();
  if (!plans_.step()->request.forwardOnly && options_.ringBytes > 0 && ringWanted_)
    ring_.remember(context_.state, options_.ringBytes);
  return {};
}

Status Session::beginStep() {
  SS_TRY(needsBuild("step"));
  SS_TRY(abandonStep());
  SS_TRY(applyOptions());
  anchor_.reset();
  ringWanted_ = true;
  if (context_.ranks) context_.ranks->keepReceived(true);  // going back asks for it again
  numbers_.arm(options_);
  SS_ASSIGN(Batch batch, fittingBatch());
  if (!ring_.endsAt(nextStep())) ring_.remember(context_.state, options_.ringBytes);
  return stepper().begin(std::move(batch));
}

Result<snapshot::Position> Session::stepInstructions(int count) {
  SS_TRY(ensureStep());
  const int last = stepper().count();
  return stepper().runTo(stepper().next() + std::clamp(count, -last, last));
}

Result<snapshot::Position> Session::runTo(int instruction) {
  SS_TRY(ensureStep());
  return stepper().runTo(instruction);
}

Result<snapshot::Position> Session::runToBreak(bool backwards) {
  SS_TRY(ensureStep());
  SS_ASSIGN(snapshot::Position stop, stepper().runToBreak(backwards));
  numbers_.tellStop(stepper(), stop);
  return stop;
}

Result<snapshot::Position> Session::stepPhase(bool backwards) {
  SS_TRY(ensureStep());
  return stepper().stepPhase(backwards);
}

Status Session::abandonStep() {
  if (built()) stepper().abandon();
  return {};
}

snapshot::Position Session::position() const {
  if (built()) return stepper().position();
  snapshot::Position position;
  position.set_step(nextStep());
  return position;
}

Status Session::rewind(std::int64_t step) {
  SS_TRY(abandonStep());
  SS_TRY(ring_.rewind(step, context_.state));
  ++context_.places;
  context_.watched.takeBackFrom(nextStep());
  numbers_.restart();
  context_.log.takeBackFrom(nextStep());
  return {};
}

Result<snapshot::CompareReply> Session::compareBits() {
  SS_TRY(needsBuild("compare"));
  SS_TRY(abandonStep());
  SS_TRY(applyOptions());
  SS_ASSIGN(const Batch batch, fittingBatch());
  return stepscope::compareBits(stepper(), context_, batch);
}

Status Session::setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints) {
  constexpr int kLargestId = 1'000'000'000;
  int next = 1;
  for (const snapshot::Breakpoint& b : breakpoints) {
    if (b.id() < 0 || b.id() > kLargestId)
      return invalid(fmt::format("breakpoint {}: its number; expected 0 (a new one) to {}", b.id(), kLargestId));
    next = std::max(next, b.id() + 1);
  }
  for (snapshot::Breakpoint& b : breakpoints) {
    if (b.id() == 0) b.set_id(next++);
    if (b.condition_case() == snapshot::Breakpoint::kPredicate) SS_TRY(parsePredicate(b.predicate()));
    if (b.condition_case() == snapshot::Breakpoint::CONDITION_NOT_SET)
      return invalid(fmt::format("breakpoint {}: no condition; expected one", b.id()));
  }
  context_.breakpoints = std::move(breakpoints);
  if (built()) plans_.pointed().setBreakpoints(context_.breakpoints, stepper(), plans_.stages());
  if (built()) tellOfIdlePredicates(context_.breakpoints, runningGraph(), context_.log);
  return {};
}

void Session::watch(const std::vector<ValueId>& values) {
  context_.watched.watch(values);
  if (!built()) return;
  plans_.pointed().setWatched(values, stepper());
  stepper().noteWatched();
}

}  // namespace stepscope
