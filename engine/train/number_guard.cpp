#include "engine/train/number_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/snapshot/utf8.h"

namespace stepscope {

void NumberGuard::blame(bool stop) {
  weights_ = std::make_unique<WeightWatch>();
  blameStops_ = stop;
  cause_.reset();
}

// The first is told; of those that follow from it nobody learns anything.
NumberWatch NumberGuard::wanted(const TrainOptions& options) const {
  NumberWatch watch;
  const std::string& wish = options.breakOn;
  if (wish == "off" && !stops_ && !weights_) return watch;
  watch.nan = wish.empty() || wish == "off" || wish.find("nan") != std::string::npos;
  watch.inf = wish.empty() || wish == "off" || wish.find("inf") != std::string::npos;
  watch.stop = !wish.empty() && wish != "off";
  if (stops_) {
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
  if (weights_) {
    watch.nan = watch.inf = true;
    watch.stop = true;  // all gradients are read; blameStops_ says what follows
  }
  if ((!watch.stop || (weights_ && !blameStops_)) && told_) return {};
  return watch;
}

void NumberGuard::arm(const TrainOptions& options) {
  context_.numbers = wanted(options);
  context_.conditionsStop = stops_;
}

void NumberGuard::beginStep(const TrainOptions& options, const SymbolicStep& step) {
  stoppedBy_.clear();
  arm(options);
  if (weights_ && !weights_->begun()) lookAtWeights(step);
}

void NumberGuard::stepDone(const SymbolicStep& step) {
  lookAtWeights(step);
  noteFlight(context_.state.counters.step - 1);
  tellOfJump();
}

void NumberGuard::restart() {
  told_ = jumpTold_ = false;
  flown_ = {};
  context_.flight.forget();
}

bool NumberGuard::flies(const Stepper& stepper) const {
  return context_.flight.on() && stepper.executor().device().onHost();
}

// Parameters are looked at when a step begins: what they are then is what the step before left.
void NumberGuard::noteFlight(std::int64_t step) {
  if (const double largest = context_.flight.largestParameter(step); largest >= 0) flown_.note(largest, step - 1);
}

// Once, like the first number that is not finite: what follows a jump is not news.
void NumberGuard::tellOfJump() {
  const FlightJump* jump = context_.flight.jump();
  if (!jump || jumpTold_ || told_) return;
  jumpTold_ = true;
  std::string text = fmt::format("the largest element of all gradients jumped from {:.4g} to {:.4g}", jump->gradientBefore,
                                 jump->gradientNow);
  if (!jump->of.empty())
    text += fmt::format("; first in the step: {} '{}', {:.4g} after at most {:.4g}", jump->kind, toUtf8(jump->of), jump->now,
                        jump->before);
  if (const auto since = flown_.explodedSince()) text += fmt::format("; weights exploded with step {}", *since);
  context_.log.warn("gradient_jump", std::move(text), context_.state.counters.step - 1);
}

void NumberGuard::finished(const Stepper& stepper) {
  const std::string& what = stepper.numbers().found();
  if (what.empty() || told_) return;
  told_ = true;
  context_.log.raise(numberAlert(stepper, context_.numbers, -1, what));
}

Status NumberGuard::committed(const Stepper& stepper) {
  const NumberWatch watch = context_.numbers;
  const bool first = !told_;
  finished(stepper);
  if (!first || !told_ || !watch.stop || (weights_ && !blameStops_)) return {};
  stoppedBy_ = fmt::format("step {}: {}; with ranks.shard=parameters a step is not taken back",
                           context_.state.counters.step - 1, stepper.numbers().found());
  return fail(ErrorCode::kCancelled, stoppedBy_);
}

void NumberGuard::lookAtWeights(const SymbolicStep& step) {
  if (!weights_ || told_) return;
  std::vector<std::string> trained;
  for (const ValueId id : step.trained) trained.push_back(step.graph.value(id).name);
  weights_->look(context_.state, trained, context_.state.counters.step - 1);
}

// The state is that of the step's start.
Status NumberGuard::findCause(const Stepper& stepper, const SideSubject& subject) {
  noteFlight(context_.state.counters.step);
  trail_ = context_.flight.trail();
  auto found = findFirstCause(subject, weights_ ? *weights_ : flown_);
  if (!found) {
    if (found.error().code == ErrorCode::kCancelled) return tl::make_unexpected(found.error());
    context_.log.warn("cause_unknown", "the step could not be replayed to find its cause: " + found.error().message,
                      context_.state.counters.step);
    return {};
  }
  if (!*found) return {};
  cause_ = std::make_unique<FirstCause>(std::move(**found));
  const Phase phase = cause_->backward ? Phase::kBackward : Phase::kForward;
  for (int i = 0; i < stepper.count() && cause_->instruction < 0; ++i) {
    const Instruction& instruction = stepper.plan().instructions[static_cast<std::size_t>(i)];
    if (instruction.kind == InstructionKind::kKernel && instruction.phase == phase &&
        importedNodeOf(stepper.graph(), instruction.node) == cause_->node)
      cause_->instruction = i;
  }
  return {};
}

// To the first of these breakpoints or, where full speed stops at them, of the conditions on values.
Result<snapshot::Position> NumberGuard::walk(Stepper& stepper, std::vector<snapshot::Breakpoint> breaks) const {
  for (const snapshot::Breakpoint& b : context_.breakpoints)
    if (context_.conditionsStop && b.enabled() && b.condition_case() == snapshot::Breakpoint::kPredicate)
      breaks.push_back(b);
  breaks.swap(context_.breakpoints);
  auto stop = stepper.runToBreak(false);
  breaks.swap(context_.breakpoints);
  if (stop && stop->stopped_by() == "cancelled") return fail(ErrorCode::kCancelled, "step: cancelled");
  return stop;
}

Status NumberGuard::endAt(std::string why) {
  stoppedBy_ = std::move(why);
  return fail(ErrorCode::kCancelled, stoppedBy_);
}

// The NaN and Inf breakpoints that are on; where none is, what the run looks for.
static std::vector<snapshot::Breakpoint> numberBreaks(const StepContext& context, const NumberWatch& watch) {
  std::vector<snapshot::Breakpoint> breaks;
  for (const snapshot::Breakpoint& b : context.breakpoints)
    if (b.enabled() && ((watch.nan && b.nan()) || (watch.inf && b.new_inf()))) breaks.push_back(b);
  if (!breaks.empty()) return breaks;
  if (watch.nan) breaks.emplace_back().set_nan(true);
  if (watch.inf) breaks.emplace_back().set_new_inf(true);
  for (snapshot::Breakpoint& b : breaks) b.set_enabled(true);
  return breaks;
}

Status NumberGuard::trace(Stepper& stepper, const std::function<SideSubject()>& subject, snapshot::StepRecord& record) {
  const NumberWatch watch = context_.numbers;
  const std::string what = stepper.numbers().found();
  const bool ofValue = stepper.numbers().ofValue();
  const bool ends = watch.stop && (!weights_ || blameStops_);
  // A number that stops nobody is told when the step ends where a condition stops it before.
  const bool traced = !what.empty() && (ends || !stepper.numbers().conditions().hold());
  if (traced) cause_.reset();
  if (traced && (weights_ || flies(stepper))) SS_TRY(findCause(stepper, subject()));
  SS_TRY(stepper.begin(Batch(stepper.batch())));
  context_.numbers = {};
  if (traced) {
    SS_ASSIGN(const snapshot::Position stop, walk(stepper, numberBreaks(context_, watch)));
    if (isCondition(stop.breakpoint())) return endAt(stop.stopped_by());
    // What no instruction makes anew, such as an infinity that a mask explains, is the loss itself.
    const bool found = stepper.next() < stepper.count();
    stepper.excuseInfinities();
    if (found || !ofValue) {
      const snapshot::Alert alert = tellNumber(stepper, watch, found ? stepper.next() - 1 : -1, what);
      if (ends) return endAt(fmt::format("step {}: {}: {}", alert.step(), what, alert.message()));
    }
  }
  if (!stepper.numbers().conditions().hold()) return stepper.finish(record);
  SS_ASSIGN(const snapshot::Position stop, walk(stepper, {}));
  return isCondition(stop.breakpoint()) ? endAt(stop.stopped_by()) : stepper.finish(record);
}

bool NumberGuard::isCondition(int breakpoint) const {
  return breakpoint != 0 && std::ranges::any_of(context_.breakpoints, [breakpoint](const snapshot::Breakpoint& b) {
           return b.id() == breakpoint && b.condition_case() == snapshot::Breakpoint::kPredicate;
         });
}

// With the cause, where one was found.
snapshot::Alert NumberGuard::tellNumber(const Stepper& stepper, const NumberWatch& watch, int instruction,
                                        const std::string& what) {
  snapshot::Alert alert = numberAlert(stepper, watch, instruction, what);
  if (cause_) {
    if (cause_->instruction < 0) cause_->instruction = alert.instruction();
    alert.set_message(weights_ ? cause_->text() : fmt::format("{}; first cause: {}", alert.message(), cause_->text()));
    if (!cause_->rows.empty()) alert.set_sample(cause_->rows.front());
  }
  told_ = true;
  context_.log.raise(alert);
  return alert;
}

void NumberGuard::tellStop(const Stepper& stepper, const snapshot::Position& stop) {
  if (!stop.in_step() || stop.breakpoint() == 0) return;
  const auto by = std::find_if(context_.breakpoints.begin(), context_.breakpoints.end(),
                               [&](const auto& b) { return b.id() == stop.breakpoint(); });
  if (by == context_.breakpoints.end() || !(by->nan() || by->new_inf())) return;
  NumberWatch watch;
  watch.nan = by->nan();
  watch.inf = by->new_inf();
  told_ = true;
  context_.log.raise(numberAlert(stepper, watch, stepper.next() - 1, stop.stopped_by()));
}

}  // namespace stepscope
