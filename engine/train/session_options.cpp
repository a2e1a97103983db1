// Options that change while a model is built: when they take effect, and the proof that they changed no number.
#include <fmt/format.h>

#include <algorithm>

#include "engine/build/builder.h"
#include "engine/build/schedule.h"
#include "engine/lab/free_memory.h"
#include "engine/lab/option_proof.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/session.h"
#include "engine/train/session_alerts.h"

namespace stepscope {
namespace {

// A value as a line of text can hold it.
std::string shortened(std::string value) {
  constexpr std::size_t kMost = 80;
  if (value.size() > kMost) value = fmt::format("{}… ({} bytes)", value.substr(0, kMost / 2), value.size());
  return value;
}

}  // namespace

Status Session::setOptions(TrainOptions options) {
  SS_TRY(checkOptions(options));
  if (options.loopIterations != plans_.model()->load.loopIterations) SS_TRY(openAgain(options.loopIterations));
  if (built()) {
    const auto same = [&](const TrainOptions& as) { return changedOptions(as, options, registry().options()).empty(); };
    if (pending_ && same(options_) && !same(*pending_))
      pending_.reset();  // back to what runs: nothing waits
    else
      pending_ = std::move(options);
    return {};
  }
  options_ = std::move(options);
  feed_.close();
  return {};
}

// Loops are written out when the file is opened.
Status Session::openAgain(std::int64_t loopIterations) {
  if (built())
    return invalidOption("loop.max_iterations",
                         fmt::format("{}; the model was opened with {}, which stays once it is built; "
                                     "hint: open it again",
                                     loopIterations, plans_.model()->load.loopIterations));
  LoadOptions load = plans_.model()->load;
  load.loopIterations = loopIterations;
  const ImportedModel& before = *plans_.model();
  SS_ASSIGN(auto model, importModel(before.path, load, context_.log, nullptr, before.registry));
  plans_.open(std::move(model));
  feed_.forgetDimensions();
  return {};
}

void Session::takePending() {
  if (!pending_) return;
  options_ = std::move(*pending_);
  pending_.reset();
  feed_.close();
}

Status Session::applyOptions() {
  if (inStep()) {
    SS_ASSIGN(auto changed, plans_.underChangedPlugins());
    const auto old = changed ? plans_.exchange(std::move(changed)) : nullptr;
    snapshot::OptionProof proof;
    proof.set_step(nextStep());
    proof.set_change("plugins, whose files have changed");
    if (Status taken = old ? goOnUnder(buildRequest(options_), proof) : Status(); !taken) {
      plans_.exchange(old);
      return taken;
    }
    if (old) proof_ = std::move(proof);
  }
  if (!pending_ || !built() || !feed_.opened() || plans_.step()->request.forwardOnly) return {};
  const TrainOptions before = options_;
  const std::vector<std::string> changed = changedOptions(before, *pending_, registry().options());
  snapshot::OptionProof proof;
  proof.set_step(nextStep());
  for (const std::string& name : changed)
    proof.set_change(toUtf8(fmt::format("{}{}{} = {}", proof.change(), proof.change().empty() ? "" : ", ", name,
                                        shortened(optionValue(*pending_, name, registry().options())))));
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
    SS_ASSIGN(const Batch batch, fittingBatch());
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
  setMemoryBefore(stepper(), proof);
  // A narrower type for the parameters loses digits, which a build that fails must not.
  std::optional<StateSnapshot> kept;
  if (retyped) kept = context_.state.copy();
  if (Status made = build(); !made) {
    pending_.reset();
    if (made.error().code == ErrorCode::kCancelled && built()) return made;
    // The plan that ran before is made again: a session is never left without one.
    const auto proofBefore = proof_;
    options_ = before;
    feed_.close();
    SS_TRY(build());
    proof_ = proofBefore;
    if (kept) context_.state.restore(*kept);
    return made;
  }
  setMemoryAfter(stepper(), proof);
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

// The begun step goes on under another plan, at the same place. On an error it stands where it stood.
Status Session::goOnUnder(BuildRequest request, snapshot::OptionProof& proof) {
  Stepper& old = stepper();
  const int position = old.next();
  const std::vector<NodeId> oldOrder = nodesOf(old.plan());
  if (!anchor_ || anchor_->second != position) anchor_.emplace(placeOf(old.keys(), oldOrder, position), position);

  const auto failed = [&](Error error) {
    if (const Status brought = context_.state.bring(old.executor().device()); !brought)
      error.message += "; and the state could not be brought back: " + brought.error().message;
    return tl::make_unexpected(std::move(error));
  };
  auto beside = plans_.makeBeside(std::move(request), old.batch(), "options changed in the middle of a step");
  if (!beside) return failed(std::move(beside.error()));
  Stepper& next = *beside->stepper;

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
  plans_.pointed().resolve(next, context_);
  auto there = next.takeOver(old, std::move(edits), place);
  if (!there || there->stopped_by() == "cancelled") {
    next.abandon();
    plans_.pointed().resolve(old, context_);
    Error why = there ? Error{ErrorCode::kCancelled, "options: cancelled; the step stands where it stood"} : there.error();
    SS_TRY(old.replay(position));
    return failed(std::move(why));
  }
  compareSteppers(old, position, next, proof);
  anchor_->second = next.next();
  old.leave();
  plans_.replaceBy(std::move(*beside));
  if (built()) tellOfIdlePredicates(context_.breakpoints, runningGraph(), context_.log);
  return {};
}

double Session::learningRate() const {
  return options().lr * scheduleFactor(options(), context_.state.counters.scheduledUpdates());
}

Status Session::setLearningRate(double base) {
  SS_TRY(applySetting(options_, "lr", fmt::format("{}", base), "api", registry().options()));
  if (pending_) SS_TRY(applySetting(*pending_, "lr", fmt::format("{}", base), "api", registry().options()));
  context_.learningRate = base;
  return {};
}

}  // namespace stepscope
