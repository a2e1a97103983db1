#include "engine/lab/trial_lane.h"

#include <cmath>
#include <limits>
#include <utility>

#include "engine/build/known_roofs.h"
#include "engine/build/loss_scale.h"
#include "engine/exec/touched.h"
#include "engine/profile/roofline.h"

namespace stepscope {

Status TrialLane::plan(const TrainOptions& options, bool otherBatch) {
  BuildRequest request = subject_->request;
  request.options = options;
  request.threads = threadsOf(options);
  request.firstBatch = [&](const Graph& graph, std::vector<std::string>*) -> Result<Batch> {
    if (otherBatch) {
      SS_ASSIGN(batches_, subject_->batchesUnder(graph, options));
    }
    return batches().front();
  };
  context_->log.beginBuild();
  const Builder builder(subject_->model, context_->log, Cancel(subject_->cancelled));
  std::vector<Stage> stages;
  SS_ASSIGN(auto step, builder.build(std::move(request), stages));
  const Signature signature = signatureOf(batches(), step->keptRows);
  SS_ASSIGN(variant_, builder.specialise(std::move(step), signature, "trial", stages));
  return {};
}

Status TrialLane::giveOwnState() {
  own_ = std::make_unique<StepContext>(Observer{});
  context_ = own_.get();
  for (const auto& [name, tensor] : subject_->start.tensors) SS_TRY(context_->state.set(name, tensor.clone()));
  context_->state.counters = subject_->start.counters;
  return {};
}

Status TrialLane::bind(bool listens) {
  SS_ASSIGN(stepper_, Stepper::bind(variant_, *context_, Cancel(subject_->cancelled)));
  flight_ = FlightRecorder(listens && symbolic().request.options.recordFlight);
  if (flight_.on()) {
    const SymbolicStep& step = symbolic();
    flown_ = flight_.planFor(stepper_->executor(),
                             planNotes(stepper_->executor(), step.trained, step.optimizer.accumulated, step.loss));
  }
  return settleLossScale();
}

void TrialLane::putBack() {
  context_->state.restore(subject_->start);
  context_->state.counters.lossScale = scale_;
  ++context_->places;
}

// Where a first batch decides about the loss scale.
Status TrialLane::settleLossScale() {
  scale_ = subject_->start.counters.lossScale;
  putBack();
  if (!symbolic().optimizer.lossScale || !findsLossScale(symbolic().request.options, scale_)) return {};
  SS_TRY(stepper_->begin(Batch(batches().front())));
  stepper_->abandon();
  scale_ = context_->state.counters.lossScale;
  return {};
}

Result<double> TrialLane::step(const Batch& batch, std::function<Status(int)> after) {
  putBack();
  SS_TRY(stepper_->feed(batch));
  Executor::RunOptions run = stepper_->runOptions();
  run.update = true;
  run.cancel = subject_->cancelled;
  run.after = std::move(after);
  const bool flies = flight_.on() && !run.after;
  const std::int64_t begin = monotonicNs();
  if (flies) {
    flight_.begin(stepper_->executor(), &*flown_, context_->state.counters.step + steps_++);
    if (flight_.listens())
      run.after = [this](int i) -> Status {
        flight_.after(i, stepper_->executor().conditionsHold(i));
        return {};
      };
  }
  SS_TRY(stepper_->executor().run(0, stepper_->count(), run));
  std::int64_t ns = monotonicNs() - begin;
  flight_.finish(ns);
  for (const auto until = begin + ns + std::llround(waits * static_cast<double>(ns)); waits > 0 && begin + ns < until;)
    ns = monotonicNs() - begin;
  return static_cast<double>(ns);
}

double TrialLane::loss() const {
  const auto contents = stepper_->executor().read(symbolic().loss);
  return contents ? elementAsDouble(contents->view(), 0) : std::numeric_limits<double>::quiet_NaN();
}

double TrialLane::gradientFactor() const {
  return symbolic().optimizer.lossScale ? lossScaleFactor(symbolic().request.options, context_->state.counters.lossScale)
                                        : 1;
}

Status TrialLane::gradientsAfter(int instruction, const EachGradient& each) const {
  const SymbolicStep& step = symbolic();
  for (std::size_t i = 0; i < step.trained.size(); ++i) {
    const ValueId id = step.optimizer.accumulated[i];
    if (!id || stepper_->plan().instructionOf(stepper_->graph().value(id).producer) != instruction) continue;
    const auto contents = stepper_->executor().read(id);
    if (contents) SS_TRY(each(step.graph.value(step.trained[i]).name, *contents));
  }
  return {};
}

std::int64_t TrialLane::measuredPeak() const {
  const Executor& executor = stepper_->executor();
  return touchedPersistentBytes(executor) + executor.touchedBytes() + executor.dynamicBytes();
}

double TrialLane::expectedNs() const {
  double ns = 0;
  for (const InstructionRoof& roof : rooflineOf(stepper_->plan(), roofsOf(symbolic().request.options, threads(), nullptr)))
    ns += roof.ns;
  return ns / static_cast<double>(samples);
}

}  // namespace stepscope
