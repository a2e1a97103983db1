// Binding a plan to the state, and steps at full speed.
#include "engine/step/stepper.h"

#include <fmt/format.h>

#include <algorithm>
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
  return stepper;
}

const KeyIndex& Stepper::keys() const {
  if (!keys_) keys_ = std::make_unique<KeyIndex>(graph());
  return *keys_;
}

Status Stepper::makeExecutor() {
  BuildLog::Scope phase(context_.log, "bind");
  State& state = context_.state;
  const Graph& graph = variant_->graph;
  auto device = findDevice(options().device);
  if (!device) return phase.fail(device.error());
  if (Status brought = state.bring(**device); !brought) return phase.fail(brought.error());
  undo_.setDevice(**device);
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
      options().referenceKernels ? Backend::kReference : Backend::kCpu, *device);
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

Status Stepper::feed(const Batch& batch) {
  if (variant_->doesNotFit) return tl::make_unexpected(*variant_->doesNotFit);
  if (doesNotFit_) return tl::make_unexpected(*doesNotFit_);
  SS_TRY(context_.state.bring(executor_->device()));
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
  run.restoreState = true;
  const int commits = countsFirstBatch() ? plan().firstCommit : count();
  auto ran = executor_->run(0, commits, run);
  if (ran && commits < count()) {
    SS_TRY(countFirstBatchOnce());
    ran = executor_->run(commits, count(), run);
  }
  if (!ran) return tl::make_unexpected(step().request.explain(ran.error()));
  const std::int64_t end = monotonicNs();
  if (!timed_) nameLongInstructions(spans);
  fillRecord(record, begin, end);
  context_.notes.finish(record);
  position_ = count();
  return commit();
}

// The first step of a run whose state comes from the model's file.
bool Stepper::countsFirstBatch() const {
  return context_.state.counters.step == options().startStep && !context_.resumed && !step().request.forwardOnly &&
         writesStatistics(graph());
}

// Before the commits. See traced_statistics.h.
Status Stepper::countFirstBatchOnce() {
  SS_ASSIGN(const bool counted, traceCountedFirstBatch(*executor_));
  if (!counted) return {};
  context_.log.warn("statistics_counted",
                    "running statistics in the file already count the first batch (the exporter traced the model in "
                    "training mode): this step counts it once, from mean 0 and variance 1");
  return writeFirstStatistics(*executor_);
}

Status Stepper::commit() {
  const bool updated = runOptions().update;
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
    const auto contents = executor_->read(loss);
    outcome.loss = contents ? elementAsDouble(contents->view(), 0) : 0;
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
