#include "engine/lab/option_proof.h"

#include <algorithm>
#include <set>

#include "engine/profile/compare_tensors.h"

namespace stepscope {
namespace {

// Counts what differs, and names the value that differs most. Indices differ by any number where two values tie: one is
// named only where no floating number differs.
class Differences {
 public:
  explicit Differences(snapshot::OptionProof& proof) : proof_(proof) {}
  ~Differences() { proof_.set_equal(proof_.differing() == 0); }

  void add(const std::string& name, const TensorView& before, const TensorView& after) {
    proof_.set_values(proof_.values() + 1);
    const snapshot::ComparisonResult result = compareTensors(name, before, after);
    if (result.equal_bits()) return;
    proof_.set_differing(proof_.differing() + 1);
    const bool floating = isFloating(before.dtype);
    if (floating < floating_ || (floating == floating_ && named_ && !(result.max_abs() > proof_.max_abs()))) return;
    named_ = true;
    floating_ = floating;
    proof_.set_worst(name);
    proof_.set_max_abs(result.max_abs());
  }

 private:
  snapshot::OptionProof& proof_;
  bool named_ = false, floating_ = false;  // what is named
};

std::int64_t arenaOf(const ExecutionPlan& plan) { return plan.arenaBytes + plan.hostArenaBytes; }

}  // namespace

bool isOptimisation(std::string_view name) {
  return name.starts_with("pass.") || name.starts_with("memory.") || name.starts_with("recompute.") || name == "kernels" ||
         name == "threads" || name == "deterministic" || name == "subnormals" || name == "precision" ||
         name == "precision.force" || name.starts_with("cuda.") || name == "streams.partition";
}

std::string optionValue(const TrainOptions& options, const std::string& name, const std::vector<OptionInfo>& table) {
  const auto it = options.origins.find(name);
  if (it != options.origins.end()) return it->second.value;
  const auto info = std::find_if(table.begin(), table.end(), [&](const OptionInfo& o) { return o.name == name; });
  return info == table.end() ? std::string() : std::string(info->defaultValue);
}

std::vector<std::string> changedOptions(const TrainOptions& a, const TrainOptions& b, const std::vector<OptionInfo>& table) {
  std::set<std::string> names;
  for (const auto* options : {&a, &b})
    for (const auto& [name, origin] : options->origins)
      if (optionValue(a, name, table) != optionValue(b, name, table)) names.insert(name);
  return {names.begin(), names.end()};
}

void setMemoryBefore(const Stepper& stepper, snapshot::OptionProof& proof) {
  proof.set_before_peak_bytes(stepper.variant().plan.lowerBoundBytes);
  proof.set_before_arena_bytes(arenaOf(stepper.plan()));
}

void setMemoryAfter(const Stepper& stepper, snapshot::OptionProof& proof) {
  proof.set_after_peak_bytes(stepper.variant().plan.lowerBoundBytes);
  proof.set_after_arena_bytes(arenaOf(stepper.plan()));
}

void compareOutcomes(const StepOutcome& before, const StepOutcome& after, snapshot::OptionProof& proof) {
  proof.set_before_ns(before.ns);
  proof.set_after_ns(after.ns);
  const Tensor a = Tensor::scalar(DType::kF64, before.loss), b = Tensor::scalar(DType::kF64, after.loss);
  Differences differences(proof);
  differences.add("loss", a.view(), b.view());
  for (const auto& [name, tensor] : before.state.tensors)
    if (const auto it = after.state.tensors.find(name); it != after.state.tensors.end())
      differences.add(name, tensor.view(), it->second.view());
}

void compareSteppers(const Stepper& old, int position, const Stepper& next, snapshot::OptionProof& proof) {
  const auto sum = [](const std::vector<Span>& spans) {
    double ns = 0;
    for (const Span& span : spans) ns += static_cast<double>(span.end - span.begin);
    return ns;
  };
  proof.set_instruction(next.next());
  proof.set_before_ns(sum(old.lastSpans()));
  proof.set_after_ns(sum(next.lastSpans()));
  setMemoryBefore(old, proof);
  setMemoryAfter(next, proof);
  const ExecutionPlan& plan = old.plan();
  Differences differences(proof);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const ValueId id = plan.buffers[b].value;
    if (!id || old.graph().value(id).role != ValueRole::kNodeOutput) continue;
    if (plan.buffers[static_cast<std::size_t>(plan.root(static_cast<int>(b)))].home == Home::kState) continue;
    if (!old.executor().unavailable(id, position).empty()) continue;
    const ValueId same = next.keys().find(old.keys().keyOf(id));
    if (!same || !next.executor().unavailable(same, next.next()).empty()) continue;
    const auto before = old.executor().read(id), after = next.executor().read(same);
    if (before && after) differences.add(old.graph().value(id).name, before->view(), after->view());
  }
}

}  // namespace stepscope
