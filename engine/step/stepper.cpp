// Binding a plan to the state, and steps at full speed.
#include "engine/step/stepper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/build/schedule.h"
#include "engine/plan/fits.h"
#include "engine/profile/roofline.h"
#include "engine/state/random_weights.h"
#include "engine/step/traced_statistics.h"

namespace stepscope {

Stepper::~Stepper() = default;

Result<std::unique_ptr<Stepper>> Stepper::bind(std::shared_ptr<const Variant> variant, StepContext& context) {
  std::unique_ptr<Stepper> stepper(new Stepper(std::move(variant), context));
  stepper->effects_ = stepper->variant_->effects;
  SS_TRY(stepper->makeExecutor());
  stepper->planCopies();
  return stepper;
}

Status Stepper::makeExecutor() {
  BuildLog::Scope phase(context_.log, "bind");
  State& state = context_.state;
  const Graph& graph = variant_->graph;
  const int threads = step().request.threads;
  if (lacksWeights(graph, state)) {
    BuildLog::Scope child(context_.log, "materialise");
    auto filled = fillMissingWeights(graph, options().seed, threads, state);
    if (!filled) return child.fail(filled.error());
    child.count(*filled);
    context_.log.warn("missing_weights",
                      fmt::format("{} initializers have no data in the file and were filled from seed {}: losses and "
                                  "gradients mean nothing, times and memory do",
                                  *filled, options().seed));
  }
  // The state's tensors are obtained in value order, so that their memory does not depend on the plan.
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph.valueCapacity()); ++i) {
    const Value& value = graph.value({i});
    if (!value.alive || (value.role != ValueRole::kInitializer && value.role != ValueRole::kState)) continue;
    if (auto tensor = state.obtain(value); !tensor) return phase.fail(tensor.error());
  }
  executor_ = std::make_unique<Executor>(
      graph, ExecutionPlan(variant_->plan),
      [this](ValueId id) { return *context_.state.find(variant_->graph.value(id).name); },
      options().referenceKernels ? Backend::kReference : Backend::kCpu);
  const std::int64_t before = residentSetBytes();
  if (Status status = executor_->bind(options().reuse, options().memoryLimit); !status) return phase.fail(status.error());
  // Now workspaces are known, and what kernels and primitives take for themselves.
  const std::int64_t taken = std::max<std::int64_t>(0, residentSetBytes() - before);
  if (Status fits = checkFits(plan(), options().memoryLimit, taken); !fits && !variant_->doesNotFit) {
    doesNotFit_ = fits.error();
    context_.log.warn("does_not_fit", fits.error().message);
  }
  if (options().roofline) {
    BuildLog::Scope child(context_.log, "measure peak");
    peak_ = &cpu::machinePeak(threads);
    effects_["roofline"] = peakText(*peak_);
  }
  phase.count(executor_->boundKernels().size());
  effects_["memory.reuse"] =
      fmt::format("arena of {} bytes, lower bound {} bytes", plan().arenaBytes, plan().lowerBoundBytes);
  return {};
}

void Stepper::planCopies() {
  for (const StateUpdate& update : graph().stateUpdates) {
    const TensorView from = executor_->view(update.next), to = executor_->view(update.state);
    if (from.data && from.data == to.data) continue;
    Copied copied{update, {}, {}, executor_->instructionOf(update.next), false};
    const Value& next = graph().value(update.next);
    copied.byOptimizer = next.producer && graph().node(next.producer).phase == Phase::kOptimizer;
    if (from.data && to.data && from.bytes() == to.bytes() && executor_->staysInPlace(update.next)) {
      copied.from = {static_cast<std::byte*>(from.data), from.bytes()};
      copied.to = {static_cast<std::byte*>(to.data), to.bytes()};
    }
    copied_.push_back(copied);
  }
}

Status Stepper::feed(const Batch& batch) {
  if (variant_->doesNotFit) return tl::make_unexpected(*variant_->doesNotFit);
  if (doesNotFit_) return tl::make_unexpected(*doesNotFit_);
  for (const ValueId id : graph().inputs())
    if (const auto it = batch.arrays.find(graph().value(id).name); it != batch.arrays.end())
      SS_TRY(executor_->setInput(id, it->second.view()));
  if (step().request.forwardOnly) return {};
  const StateCounters& counters = context_.state.counters;
  const OptimizerReport& optimizer = step().optimizer;
  for (const LearningRateInput& rate : optimizer.learningRates) {
    const double factor = scheduleFactor(options(), counters.scheduledUpdates());
    SS_TRY(executor_->setInput(rate.input, Tensor::scalar(DType::kF32, rate.base * factor).view()));
  }
  if (optimizer.update)
    SS_TRY(executor_->setInput(optimizer.update,
                               Tensor::scalar(DType::kI64, static_cast<double>(counters.updates + 1)).view()));
  if (optimizer.firstMicro)
    SS_TRY(executor_->setInput(optimizer.firstMicro, Tensor::scalar(DType::kBool, counters.micro == 0).view()));
  return {};
}

Executor::RunOptions Stepper::runOptions() const {
  const StateCounters& counters = context_.state.counters;
  Executor::RunOptions run;
  run.key = {options().seed, static_cast<std::uint64_t>(counters.step), 0};
  run.update = !step().request.forwardOnly && counters.micro + 1 >= options().accumulate;
  return run;
}

Status Stepper::run(Batch batch, snapshot::StepRecord& record) {
  SS_CHECK(!inStep_);
  SS_TRY(feed(batch));
  batch_ = std::move(batch);
  Executor::RunOptions run = runOptions();
  lastSpans_.clear();
  std::vector<Span> first;
  const bool recorded = options().record == "instructions";
  std::vector<Span>& spans = recorded ? lastSpans_ : first;
  if (recorded || !timed_) {
    spans.reserve(plan().instructions.size());
    run.spans = &spans;
  }
  const std::int64_t begin = monotonicNs();
  beginNotes();
  if (context_.notes.listens())
    run.after = [this](int i) -> Status {
      noteAfter(i);
      return {};
    };
  // A cancelled step is thrown away, so it may only be cancelled before state is written over.
  run.cancel = &context_.cancelled;
  run.cancelBelow = plan().firstStateWrite;
  if (const auto ran = executor_->run(0, count(), run); !ran)
    return tl::make_unexpected(step().request.explain(ran.error()));
  const std::int64_t end = monotonicNs();
  if (!timed_) nameLongInstructions(spans);
  fillRecord(record, begin, end);
  context_.notes.finish(record);
  position_ = count();
  return commit();
}

// What the step's instructions made beside the state becomes the state. `counted`: see traced_statistics.h.
void Stepper::writeNextState(bool updated, bool counted) {
  for (const auto& [update, source, target, instruction, byOptimizer] : copied_) {
    if (byOptimizer && !updated) continue;
    const Value& next = graph().value(update.next);
    if (instruction >= 0 && !executor_->conditionsHold(instruction)) continue;  // its branch of If did not run
    if (!source.empty() && !counted) {
      std::memcpy(target.data(), source.data(), source.size());
      continue;
    }
    const TensorView from = executor_->view(update.next), to = executor_->view(update.state);
    if (counted && writesStatistics(graph(), next)) {
      firstStatistics(graph(), next, from, to);
      continue;
    }
    if (from.data && to.data && from.data != to.data && from.bytes() == to.bytes())
      std::memcpy(to.data, from.data, to.bytes());
  }
}

Status Stepper::commit() {
  const bool updated = runOptions().update;
  const bool first = context_.state.counters.step == options().startStep && !context_.resumed && !step().request.forwardOnly;
  const bool counted = first && traceCountedFirstBatch(*executor_);
  if (counted)
    context_.log.warn("statistics_counted",
                      "running statistics in the file already count the first batch (the exporter traced the model in "
                      "training mode): this step counts it once, from mean 0 and variance 1");
  writeNextState(updated, counted);
  times_.add(lastSpans_, plan().instructions.size());
  context_.state.commit(updated);
  context_.log.setStep(context_.state.counters.step);
  stepped_ = true;
  inStep_ = false;
  undo_.clear();
  edits_.clear();
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
    outcome.loss = executor_->view(loss).data ? elementAsDouble(executor_->view(loss), 0) : 0;
    writeNextState(run.update, false);
    outcome.state = context_.state.copy();
    outcome.ns = std::accumulate(spans.begin(), spans.end(), 0.0, [](double sum, const Span& span) {
      return sum + static_cast<double>(span.end - span.begin);
    });
  }
  context_.state.restore(start);
  if (!ran) return tl::make_unexpected(ran.error());
  return outcome;
}

}  // namespace stepscope
