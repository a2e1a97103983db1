// Cross entropy and negative log likelihood with their gradients where the classes are the last axis. A label out of range, which the
// reference kernel names, is left to it.
#include <cmath>
#include <optional>

#include "kernels/cpu/loops/rows.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

SS_CLONES void logProbabilities(const float* x, float max, float logSum, float* y, std::int64_t width) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < width; ++j) y[j] = x[j] - max - logSum;
}

SS_CLONES void scaledProbabilities(const float* logProbability, float factor, float* y, std::int64_t width) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < width; ++j) y[j] = factor * expOf(logProbability[j]);
}

enum class Reduction { kNone, kSum, kMean };

struct Loss {
  std::int64_t rows = 0, classes = 0;
  std::size_t labels = 0, weights = 0, ignore = 0;  // positions of inputs
  Reduction reduction = Reduction::kMean;
  bool wide = true;  // int64 labels
  std::optional<std::int64_t> ignored;
  int threads = 1;

  std::int64_t label(const KernelCall& call, std::int64_t row) const {
    return wide ? input<std::int64_t>(call, labels)[row] : input<std::int32_t>(call, labels)[row];
  }
  std::optional<std::int64_t> ignoredLabel(const KernelCall& call) const {
    return !ignored && call.inputPresent(ignore) ? std::optional(elementAsInt(call.inputs[ignore], 0)) : ignored;
  }
  double weight(const KernelCall& call, std::int64_t target) const {
    return target < 0 ? 0.0 : call.inputPresent(weights) ? static_cast<double>(input(call, weights)[target]) : 1.0;
  }
  // The labels into `targets`, -1 for those ignored; the sum of the weights of the others, nothing where a label is out of range.
  std::optional<double> targets(const KernelCall& call, std::int64_t* targets) const {
    const auto skip = ignoredLabel(call);
    double total = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t value = label(call, row);
      const bool skipped = skip && value == *skip;
      if (!skipped && (value < 0 || value >= classes)) return std::nullopt;
      targets[row] = skipped ? -1 : value;
      total += weight(call, targets[row]);
    }
    return total;
  }
  double share(const KernelCall& call, std::int64_t target, double total) const { return weight(call, target) / (reduction == Reduction::kMean ? total : 1.0); }
};

Result<Loss> lossOf(const KernelSpec& spec, const OperandSpec& scores, std::size_t labels) {
  Loss loss;
  if (!takes(scores) || scores.dims.size() < 2) return notTaken(spec, "scores other than float32 rows");
  loss.rows = scores.dims[0];
  loss.classes = scores.dims[1];
  if (elementCount(scores.dims) != loss.rows * loss.classes) return notTaken(spec, "classes that are not the last axis");
  loss.labels = labels;
  loss.weights = labels + 1;
  loss.ignore = labels + 2;
  loss.wide = takesInput(spec, labels, DType::kI64);
  if (!loss.wide && !takesInput(spec, labels, DType::kI32)) return notTaken(spec, "labels other than integers");
  if (elementCount(spec.inputs[labels].dims) != loss.rows || !takesOptional(spec, loss.weights, loss.classes))
    return notTaken(spec, "labels or weights of another size");
  if (spec.inputPresent(loss.ignore) && !takesScalar(spec, loss.ignore)) return notTaken(spec, "an ignored label that is no scalar");
  const std::string reduction = spec.attrs.text("reduction", "mean");
  loss.reduction = reduction == "none" ? Reduction::kNone : reduction == "sum" ? Reduction::kSum : Reduction::kMean;
  if (spec.attrs.has("ignore_index")) loss.ignored = spec.attrs.integer("ignore_index", 0);
  loss.threads = spec.threads;
  return loss;
}

// Per row: the target and the term of the loss.
std::size_t forwardBytes(const Loss& loss) { return static_cast<std::size_t>(loss.rows) * (sizeof(std::int64_t) + sizeof(double)); }

void store(const Loss& loss, const KernelCall& call, const std::int64_t* targets, const double* logProbability, double totalWeight) {
  float* y = output(call, 0);
  double total = 0;
  for (std::int64_t row = 0; row < loss.rows; ++row) {
    const double term = targets[row] < 0 ? 0.0 : -loss.weight(call, targets[row]) * logProbability[row];
    if (loss.reduction == Reduction::kNone) y[row] = static_cast<float>(term);
    total += term;
  }
  if (loss.reduction == Reduction::kSum) y[0] = static_cast<float>(total);
  if (loss.reduction == Reduction::kMean) y[0] = static_cast<float>(total / totalWeight);
}

bool takesLoss(const KernelSpec& spec, const Loss& loss, const OperandSpec& operand) {
  return takes(operand) && elementCount(operand.dims) == (loss.reduction == Reduction::kNone ? loss.rows : 1) && !spec.outputs.empty();
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeCrossEntropy(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || spec.outputs.empty()) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Loss loss, lossOf(spec, spec.inputs[0], 1));
  if (!takesLoss(spec, loss, spec.outputs[0]) || !takesOptionalOutput(spec, 1, loss.rows * loss.classes)) return notTaken(spec, "results other than float32");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const bool takesScores = spec.op.starts_with("Softmax");
  const auto body = [=](const KernelCall& call) -> Status {
    auto* targets = reinterpret_cast<std::int64_t*>(call.workspace.data());
    auto* terms = reinterpret_cast<double*>(targets + loss.rows);
    const auto total = loss.targets(call, targets);
    if (!total) return reference->run(call);
    const float* x = input(call, 0);
    float* logProbability = call.outputPresent(1) ? output(call, 1) : nullptr;
    parallelRows(loss.rows, takesScores ? loss.classes : 1, loss.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const float* scores = x + row * loss.classes;
        terms[row] = targets[row] < 0 ? 0.0 : static_cast<double>(scores[targets[row]]);
        if (!takesScores || (logProbability == nullptr && targets[row] < 0)) continue;
        const RowSum s = rowSum(scores, loss.classes);
        const double logSum = std::log(s.sum);
        terms[row] -= static_cast<double>(s.max) + logSum;
        if (logProbability != nullptr) logProbabilities(scores, s.max, static_cast<float>(logSum), logProbability + row * loss.classes, loss.classes);
      }
    });
    store(loss, call, targets, terms, *total);
    return {};
  };
  return makeBodyKernel("vector rows", body, forwardBytes(loss));
}

// dy, log_prob (cross entropy) or the shape of x, labels, weights?, ignore_index? → dx
Result<std::unique_ptr<Kernel>> makeCrossEntropyGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 3 || spec.outputs.empty()) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Loss loss, lossOf(spec, spec.outputs[0], 2));
  const bool ofScores = spec.op.starts_with("Softmax");
  if (!takesLoss(spec, loss, spec.inputs[0]) || (ofScores && (!takesInput(spec, 1) || elementCount(spec.inputs[1].dims) != loss.rows * loss.classes)))
    return notTaken(spec, "operands of another size or type");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=](const KernelCall& call) -> Status {
    auto* targets = reinterpret_cast<std::int64_t*>(call.workspace.data());
    const auto total = loss.targets(call, targets);
    if (!total) return reference->run(call);
    const float *dy = input(call, 0), *logProbability = ofScores ? input(call, 1) : nullptr;
    float* dx = output(call, 0);
    parallelRows(loss.rows, loss.classes, loss.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t target = targets[row];
        float* y = dx + row * loss.classes;
        if (target < 0) {
          std::fill_n(y, loss.classes, 0.0F);
          continue;
        }
        const double factor = static_cast<double>(dy[loss.reduction == Reduction::kNone ? row : 0]) * loss.share(call, target, *total);
        if (!ofScores) {
          std::fill_n(y, loss.classes, 0.0F);
          y[target] = static_cast<float>(-factor);
          continue;
        }
        const float* p = logProbability + row * loss.classes;
        const auto own = static_cast<float>(factor * std::expm1(static_cast<double>(p[target])));
        scaledProbabilities(p, static_cast<float>(factor), y, loss.classes);
        y[target] = own;
      }
    });
    return {};
  };
  return makeBodyKernel("vector rows", body, static_cast<std::size_t>(loss.rows) * sizeof(std::int64_t));
}

}  // namespace stepscope::cpu
