// Options that change while a model is built: when they take effect, and the proof that they changed no number.
#include <fmt/format.h>

#include <algorithm>

#include "engine/build/builder.h"
#include "engine/lab/golden_check.h"
#include "engine/lab/option_proof.h"
#include "engine/lab/precision_study.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/running.h"

namespace stepscope {

Status Session::setOptions(TrainOptions options) {
  SS_TRY(checkOptions(options));
  if (options.loopIterations != model_->load.loopIterations) SS_TRY(openAgain(options.loopIterations));
  if (running_) {
    pending_ = std::move(options);
    return {};
  }
  options_ = std::move(options);
  data_.reset();
  return {};
}

// Loops are written out when the file is opened.
Status Session::openAgain(std::int64_t loopIterations) {
  if (running_)
    return invalid(
        fmt::format("option 'loop.max_iterations': {}; the model was opened with {}, which stays once it is built; "
                    "hint: open it again",
                    loopIterations, model_->load.loopIterations));
  LoadOptions load = model_->load;
  load.loopIterations = loopIterations;
  SS_ASSIGN(model_, importModel(model_->path, load, context_.log, nullptr, model_->registry));
  stages_ = model_->stages;
  dimensions_.reset();
  return {};
}

void Session::takePending() {
  if (!pending_) return;
  options_ = std::move(*pending_);
  pending_.reset();
  data_.reset();
}

Status Session::applyOptions() {
  if (!pending_ || !running_ || !data_ || step_->request.forwardOnly) return {};
  const TrainOptions before = options_;
  const std::vector<std::string> changed = changedOptions(before, *pending_, registry().options());
  snapshot::OptionProof proof;
  proof.set_step(nextStep());
  for (const std::string& name : changed)
    proof.set_change(toUtf8(fmt::format("{}{}{} = {}", proof.change(), proof.change().empty() ? "" : ", ", name,
                                        optionValue(*pending_, name, registry().options()))));
  // Parameters of another type: a state of its own, which no running step can go on with.
  const bool retyped = before.masterWeights != pending_->masterWeights ||
                       (before.masterWeights == "off" && before.precision != pending_->precision);
  const bool optimisation =
      !retyped && !changed.empty() &&
      std::all_of(changed.begin(), changed.end(), [](const std::string& name) { return isOptimisation(name); });
  if (inStep()) {
    if (!optimisation) return {};
    TrainOptions wanted = std::move(*pending_);
    pending_.reset();
    SS_TRY(goOnUnder(buildRequest(wanted), proof));
    options_ = std::move(wanted);
    proof_ = std::move(proof);
    return {};
  }
  const auto trial = [&]() -> Result<StepOutcome> {
    SS_ASSIGN(const Batch batch, data_->batch(nextStep()));
    SS_TRY(useVariantFor(batch));
    return stepper().trial(batch);
  };
  std::optional<StepOutcome> old;
  if (!optimisation) {
    proof.set_unavailable("settings of the training were changed: other numbers are wanted");
  } else if (const std::int64_t bytes = context_.state.bytes(); 2 * bytes >= freeMemoryBytes()) {
    proof.set_unavailable(fmt::format("the state, {} bytes, does not fit into memory twice more", bytes));
  } else if (auto ran = trial(); ran) {
    old = std::move(*ran);
  } else {
    proof.set_unavailable(toUtf8(ran.error().message));
  }
  proof.set_before_peak_bytes(stepper().variant().plan.lowerBoundBytes);
  // A narrower type for the parameters loses digits, which a build that fails must not.
  std::optional<StateSnapshot> kept;
  if (retyped) kept = context_.state.copy();
  takePending();
  if (Status built = build(); !built) {
    // The plan that ran before is made again: a session is never left without one.
    options_ = before;
    data_.reset();
    SS_TRY(build());
    if (kept) context_.state.restore(*kept);
    return built;
  }
  proof.set_after_peak_bytes(stepper().variant().plan.lowerBoundBytes);
  if (old) {
    if (auto ran = trial(); ran) {
      compareOutcomes(*old, *ran, proof);
    } else {
      proof.set_unavailable(toUtf8(ran.error().message));
    }
  }
  proof_ = std::move(proof);
  return {};
}

Result<snapshot::PrecisionReport> Session::precisionStudy(const snapshot::GetPrecision& question) {
  if (!running_ || !data_) return invalid("precision: nothing was built; build first");
  if (step_->request.forwardOnly)
    return invalid("precision: the model was built without a backward phase; a study compares gradients");
  PrecisionSubject subject;
  subject.model = model_;
  subject.request = buildRequest(options_);
  if (inStep()) {
    subject.batch = stepper().batch();
  } else {
    SS_ASSIGN(subject.batch, data_->batch(nextStep()));
  }
  subject.start = startOfStep();
  subject.cancelled = &context_.cancelled;
  subject.progress = context_.log.observer().progress;
  return studyPrecision(std::move(subject), question);
}

Result<GoldenReport> Session::compareWithGolden(const Golden& golden, std::int64_t batches) {
  if (!running_ || !data_) return invalid("verify: nothing was built; build first");
  if (step_->request.forwardOnly)
    return invalid("verify: the model was built without a backward phase; its gradients are compared");
  SideSubject subject;
  subject.model = model_;
  subject.request = buildRequest(options_);
  SS_ASSIGN(subject.batch, data_->batch(0));
  std::vector<Batch> more;
  if (!golden.later.empty()) batches = std::max<std::int64_t>(batches, 2);
  for (std::int64_t i = 1; i < std::min<std::int64_t>(batches, static_cast<std::int64_t>(golden.losses.size())); ++i) {
    SS_ASSIGN(Batch batch, data_->batch(i));
    if (signatureOf(batch) != signatureOf(subject.batch)) break;  // a plan is for one
    more.push_back(std::move(batch));
  }
  subject.start = context_.state.copy();
  subject.cancelled = &context_.cancelled;
  return stepscope::compareWithGolden(std::move(subject), more, golden);
}

// The begun step goes on under another plan, at the same place. On an error it stands where it stood.
Status Session::goOnUnder(BuildRequest request, snapshot::OptionProof& proof) {
  Stepper& old = stepper();
  const int position = old.next();
  const std::vector<NodeId> oldOrder = nodesOf(old.plan());
  if (!anchor_ || anchor_->second != position) anchor_.emplace(placeOf(old.keys(), oldOrder, position), position);

  const std::vector<Stage> shown = stages_;
  const auto failed = [&](Error error) {
    stages_ = shown;
    if (const Status brought = context_.state.bring(old.executor().device()); !brought)
      error.message += "; and the state could not be brought back: " + brought.error().message;
    return tl::make_unexpected(std::move(error));
  };
  context_.log.beginBuild();
  stages_ = model_->stages;
  tellStages(stages_, context_.log);
  auto step = Builder(model_, context_.log).build(std::move(request), stages_);
  if (!step) return failed(std::move(step.error()));
  std::vector<Stage> symbolic = stages_;
  auto made = makeRunning(*step, signatureOf(old.batch(), (*step)->keptRows), "options changed in the middle of a step");
  if (!made) return failed(std::move(made.error()));
  Stepper& next = *(*made)->stepper;

  const std::vector<NodeId> order = nodesOf(next.plan());
  int place = findPlace(anchor_->first, next.keys(), order);
  std::vector<StepEdit> edits;
  for (const StepEdit& edit : old.edits()) {
    const ValueKey key = old.keys().keyOf(edit.value);
    const ValueId value = next.keys().find(key);
    if (!value)
      return failed({ErrorCode::kUnsupported,
                     fmt::format("value '{}': it was edited in this step, and the new plan does not compute it ({}); hint: "
                                 "finish the step first",
                                 old.graph().value(edit.value).name, next.keys().absence(key))});
    // An edit comes after what computes the value, or it would be written over.
    const int at = std::max(findPlace(placeOf(old.keys(), oldOrder, edit.position), next.keys(), order),
                            next.plan().instructionOf(next.graph().value(value).producer) + 1);
    edits.push_back({at, value, edit.contents});
    place = std::max(place, at);
  }
  auto there = next.takeOver(old, std::move(edits), place);
  if (!there || there->stopped_by() == "cancelled") {
    next.abandon();
    Error why = there ? Error{ErrorCode::kCancelled, "options: cancelled; the step stands where it stood"} : there.error();
    SS_TRY(old.replay(position));
    return failed(std::move(why));
  }
  compareSteppers(old, position, next, proof);
  anchor_->second = next.next();
  step_ = std::move(*step);
  parameters_ = step_->parameters;
  symbolicStages_ = std::move(symbolic);
  old.leave();
  running_ = nullptr;
  variants_.clear();
  variants_.push_back(std::move(*made));
  show(*variants_.back());
  tellOfIdlePredicates();
  return {};
}

}  // namespace stepscope
