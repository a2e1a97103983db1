// Binding a plan to the state, and steps at full speed.
#include "engine/step/stepper.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/build/loss_scale.h"
#include "engine/build/schedule.h"
#include "engine/plan/fits.h"
#include "engine/profile/roofline.h"
#include "engine/profile/tensor_summary.h"
#include "engine/snapshot/utf8.h"
#include "engine/state/random_weights.h"
#include "engine/step/traced_statistics.h"

namespace stepscope {
namespace {
constexpr std::int64_t kTellNs = 200'000'000;  // between two words on how far a step is
}

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
    if (state.isLowCopy(value.name)) lowCopies_.insert(value.name);
  }
  executor_ = std::make_unique<Executor>(
      graph, ExecutionPlan(variant_->plan),
      [this](ValueId id) { return *context_.state.find(variant_->graph.value(id).name); },
      options().referenceKernels ? Backend::kReference : Backend::kCpu, variant_->step->model->registry->operators(),
      *device);
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
  context_.state.beginLowCopies(lowCopies_);
  place_ = ++context_.places;
  for (const ValueId id : graph().inputs())
    if (const auto it = batch.arrays.find(graph().value(id).name); it != batch.arrays.end())
      SS_TRY(executor_->setInput(id, it->second.view()));
  for (const KeptRows& kept : step().keptRows) {
    const ValueId input = graph().findValue(kept.input);
    const auto dims = knownDims(*graph().value(input).type.shape);
    SS_ASSIGN(const Tensor rows, rowsOf(kept, batch, dims ? elementCount(*dims) : 0));
    SS_TRY(executor_->setInput(input, rows.view()));
  }
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
  if (optimizer.lossScale) {
    const double factor = lossScaleFactor(options(), counters.lossScale);
    SS_TRY(executor_->setInput(optimizer.lossScale, Tensor::scalar(DType::kF32, factor).view()));
    SS_TRY(executor_->setInput(optimizer.lossUnscale, Tensor::scalar(DType::kF32, 1 / factor).view()));
  }
  if (optimizer.firstMicro)
    SS_TRY(executor_->setInput(optimizer.firstMicro, Tensor::scalar(DType::kBool, counters.micro == 0).view()));
  return {};
}

Executor::RunOptions Stepper::runOptions() const {
  const StateCounters& counters = context_.state.counters;
  Executor::RunOptions run;
  run.key = {options().seed, static_cast<std::uint64_t>(counters.step), 0};
  run.update = !step().request.forwardOnly && counters.micro + 1 >= options().accumulate;
  run.flushSubnormals = options().subnormals == "flush";
  return run;
}

Result<bool> Stepper::run(Batch batch, snapshot::StepRecord& record) {
  SS_CHECK(!inStep_);
  SS_TRY(findLossScale(batch));
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
  context_.processor.begin();
  const std::int64_t begin = monotonicNs();
  beginNotes();
  if (context_.notes.listens() || !context_.watched.empty() || context_.numbers.everywhere)
    run.after = [this](int i) -> Status {
      noteAfter(i);
      return {};
    };
  // A cancelled step is thrown away, so it may only be cancelled before state is written over.
  run.cancel = &context_.cancelled;
  run.cancelBelow = plan().firstStateWrite;
  run.restoreState = true;
  int at = 0;
  // A step that takes long is run in parts, between which it tells how far it is.
  const bool parts = lastNs_ > kTellNs && context_.log.observer().progress && executor_->device().facts().immediate;
  const int part = parts ? std::max(1, count() / 64) : count();
  std::int64_t told = begin;
  const auto runUntil = [&](int end) -> Status {
    while (at < end) {
      const int to = std::min(end, at + part);
      SS_ASSIGN(at, executor_->run(at, to, run));
      if (at < to) break;
      if (const std::int64_t now = monotonicNs(); parts && now - told > kTellNs) {
        told = now;
        context_.log.observer().progress("instruction", at, count());
      }
    }
    return {};
  };
  const auto ran = [&]() -> Status {
    if (followsNumbers()) {
      if (context_.numbers.any()) keepEarlyState();
      SS_TRY(runUntil(plan().firstOptimizer));
      judgeNumbers();
      if (!badNumber_.empty()) return {};
    }
    if (countsFirstBatch()) {
      SS_TRY(runUntil(plan().firstCommit));
      SS_TRY(countFirstBatchOnce());
    }
    return runUntil(count());
  }();
  if (!ran) return tl::make_unexpected(step().request.explain(ran.error()));
  if (!badNumber_.empty()) {
    context_.state.rollback();
    ++context_.places;
    return false;
  }
  const std::int64_t end = monotonicNs();
  lastNs_ = end - begin;
  if (!timed_) nameLongInstructions(spans);
  fillRecord(record, begin, end);
  context_.notes.finish(record);
  position_ = count();
  SS_TRY(commit());
  return true;
}

bool Stepper::followsNumbers() const {
  return !step().request.forwardOnly && (context_.numbers.any() || options().record != "off");
}

// What the forward pass writes over, such as running statistics, for a step that is taken back before its update.
void Stepper::keepEarlyState() {
  if (!earlyState_) {
    earlyState_.emplace();
    for (int i = 0; i < plan().firstOptimizer; ++i)
      for (const int b : plan().instructions[static_cast<std::size_t>(i)].outputs) {
        if (b < 0) continue;
        const Buffer& root = plan().buffers[static_cast<std::size_t>(plan().root(b))];
        if (root.home == Home::kState) earlyState_->push_back(graph().value(root.value).name);
      }
  }
  for (const std::string& name : *earlyState_) context_.state.keep(name);
}

void Stepper::excuseInfinities() {
  excusedInf_.resize(expectedInf_.size(), false);
  for (std::size_t i = 0; i < expectedInf_.size(); ++i)
    if (expectedInf_[i]) excusedInf_[i] = true;
}

// Of an instruction that ran at full speed. What is found ends the step before its update; the walk that follows judges it.
void Stepper::lookAtOutputs(int instruction) {
  const Instruction& ran = plan().instructions[static_cast<std::size_t>(instruction)];
  if (ran.kind != InstructionKind::kKernel || ran.view || instruction >= plan().firstOptimizer) return;
  for (const int b : ran.outputs) {
    if (b < 0) continue;
    const ValueId id = plan().buffers[static_cast<std::size_t>(b)].value;
    const auto at = static_cast<std::size_t>(id.index);
    const auto contents = executor_->read(id);
    if (!contents || !holdsNotFinite(contents->view())) continue;
    const snapshot::TensorStatistics found = tensorSummary(contents->view());
    const bool nan = context_.numbers.nan && found.nan() > 0;
    const bool inf = context_.numbers.inf && found.inf() > 0 && !(at < excusedInf_.size() && excusedInf_[at]);
    if (!nan && !inf) continue;
    badNumber_ = fmt::format("'{}' holds {}", toUtf8(graph().value(id).name), nan ? "NaN" : "Inf");
    ofValue_ = true;
  }
}

std::int64_t Stepper::gradientBytes() const {
  std::int64_t bytes = 0;
  for (const ValueId id : step().optimizer.accumulated)
    if (const int b = id ? plan().bufferOfValue[static_cast<std::size_t>(id.index)] : -1; b >= 0)
      bytes += plan().buffers[static_cast<std::size_t>(b)].bytes;
  return bytes;
}

// Between backward pass and update: all gradients are there, and no parameter has changed.
void Stepper::judgeNumbers() {
  const NumberWatch& watch = context_.numbers;
  // Reading all gradients costs memory traffic: it is done where the step is to stop, and where there are few of them.
  // Gradients that carry a loss scale may overflow: the update judges them.
  const bool scaled = step().optimizer.lossScale.valid();
  if (constexpr std::int64_t kFew = 64 << 10; !scaled && (watch.stop || gradientBytes() <= kFew))
    norm_ = gradientNormAt(*executor_, step().optimizer.accumulated, plan().firstOptimizer);
  if ((!badNumber_.empty() && !ofValue_) || !watch.any()) return;
  const auto judge = [&](std::string_view what, double number) {
    const std::string found = watch.find(number);
    if (found.empty() || (!badNumber_.empty() && !ofValue_)) return;
    badNumber_ = fmt::format("{} is {}", what, found);
    ofValue_ = false;
  };
  if (const ValueId loss = step().loss; loss)
    if (const auto contents = executor_->read(loss)) judge("loss", elementAsDouble(contents->view(), 0));
  if (norm_) judge("gradient norm", *norm_);
}

// The first step of a run whose state comes from the model's file.
bool Stepper::countsFirstBatch() const {
  const auto passed = options().passes.find("traced_statistics");
  const bool judge = passed == options().passes.end() || passed->second;
  return judge && context_.state.counters.step == options().startStep && !context_.resumed && !step().request.forwardOnly &&
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
  const bool roundEnds = runOptions().update, skipped = skipsUpdate();
  times_.add(lastSpans_, plan().instructions.size());
  LossScale& scale = context_.state.counters.lossScale;
  if (roundEnds && step().optimizer.lossScale) {
    const LossScale next = lossScaleAfter(options(), scale, !skipped);
    if (skipped) tellOfSkippedUpdate(next);
    scale = next;
  }
  context_.state.commit(roundEnds, roundEnds && !skipped);
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
  ++context_.places;
  if (!ran) return tl::make_unexpected(ran.error());
  return outcome;
}

}  // namespace stepscope
