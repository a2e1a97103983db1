// Cross entropy and negative log likelihood with their gradients: rows where the classes are the last axis, blocks of columns where
// more axes follow, as in segmentation. A label out of range, which the reference kernel names, is left to it.
#include <array>
#include <cmath>
#include <limits>
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

constexpr std::int64_t kBlock = 256;  // columns that are worked on side by side

// Classes of images are far apart, often by a power of two, so that few fit into a cache at once: they are read once, into rows of
// kBlock.
void copyColumns(const float* x, std::int64_t classes, std::int64_t step, float* y, std::int64_t n) {
  for (std::int64_t c = 0; c < classes; ++c) std::copy_n(x + c * step, n, y + c * kBlock);
}

// Columns in rows of kBlock: log(sum of e^x) per column as its largest score and the rest.
SS_CLONES void columnSums(const float* x, std::int64_t classes, float* max, double* logSum, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) logSum[j] = 0;
  for (std::int64_t j = 0; j < n; ++j) max[j] = -std::numeric_limits<float>::infinity();
  for (std::int64_t c = 0; c < classes; ++c)
    for (std::int64_t j = 0; j < n; ++j) max[j] = x[c * kBlock + j] > max[j] ? x[c * kBlock + j] : max[j];
  for (std::int64_t c = 0; c < classes; ++c)
    for (std::int64_t j = 0; j < n; ++j) logSum[j] += static_cast<double>(expOf(x[c * kBlock + j] - max[j]));
  for (std::int64_t j = 0; j < n; ++j) logSum[j] = std::log(logSum[j]);
}

SS_CLONES void columnLogProbabilities(const float* x, const float* max, const double* logSum, float* y, std::int64_t classes, std::int64_t step,
                                      std::int64_t n) {
  for (std::int64_t c = 0; c < classes; ++c)
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) y[c * step + j] = x[c * kBlock + j] - max[j] - static_cast<float>(logSum[j]);
}

// Factor 0 leaves zeros, whatever the probability.
SS_CLONES void columnProbabilities(const float* logProbability, const float* factor, float* y, std::int64_t classes, std::int64_t step, std::int64_t n) {
  for (std::int64_t c = 0; c < classes; ++c)
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) {
      const float value = factor[j] * expOf(logProbability[c * step + j]);
      y[c * step + j] = factor[j] == 0 ? 0.0F : value;
    }
}

enum class Reduction { kNone, kSum, kMean };

struct Loss {
  std::int64_t rows = 0, classes = 0;               // terms of the loss, and scores of each
  std::int64_t inner = 1;                           // scores [rows / inner, classes, inner]
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
  std::int64_t elements() const { return rows * classes; }
  // The first score of a term; the others follow `inner` apart.
  std::int64_t at(std::int64_t row) const { return row / inner * classes * inner + row % inner; }
  std::int64_t blocks() const { return (inner + kBlock - 1) / kBlock; }  // of columns, in an image
  int parts() const { return partsOf(rows / inner * blocks(), classes * std::min(kBlock, inner), threads); }
  // visit(part, first term, count) for blocks of columns: terms that follow one another in memory.
  template <typename Visit>
  void columns(Visit&& visit) const {
    parallelParts(rows / inner * blocks(), parts(), 1, [&](int part, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t column = i % blocks() * kBlock;
        visit(part, i / blocks() * inner + column, std::min(kBlock, inner - column));
      }
    });
  }
  double share(const KernelCall& call, std::int64_t target, double total) const { return weight(call, target) / (reduction == Reduction::kMean ? total : 1.0); }
};

Result<Loss> lossOf(const KernelSpec& spec, const OperandSpec& scores, std::size_t labels) {
  Loss loss;
  if (!takes(scores) || scores.dims.size() < 2) return notTaken(spec, "scores other than float32 rows");
  loss.classes = scores.dims[1];
  loss.inner = elementCount(std::span<const std::int64_t>(scores.dims).subspan(2));
  loss.rows = scores.dims[0] * loss.inner;
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

// Per row: the target and the term of the loss; of columns, a block for each thread.
std::size_t forwardBytes(const Loss& loss) {
  const std::int64_t block = loss.inner > 1 ? loss.parts() * loss.classes * kBlock : 0;
  return static_cast<std::size_t>(loss.rows) * (sizeof(std::int64_t) + sizeof(double)) + static_cast<std::size_t>(block) * sizeof(float);
}

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
  if (!takesLoss(spec, loss, spec.outputs[0]) || !takesOptionalOutput(spec, 1, loss.elements())) return notTaken(spec, "results other than float32");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const bool takesScores = spec.op.starts_with("Softmax");
  const auto body = [=](const KernelCall& call) -> Status {
    auto* targets = reinterpret_cast<std::int64_t*>(call.workspace.data());
    auto* terms = reinterpret_cast<double*>(targets + loss.rows);
    const auto total = loss.targets(call, targets);
    if (!total) return reference->run(call);
    const float* x = input(call, 0);
    float* logProbability = call.outputPresent(1) ? output(call, 1) : nullptr;
    if (loss.inner > 1) {
      loss.columns([&](int part, std::int64_t first, std::int64_t n) {
        float* block = reinterpret_cast<float*>(terms + loss.rows) + part * loss.classes * kBlock;
        std::array<float, kBlock> max{};
        std::array<double, kBlock> logSum{};
        const float* scores = x + loss.at(first);
        if (takesScores) {
          copyColumns(scores, loss.classes, loss.inner, block, n);
          columnSums(block, loss.classes, max.data(), logSum.data(), n);
        }
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t target = targets[first + j];
          const auto k = static_cast<std::size_t>(j);
          terms[first + j] = target < 0 ? 0.0 : static_cast<double>(scores[target * loss.inner + j]) - static_cast<double>(max[k]) - logSum[k];
        }
        if (takesScores && logProbability != nullptr)
          columnLogProbabilities(block, max.data(), logSum.data(), logProbability + loss.at(first), loss.classes, loss.inner, n);
      });
      store(loss, call, targets, terms, *total);
      return {};
    }
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
  if (!takesLoss(spec, loss, spec.inputs[0]) || (ofScores && (!takesInput(spec, 1) || elementCount(spec.inputs[1].dims) != loss.elements())))
    return notTaken(spec, "operands of another size or type");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=](const KernelCall& call) -> Status {
    auto* targets = reinterpret_cast<std::int64_t*>(call.workspace.data());
    const auto total = loss.targets(call, targets);
    if (!total) return reference->run(call);
    const float *dy = input(call, 0), *logProbability = ofScores ? input(call, 1) : nullptr;
    float* dx = output(call, 0);
    if (loss.inner > 1) {
      loss.columns([&](int, std::int64_t first, std::int64_t n) {
        std::array<float, kBlock> factors{}, own{};
        const float* p = ofScores ? logProbability + loss.at(first) : nullptr;
        float* y = dx + loss.at(first);
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t target = targets[first + j];
          const double factor =
              target < 0 ? 0.0 : static_cast<double>(dy[loss.reduction == Reduction::kNone ? first + j : 0]) * loss.share(call, target, *total);
          const double slope = !ofScores || target < 0 ? -1.0 : std::expm1(static_cast<double>(p[target * loss.inner + j]));
          factors[static_cast<std::size_t>(j)] = static_cast<float>(factor);
          own[static_cast<std::size_t>(j)] = static_cast<float>(factor * slope);
        }
        if (ofScores)
          columnProbabilities(p, factors.data(), y, loss.classes, loss.inner, n);
        else
          for (std::int64_t c = 0; c < loss.classes; ++c) std::fill_n(y + c * loss.inner, n, 0.0F);
        for (std::int64_t j = 0; j < n; ++j)
          if (targets[first + j] >= 0) y[targets[first + j] * loss.inner + j] = own[static_cast<std::size_t>(j)];
      });
      return {};
    }
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
