// Steps at full speed.
#include "engine/step/stepper.h"

#include <algorithm>
#include <numeric>

#include "engine/build/loss_scale.h"
#include "engine/build/round.h"
#include "engine/profile/device_work.h"
#include "engine/step/scaled_gradients.h"
#include "engine/step/step_alerts.h"
#include "engine/step/traced_statistics.h"

namespace stepscope {
namespace {
constexpr std::int64_t kSoonNs = 200'000'000;  // a step that took no longer is not cancelled within: its values stay

// The range of a step, which ends however the step does.
class StepRange {
 public:
  StepRange(NvtxRanges* ranges, std::int64_t number) : ranges_(ranges) {
    if (ranges_) ranges_->beginStep(number);
  }
  ~StepRange() {
    if (ranges_) ranges_->endStep();
  }
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;

 private:
  NvtxRanges* const ranges_;
};

}  // namespace

// Whether a step with numbers that are not finite is replayed to find where they come from. The other ranks gather
// parameters once, and keeping what came would take the memory that having parts of them saves.
static bool takesBack(const SymbolicStep& step) {
  return step.request.ranks == 1 || step.request.options.rankShard != "parameters";
}

Result<bool> Stepper::run(Batch batch, snapshot::StepRecord& record) {
  SS_CHECK(!inStep_);
  const bool endsSoon = timed_ && lastNs_ < kSoonNs && !context_.ranks;
  if (endsSoon && context_.cancelled.exchange(false)) return fail(ErrorCode::kCancelled, "step: cancelled before it began");
  SS_TRY(checkRound(options(), context_.state.counters));
  SS_TRY(findLossScale(batch));
  SS_TRY(feed(batch));
  batch_ = std::move(batch);
  Executor::RunOptions run = runOptions();
  lastSpans_.clear();
  watchers_.activity = {};
  std::vector<Span> first;
  const bool recorded = options().record == "instructions";
  std::vector<Span>& spans = recorded ? lastSpans_ : first;
  if (recorded || !timed_) {
    spans.reserve(plan().instructions.size());
    run.spans = &spans;
    if (recorded) {
      run.activity = &watchers_.activity;
      run.rung = rungCalled(options().recordRung);
    }
  }
  run.marks = watchers_.ranges(graph(), plan());
  context_.processor.begin();
  const std::int64_t begin = monotonicNs();
  const StepRange range(watchers_.ranges(graph(), plan()), context_.state.counters.step);
  beginNotes();
  watchers_.beginFlight(*executor_);
  ConditionWatch& conditions = judge_.conditions();
  static const std::vector<snapshot::Breakpoint> none;
  conditions.begin(*executor_, context_.conditionsStop ? context_.breakpoints : none);
  if (context_.notes.listens() || context_.flight.listens() || !context_.watched.empty() || context_.numbers.everywhere ||
      conditions.any())
    run.after = [this](int i) -> Status {
      noteAfter(i);
      return {};
    };
  // A cancelled step is thrown away, so it may only be cancelled before state is written over.
  run.cancel = endsSoon ? nullptr : &context_.cancelled;
  run.cancelBelow = plan().firstStateWrite;
  run.restoreState = true;
  run.collectives = context_.ranks ? &collectives_ : nullptr;
  if (followsNumbers()) run.begins = [this](int i) { judge_.beforeExchange(*executor_, i); };
  const auto stops = [&] { return (!judge_.found().empty() || conditions.hold()) && takesBack(step()); };
  int at = 0;
  // A step that takes long is run in parts, between which it tells how far it is.
  const bool parts = (!timed_ || lastNs_ > StepWatchers::kTellNs) && context_.log.observer().progress &&
                     executor_->device().facts().immediate;
  const int part = parts ? std::max(1, count() / 64) : count();
  watchers_.beginProgress();
  const auto runUntil = [&](int end) -> Status {
    while (at < end) {
      const int to = std::min(end, at + part);
      run.leavesRunning = to < end;
      SS_ASSIGN(at, executor_->run(at, to, run));
      if (at < to) break;
      if (parts) watchers_.tellProgress(*executor_, at);
    }
    return {};
  };
  const auto ran = [&]() -> Status {
    if (followsNumbers() || conditions.any()) {
      if (context_.numbers.any() || conditions.any()) keepState(plan().firstOptimizer);
      SS_TRY(runUntil(plan().firstOptimizer));
      if (followsNumbers()) judge_.judge(*executor_);
      if (stops()) return {};
    }
    if (conditions.ofUpdate(plan())) keepState(count());
    if (changesCommits()) {
      SS_TRY(runUntil(plan().firstCommit));
      SS_TRY(beforeCommits());
    }
    return runUntil(count());
  }();
  const bool takenBack = stops();
  if (!ran || takenBack) {
    context_.flight.drop();
    context_.watched.drop();
    collectives_.leave();
  }
  if (!ran || takenBack) ++context_.places;  // what is in memory is of no step that stands
  if (!ran) return tl::make_unexpected(step().request.explain(ran.error()));
  if (takenBack) {
    context_.state.rollback();
    return false;
  }
  const std::int64_t end = monotonicNs();
  lastNs_ = end - begin;
  if (!timed_) nameLongInstructions(*executor_, spans, options().longMs, context_.log);
  timed_ = true;
  fillRecord(record, begin, end);
  if (stepped_) tellOfIssue(*executor_, context_.log);
  context_.notes.finish(record);
  context_.flight.finish(end - begin);
  record.set_flight_ns(context_.flight.spentNs());
  position_ = count();
  SS_TRY(commit(record));
  return true;
}

bool Stepper::followsNumbers() const {
  return !step().request.forwardOnly && (context_.numbers.any() || options().record != "off");
}

// What instructions below `end` write over, for a step that is taken back: running statistics, and parameters where it is
// taken back after the update.
void Stepper::keepState(int end) {
  const auto [names, isNew] = stateBelow_.try_emplace(end);
  for (int i = 0; isNew && i < end; ++i)
    for (const int b : plan().instructions[static_cast<std::size_t>(i)].outputs) {
      if (b < 0) continue;
      const Buffer& root = plan().buffers[static_cast<std::size_t>(plan().root(b))];
      if (root.home == Home::kState) names->second.push_back(graph().value(root.value).name);
    }
  for (const std::string& name : names->second) context_.state.keep(name);
}

// The first step of a run whose state comes from the model's file.
bool Stepper::countsFirstBatch() const {
  const auto passed = options().passes.find("traced_statistics");
  const bool judge = passed == options().passes.end() || passed->second;
  return judge && context_.state.counters.step == options().startStep && !context_.resumed && !step().request.forwardOnly &&
         writesStatistics(graph()) && (!context_.ranks || context_.ranks->rank() == 0);
}

bool Stepper::changesCommits() const {
  return countsFirstBatch() || (context_.ranks && !step().request.forwardOnly && writesStatistics(graph()));
}

Status Stepper::beforeCommits() {
  if (countsFirstBatch()) SS_TRY(countFirstBatchOnce());
  return context_.ranks ? joinStatistics() : Status{};
}

// See traced_statistics.h. Of ranks it is the first one that has the first batch.
Status Stepper::countFirstBatchOnce() {
  SS_ASSIGN(const bool counted, traceCountedFirstBatch(*executor_));
  if (!counted) return {};
  context_.log.warn("statistics_counted",
                    "running statistics in the file already count the first batch (the exporter traced the model in "
                    "training mode): this step counts it once, from mean 0 and variance 1",
                    context_.state.counters.step);
  return writeFirstStatistics(*executor_);
}

Status Stepper::commit(snapshot::StepRecord& record) {
  const bool ends = roundEnds(), skipped = skipsUpdate();
  times_.add(lastSpans_, plan().instructions.size());
  LossScale& scale = context_.state.counters.lossScale;
  if (ends && step().optimizer.lossScale) {
    const LossScale next = lossScaleAfter(options(), scale, !skipped);
    if (skipped)
      tellOfSkippedUpdate(*executor_, step(), context_, next);
    else
      vanished_ = tellOfVanishedGradients(*executor_, step(), context_, vanished_);
    scale = next;
  }
  StateCounters& counters = context_.state.counters;
  counters.willUpdate(step().optimizer.states);
  if (ends && !skipped) tellWhereScheduleEnded(options(), context_);
  if (!ends && step().optimizer.firstMicro) {
    counters.roundOf = options().accumulate;
    counters.sumScale = lossScaleFactor(options(), scale);
  }
  context_.state.commit(ends, ends && !skipped);
  stepped_ = true;
  inStep_ = false;
  undo_.clear();
  edits_.clear();
  context_.watched.commit(
      graph(), [this](ValueId id) { return value(id); }, record);
  return {};
}

Result<StepOutcome> Stepper::trial(const Batch& batch) {
  SS_CHECK(!inStep_);
  const StateSnapshot start = context_.state.copy();
  SS_TRY(feed(batch));
  std::vector<Span> spans;
  spans.reserve(plan().instructions.size());
  Executor::RunOptions run = runOptions();
  run.spans = &spans;
  run.cancel = &context_.cancelled;
  const auto ran = executor_->run(0, count(), run);
  StepOutcome outcome;
  if (ran) {
    const ValueId loss = step().loss;
    const auto contents = executor_->read(loss);
    outcome.loss = contents ? elementAsDouble(contents->view(), 0) : 0;
    outcome.state = context_.state.copy();
    outcome.ns = std::accumulate(spans.begin(), spans.end(), 0.0, [](double sum, const Span& span) {
      return sum + static_cast<double>(span.end - span.begin);
    });
  }
  context_.state.restore(start);
  ++context_.places;
  if (!ran) return tl::make_unexpected(ran.error());
  return outcome;
}

}  // namespace stepscope
