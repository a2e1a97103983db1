// Binding a plan to the state: kernels, memory, and what a step is fed.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "engine/build/known_roofs.h"
#include "engine/build/loss_scale.h"
#include "engine/build/schedule.h"
#include "engine/plan/fits.h"
#include "engine/profile/device_work.h"
#include "engine/profile/roofline.h"
#include "engine/state/random_weights.h"
#include "engine/step/scaled_gradients.h"
#include "engine/step/step_alerts.h"
#include "engine/step/stepper.h"
#include "kernels/rank_part.h"

namespace stepscope {
namespace {

// States share an input because they had equally many updates when the step was built. A rewind may change that;
// `agreed`: with these they have.
Result<std::int64_t> updatesOf(const UpdateInput& update, const StateCounters& counters,
                               const std::shared_ptr<const MomentAges>& agreed) {
  if (update.states.empty()) return counters.updates;
  const std::int64_t done = counters.updatesOf(update.states.front());
  if (counters.moments == agreed) return done;
  for (const std::string& state : update.states)
    if (const std::int64_t other = counters.updatesOf(state); other != done)
      return unsupported(
          fmt::format("optimizer state '{}' has had {} updates and '{}' {}; expected equally many, as when the "
                      "step was built; hint: build again",
                      update.states.front(), done, state, other));
  return done;
}

}  // namespace

Stepper::~Stepper() = default;

Result<std::unique_ptr<Stepper>> Stepper::bind(std::shared_ptr<const Variant> variant, StepContext& context,
                                               const Cancel& cancel, const std::function<void()>& takesMemory) {
  std::unique_ptr<Stepper> stepper(new Stepper(std::move(variant), context));
  stepper->effects_ = stepper->variant_->effects;
  SS_TRY(stepper->makeExecutor(cancel, takesMemory));
  return stepper;
}

const KeyIndex& Stepper::keys() const {
  if (!keys_) keys_ = std::make_unique<KeyIndex>(graph());
  return *keys_;
}

Status Stepper::makeExecutor(const Cancel& cancel, const std::function<void()>& takesMemory) {
  BuildLog::Scope phase(context_.log, "bind");
  State& state = context_.state;
  const Graph& graph = variant_->graph;
  auto device = findDevice(options().device);
  if (!device) return phase.fail(device.error());
  executor_ = std::make_unique<Executor>(
      graph, ExecutionPlan(variant_->plan),
      [this](ValueId id) { return *context_.state.find(variant_->graph.value(id).name); },
      options().referenceKernels ? Backend::kReference : Backend::kCpu, variant_->step->model->registry->operators(),
      *device);
  const std::int64_t resident = residentSetBytes();
  if (Status made = executor_->makeKernels(options().reuse, options().memoryLimit, cancel); !made)
    return phase.fail(made.error());
  const std::int64_t kernels = std::max<std::int64_t>(0, residentSetBytes() - resident);
  if (takesMemory) takesMemory();
  State::Held before = state.hold();
  doesNotFit_.reset();
  if (Status room = checkRoom(plan(), **device); !room) {
    doesNotFit_ = room.error();
    context_.log.warn("does_not_fit", doesNotFit_->message);
  } else if (Status brought = state.bring(**device); !brought) {
    return phase.fail(brought.error());
  }
  undo_.setDevice(**device);
  Status taken = takeMemory(phase, kernels, cancel);
  if (!taken) {
    executor_.reset();
    state.putBack(std::move(before));
  }
  return taken;
}

void Stepper::giveWay(bool memory) {
  if (inStep_) context_.state.rollback();
  gaveWay_ = true;
  undo_.clear();
  ++context_.places;
  if (!memory) return;
  // What they know of this executor is not so of the next one.
  Activity activity = std::move(watchers_.activity);
  std::destroy_at(&watchers_);
  std::construct_at(&watchers_, context_, *variant_->step);
  watchers_.activity = std::move(activity);
  executor_.reset();
}

Status Stepper::comeBack() {
  if (!executor_) SS_TRY(makeExecutor());
  if (!std::exchange(gaveWay_, false) || !inStep_) return {};
  beginNotes();
  const int place = position_;
  const auto why = std::pair(stoppedBy_, stoppedAt_);
  SS_TRY(replay(place));
  if (position_ < place) {
    while (position_ < place) SS_TRY(runTo(place));
    SS_TRY(applyEdits(place));
  }
  std::tie(stoppedBy_, stoppedAt_) = why;
  return {};
}

Status Stepper::takeMemory(BuildLog::Scope& phase, std::int64_t kernelBytes, const Cancel& cancel) {
  State& state = context_.state;
  const Graph& graph = variant_->graph;
  const int threads = step().request.threads;
  if (lacksWeights(graph, state)) {
    BuildLog::Scope child(context_.log, "materialise");
    auto filled = fillMissingWeights(graph, options().seed, threads, state, cancel);
    if (!filled) return child.fail(filled.error());
    child.count(*filled);
    context_.log.warn("missing_weights",
                      fmt::format("{} initializers have no data in the file and were filled from seed {}: losses and "
                                  "gradients mean nothing, times and memory do",
                                  *filled, options().seed));
  }
  std::set<ValueId> written;
  for (const StateUpdate& update : graph.stateUpdates) written.insert(update.state);
  // The state's tensors are obtained in value order, so that their memory does not depend on the plan.
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(graph.valueCapacity()); ++i) {
    const Value& value = graph.value({i});
    if (Status wanted = cancel.check("bind"); !wanted) return phase.fail(wanted.error());
    if (!graph.alive(value.id) || (value.role != ValueRole::kInitializer && value.role != ValueRole::kState)) continue;
    if (const auto whole = step().optimizer.parts.find(value.name); whole != step().optimizer.parts.end())
      if (const Tensor* present = state.find(value.name); present && present->dims() == whole->second)
        if (Status cut = state.set(value.name, rankPart(state.read(value.name), step().request.rank, step().request.ranks));
            !cut)
          return phase.fail(cut.error());
    if (auto tensor = state.obtain(value, written.contains(value.id)); !tensor) return phase.fail(tensor.error());
    if (state.isLowCopy(value.name)) lowCopies_.insert(value.name);
  }
  const std::int64_t resident = residentSetBytes();
  // What does not fit can be looked at, without its memory.
  if (!doesNotFit_)
    if (Status status = executor_->bind(options().reuse, options().memoryLimit, cancel); !status)
      return phase.fail(status.error());
  // Now workspaces are known, and what kernels and primitives take for themselves.
  const std::int64_t taken = kernelBytes + std::max<std::int64_t>(0, residentSetBytes() - resident);
  if (Status fits = checkFits(plan(), options().memoryLimit, taken); !fits && !variant_->doesNotFit && !doesNotFit_) {
    doesNotFit_ = fits.error();
    context_.log.warn("does_not_fit", fits.error().message);
  }
  if (options().roofline) {
    BuildLog::Scope child(context_.log, "measure peak");
    peak_ = &roofsOf(options(), threads, &context_.log);
    effects_["roofline"] = peakText(*peak_);
  }
  if (Status wanted = cancel.check("bind"); !wanted) return phase.fail(wanted.error());
  phase.count(executor_->boundKernels().size());
  tellWhatHasNoOrder(*executor_, context_.log);
  effects_["memory.reuse"] =
      fmt::format("arena of {} bytes, lower bound {} bytes", plan().arenaBytes, plan().lowerBoundBytes);
  return {};
}

Status Stepper::feed(const Batch& batch) {
  SS_TRY(settleSums(*executor_, step(), context_));
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
    const double base = rate.ofGroup ? rate.base : context_.learningRate.value_or(rate.base);
    SS_TRY(executor_->setInput(rate.input, Tensor::scalar(DType::kF32, base * factor).view()));
  }
  for (const UpdateInput& update : optimizer.updates) {
    SS_ASSIGN(const std::int64_t done, updatesOf(update, counters, agreed_));
    SS_TRY(executor_->setInput(update.input, Tensor::scalar(DType::kI64, static_cast<double>(done + 1)).view()));
  }
  agreed_ = counters.moments;
  if (optimizer.lossScale) {
    const double factor = lossScaleFactor(options(), counters.lossScale);
    SS_TRY(executor_->setInput(optimizer.lossScale, Tensor::scalar(DType::kF32, factor).view()));
    SS_TRY(executor_->setInput(optimizer.lossUnscale, Tensor::scalar(DType::kF32, 1 / factor).view()));
  }
  if (optimizer.firstMicro)
    SS_TRY(executor_->setInput(optimizer.firstMicro, Tensor::scalar(DType::kBool, counters.micro == 0).view()));
  return {};
}

bool Stepper::roundEnds() const {
  return !step().request.forwardOnly && context_.state.counters.micro + 1 >= options().accumulate;
}

Executor::RunOptions Stepper::runOptions() const {
  Executor::RunOptions run;
  run.key = {options().seed, static_cast<std::uint64_t>(context_.state.counters.entry), 0};
  run.update = step().request.forwardOnly || roundEnds();  // a part of a step that is run as a model is run whole
  run.flushSubnormals = options().subnormals == "flush";
  run.graphs = options().cudaGraphs;
  // Whole steps alone are counted: counting begins and ends slowly.
  run.rung = std::min(rungCalled(options().recordRung), ActivityRung::kActivity);
  return run;
}

}  // namespace stepscope
