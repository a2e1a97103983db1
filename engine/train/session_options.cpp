// Options that change while a model is built: when they take effect, and the proof that they changed no number.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "engine/train/compare_tensors.h"
#include "engine/train/session.h"
#include "engine/train/utf8.h"

namespace stepscope {
namespace {

// How a step is run, not what it computes: two plans that differ in these leave the same numbers behind, or nearly.
bool isOptimisation(std::string_view name) {
  return name.starts_with("pass.") || name.starts_with("memory.") || name.starts_with("recompute.") || name == "kernels" ||
         name == "threads";
}

std::string valueOf(const TrainOptions& options, const std::string& name) {
  const auto it = options.origins.find(name);
  if (it != options.origins.end()) return it->second.value;
  const auto& table = optionTable();
  const auto info = std::find_if(table.begin(), table.end(), [&](const OptionInfo& o) { return o.name == name; });
  return info == table.end() ? std::string() : std::string(info->defaultValue);
}

std::vector<std::string> changedNames(const TrainOptions& a, const TrainOptions& b) {
  std::set<std::string> names;
  for (const auto* options : {&a, &b})
    for (const auto& [name, origin] : options->origins)
      if (valueOf(a, name) != valueOf(b, name)) names.insert(name);
  return {names.begin(), names.end()};
}

std::int64_t freeMemory() { return static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

}  // namespace

Status Session::setOptions(TrainOptions options) {
  SS_TRY(checkOptions(options));
  if (variant_) {
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
  if (!pending_ || inStep_ || !variant_ || !data_ || forwardOnly_) return {};
  const TrainOptions before = options_;
  const std::vector<std::string> changed = changedNames(before, *pending_);
  snapshot::OptionProof proof;
  proof.set_step(state_.step);
  for (const std::string& name : changed)
    proof.set_change(toUtf8(
        fmt::format("{}{}{} = {}", proof.change(), proof.change().empty() ? "" : ", ", name, valueOf(*pending_, name))));
  const bool prove = !changed.empty() && std::all_of(changed.begin(), changed.end(),
                                                     [](const std::string& name) { return isOptimisation(name); });
  std::int64_t stateBytes = 0;
  for (const auto& [name, tensor] : state_.tensors) stateBytes += static_cast<std::int64_t>(tensor.bytes());
  std::optional<StepOutcome> old;
  const StateSnapshot start = prove && 2 * stateBytes < freeMemory() ? state_.copy() : StateSnapshot{};
  if (!prove) {
    proof.set_unavailable("settings of the training were changed: other numbers are wanted");
  } else if (start.tensors.empty()) {
    proof.set_unavailable(fmt::format("the state, {} bytes, does not fit into memory twice more", stateBytes));
  } else if (auto ran = trialStep(start); ran) {
    old = std::move(*ran);
  } else {
    proof.set_unavailable(toUtf8(ran.error().message));
  }
  proof.set_before_peak_bytes(variant_->livePeak);
  takePending();
  if (Status built = build(); !built) {
    // The plan that ran before is made again: a session is never left without one.
    options_ = before;
    data_.reset();
    SS_TRY(build());
    return built;
  }
  proof.set_after_peak_bytes(variant_->livePeak);
  if (old) {
    if (auto ran = trialStep(start); ran) {
      compareOutcomes(*old, *ran, proof);
    } else {
      proof.set_unavailable(toUtf8(ran.error().message));
    }
  }
  optionProof_ = std::move(proof);
  return {};
}

// Runs the coming step and puts the state back. What it leaves behind is the copy of the state that it would have made.
Result<Session::StepOutcome> Session::trialStep(const StateSnapshot& start) {
  SS_ASSIGN(const Batch batch, data_->batch(state_.step));
  SS_TRY(useVariantFor(batch));
  batch_ = batch;
  Executor& executor = *variant_->executor;
  SS_TRY(feed(batch));
  std::vector<Span> spans;
  spans.reserve(executor.plan().instructions.size());
  Executor::RunOptions options = runOptions();
  options.spans = &spans;
  options.cancel = &cancelled_;
  const auto ran = executor.run(0, static_cast<int>(executor.plan().instructions.size()), options);
  StepOutcome outcome;
  if (ran) {
    outcome.loss = executor.view(loss_).data ? elementAsDouble(executor.view(loss_), 0) : 0;
    writeNextState(options.update, false);
    outcome.state = state_.copy();
    outcome.ns = std::accumulate(spans.begin(), spans.end(), 0.0, [](double sum, const Span& span) {
      return sum + static_cast<double>(span.end - span.begin);
    });
  }
  state_.restore(start);
  if (!ran) return tl::make_unexpected(ran.error());
  return outcome;
}

void Session::compareOutcomes(const StepOutcome& before, const StepOutcome& after, snapshot::OptionProof& proof) {
  proof.set_before_ns(before.ns);
  proof.set_after_ns(after.ns);
  const auto add = [&](const snapshot::ComparisonResult& result) {
    proof.set_values(proof.values() + 1);
    if (result.equal_bits()) return;
    proof.set_differing(proof.differing() + 1);
    if (proof.worst().empty() || result.max_abs() > proof.max_abs()) {
      proof.set_worst(result.name());
      proof.set_max_abs(result.max_abs());
    }
  };
  const Tensor a = Tensor::scalar(DType::kF64, before.loss), b = Tensor::scalar(DType::kF64, after.loss);
  add(compareTensors("loss", a.view(), b.view()));
  for (const auto& [name, tensor] : before.state.tensors)
    if (const auto it = after.state.tensors.find(name); it != after.state.tensors.end())
      add(compareTensors(name, tensor.view(), it->second.view()));
  proof.set_equal(proof.differing() == 0);
}

}  // namespace stepscope
