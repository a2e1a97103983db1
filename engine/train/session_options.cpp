// Options that change while a model is built: when they take effect, and the proof that they changed no number.
#include <fmt/format.h>

#include <algorithm>

#include "engine/build/builder.h"
#include "engine/lab/option_proof.h"
#include "engine/snapshot/utf8.h"
#include "engine/train/running.h"

namespace stepscope {

Status Session::setOptions(TrainOptions options) {
  SS_TRY(checkOptions(options));
  if (running_) {
    pending_ = std::move(options);
    return {};
  }
  options_ = std::move(options);
  data_.reset();
  return {};
}

void Session::takePending() {
  if (!pending_) return;
  options_ = std::move(*pending_);
  pending_.reset();
  data_.reset();
}

Status Session::applyOptions() {
  if (!pending_ || inStep() || !running_ || !data_ || step_->request.forwardOnly) return {};
  const TrainOptions before = options_;
  const std::vector<std::string> changed = changedOptions(before, *pending_);
  snapshot::OptionProof proof;
  proof.set_step(nextStep());
  for (const std::string& name : changed)
    proof.set_change(toUtf8(fmt::format("{}{}{} = {}", proof.change(), proof.change().empty() ? "" : ", ", name,
                                        optionValue(*pending_, name))));
  const bool optimisation = !changed.empty() && std::all_of(changed.begin(), changed.end(),
                                                            [](const std::string& name) { return isOptimisation(name); });
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
  takePending();
  if (Status built = build(); !built) {
    // The plan that ran before is made again: a session is never left without one.
    options_ = before;
    data_.reset();
    SS_TRY(build());
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

}  // namespace stepscope
