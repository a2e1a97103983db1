// Running steps: the batch that comes next, the plan that fits it, the ring of states to go back to.
#include <fmt/format.h>

#include <algorithm>

#include "engine/lab/compare_bits.h"
#include "engine/lab/first_cause.h"
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
  stoppedBy_.clear();
  context_.numbers = numbersToWatch();
  if (weightWatch_ && !weightWatch_->begun()) lookAtWeights();
  if (inStep()) {
    SS_TRY(stepper().finish(record));
    if (const std::string& what = stepper().badNumber(); !what.empty() && !toldOfNumbers_) {
      toldOfNumbers_ = true;
      context_.log.raiseAt(numberAlert(stepper(), context_.numbers, -1, what));
    }
  } else {
    SS_TRY(applyOptions());
    SS_ASSIGN(Batch batch, data_->batch(nextStep()));
    SS_TRY(useVariantFor(batch));
    SS_ASSIGN(const bool done, stepper().run(std::move(batch), record));
    if (!done) SS_TRY(lookForNumber(record));
  }
  stepDone();
  return {};
}

// The first is told; of those that follow from it nobody learns anything.
NumberWatch Session::numbersToWatch() const {
  NumberWatch watch;
  const std::string& wish = options_.breakOn;
  if (wish == "off" && !stopOnNumbers_ && !weightWatch_) return watch;
  watch.nan = wish.empty() || wish == "off" || wish.find("nan") != std::string::npos;
  watch.inf = wish.empty() || wish == "off" || wish.find("inf") != std::string::npos;
  watch.stop = !wish.empty() && wish != "off";
  if (stopOnNumbers_) {
    const auto set = [this](auto kind) {
      return std::any_of(context_.breakpoints.begin(), context_.breakpoints.end(),
                         [kind](const auto& b) { return b.enabled() && b.condition_case() == kind; });
    };
    const bool nan = set(snapshot::Breakpoint::kNan), inf = set(snapshot::Breakpoint::kNewInf);
    watch.stop = nan || inf;
    if (watch.stop) {
      watch.nan = nan;
      watch.inf = inf;
      watch.everywhere = everywhere_;
    }
  }
  if (weightWatch_) {
    watch.nan = watch.inf = true;
    watch.stop = true;  // all gradients are read; blameStops_ says what follows
  }
  if ((!watch.stop || (weightWatch_ && !blameStops_)) && toldOfNumbers_) return {};
  return watch;
}

void Session::blameNumbers(bool stop) {
  weightWatch_ = std::make_unique<WeightWatch>();
  blameStops_ = stop;
  cause_.reset();
}

void Session::lookAtWeights() {
  if (!weightWatch_ || toldOfNumbers_) return;
  std::vector<std::string> trained;
  for (const ValueId id : step_->trained) trained.push_back(step_->graph.value(id).name);
  weightWatch_->look(context_.state, trained, nextStep() - 1);
}

// The state is that of the step's start.
Status Session::findCause() {
  SideSubject subject;
  subject.model = model_;
  subject.request = buildRequest(options_);
  subject.batch = stepper().batch();
  subject.start = context_.state.copy();
  subject.cancelled = &context_.cancelled;
  auto found = findFirstCause(subject, *weightWatch_);
  if (!found) {
    if (found.error().code == ErrorCode::kCancelled) return tl::make_unexpected(found.error());
    context_.log.warn("cause_unknown", "the step could not be replayed to find its cause: " + found.error().message);
    return {};
  }
  if (!*found) return {};
  cause_ = std::make_unique<FirstCause>(std::move(**found));
  const Phase phase = cause_->backward ? Phase::kBackward : Phase::kForward;
  for (int i = 0; i < stepper().count() && cause_->instruction < 0; ++i) {
    const Instruction& instruction = stepper().plan().instructions[static_cast<std::size_t>(i)];
    if (instruction.kind == InstructionKind::kKernel && instruction.phase == phase &&
        importedNodeOf(runningGraph(), instruction.node) == cause_->node)
      cause_->instruction = i;
  }
  return {};
}

// The step was taken back because of a number. It is walked through to what made it.
Status Session::lookForNumber(snapshot::StepRecord& record) {
  Stepper& step = stepper();
  const NumberWatch watch = context_.numbers;
  const std::string what = step.badNumber();
  const bool ofValue = step.badNumberOfValue();
  if (weightWatch_) SS_TRY(findCause());
  SS_TRY(step.begin(Batch(step.batch())));
  context_.numbers = {};
  std::vector<snapshot::Breakpoint> breaks;
  for (const snapshot::Breakpoint& b : context_.breakpoints)
    if (b.enabled() && ((watch.nan && b.nan()) || (watch.inf && b.new_inf()))) breaks.push_back(b);
  if (breaks.empty()) {
    if (watch.nan) breaks.emplace_back().set_nan(true);
    if (watch.inf) breaks.emplace_back().set_new_inf(true);
    for (snapshot::Breakpoint& b : breaks) b.set_enabled(true);
  }
  breaks.swap(context_.breakpoints);
  const auto stop = step.runToBreak(false);
  breaks.swap(context_.breakpoints);
  if (!stop) return tl::make_unexpected(stop.error());
  if (stop->stopped_by() == "cancelled") return fail(ErrorCode::kCancelled, "step: cancelled");
  // What no instruction makes anew, such as an infinity that a mask explains, is the loss itself.
  const bool found = step.next() < step.count();
  step.excuseInfinities();
  if (!found && ofValue) return step.finish(record);
  snapshot::Alert alert = numberAlert(step, watch, found ? step.next() - 1 : -1, fmt::format("{}", what));
  if (cause_) {
    if (cause_->instruction < 0) cause_->instruction = alert.instruction();
    alert.set_message(cause_->text());
    if (!cause_->rows.empty()) alert.set_sample(cause_->rows.front());
  }
  toldOfNumbers_ = true;
  context_.log.raiseAt(alert);
  if (!watch.stop || (weightWatch_ && !blameStops_)) return step.finish(record);
  stoppedBy_ = fmt::format("step {}: {}: {}", alert.step(), what, alert.message());
  return fail(ErrorCode::kCancelled, stoppedBy_);
}

// A run by hand that a NaN or Inf breakpoint stopped: what it found is an alert too.
Result<snapshot::Position> Session::tellOfNumber(Result<snapshot::Position> stop) {
  if (!stop || !stop->in_step() || stop->breakpoint() == 0) return stop;
  const auto by = std::find_if(context_.breakpoints.begin(), context_.breakpoints.end(),
                               [&](const auto& b) { return b.id() == stop->breakpoint(); });
  if (by == context_.breakpoints.end() || !(by->nan() || by->new_inf())) return stop;
  NumberWatch watch;
  watch.nan = by->nan();
  watch.inf = by->new_inf();
  context_.log.raiseAt(numberAlert(stepper(), watch, stepper().next() - 1, stop->stopped_by()));
  return stop;
}

void Session::stepDone() {
  anchor_.reset();
  lookAtWeights();
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
  context_.numbers = numbersToWatch();
  SS_ASSIGN(Batch batch, data_->batch(nextStep()));
  SS_TRY(useVariantFor(batch));
  if (!ring_.endsAt(nextStep())) ring_.remember(context_.state, options_.ringBytes);
  return stepper().begin(std::move(batch));
}

Status Session::ensureStep() { return inStep() ? Status{} : beginStep(); }

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
  return tellOfNumber(stepper().runToBreak(backwards));
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
  ++context_.places;
  toldOfNumbers_ = false;
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
