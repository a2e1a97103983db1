// Cross entropy of scores and labels, and its gradient: one block per row of classes. Terms of the loss are written first
// and added up in their order by one block. A label out of range counts as ignored and is told to the host.
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/row_parts.h"
#include "kernels/cuda/support.h"

namespace stepscope::cuda {
inline namespace cross_entropy_cu {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

enum class Reduction { kNone, kSum, kMean };

struct Labels {
  Global<const std::int64_t> wide;
  Global<const std::int32_t> narrow;
  Global<const float> weights;  // [classes], or absent
  std::int64_t classes = 0, ignored = 0;
  bool ignores = false;
  Complaint complaint;
};

// The label of a row, or -1 when it does not count. `tells`: whether this thread complains.
SS_DEVICE std::int64_t targetOf(const Labels& labels, std::int64_t row, bool tells) {
  const std::int64_t label =
      labels.wide.present() ? static_cast<std::int64_t>(labels.wide[row]) : static_cast<std::int64_t>(labels.narrow[row]);
  if (labels.ignores && label == labels.ignored) return -1;
  if (label >= 0 && label < labels.classes) return label;
  if (tells) labels.complaint.raise(row, label);
  return -1;
}
SS_DEVICE double weightOf(const Labels& labels, std::int64_t target) {
  return target < 0 ? 0.0 : labels.weights.present() ? static_cast<double>(labels.weights[target]) : 1.0;
}

// scores, logProbabilities?: [rows, classes]; terms, weights: [rows]. wide: as loadPart has it.
SS_GLOBAL void lossRows(Global<const float> scores, Labels labels, Global<float> logProbabilities, Global<double> terms,
                        Global<double> weights, bool wide) {
  const std::int64_t row = gpu::blockIndex(), width = labels.classes, at = row * width;
  const std::int64_t target = targetOf(labels, row, gpu::threadIndex() == 0);
  float max = kLowest;
  forEachPart(width, [&](std::int64_t j, auto n) {
    float part[decltype(n)::value];
    loadPart(scores, at + j, wide, part);
    for (const float one : part) max = Larger::of(max, one);
  });
  max = joinBlock<Larger>(max);
  float sum = 0;
  forEachPart(width, [&](std::int64_t j, auto n) {
    float part[decltype(n)::value];
    loadPart(scores, at + j, wide, part);
    for (const float one : part) sum += expf(one - max);
  });
  const float logSum = logf(joinBlock<Plus>(sum));
  if (gpu::threadIndex() == 0) {
    const double weight = weightOf(labels, target);
    terms[row] = target < 0 ? 0.0 : -weight * static_cast<double>(scores[at + target] - max - logSum);
    weights[row] = weight;
  }
  if (!logProbabilities.present()) return;
  forEachPart(width, [&](std::int64_t j, auto n) {
    float part[decltype(n)::value];
    loadPart(scores, at + j, wide, part);
    for (float& one : part) one = one - max - logSum;
    storePart(logProbabilities, at + j, wide, part);
  });
}

// weights[rows] of the labels alone.
SS_GLOBAL void labelWeights(Labels labels, Global<double> weights, std::int64_t rows) {
  const std::int64_t row = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (row < rows) weights[row] = weightOf(labels, targetOf(labels, row, true));
}

SS_DEVICE double sumOf(Global<const double> x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = gpu::threadIndex(); i < count; i += gpu::blockSize()) sum += x[i];
  return joinBlock<Plus>(sum);
}

// One block: the loss, and the sum of weights that a mean divides by.
SS_GLOBAL void joinTerms(Global<const double> terms, Global<const double> weights, Global<float> loss, std::int64_t rows,
                         bool mean) {
  const double sum = sumOf(terms, rows), total = sumOf(weights, rows);
  if (gpu::threadIndex() == 0) loss[0] = static_cast<float>(mean ? sum / total : sum);
}
SS_GLOBAL void copyTerms(Global<const double> terms, Global<float> loss, std::int64_t rows) {
  const std::int64_t row = gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex();
  if (row < rows) loss[row] = static_cast<float>(static_cast<double>(terms[row]));
}
SS_GLOBAL void joinWeights(Global<const double> weights, Global<double> total, std::int64_t rows) {
  const double sum = sumOf(weights, rows);
  if (gpu::threadIndex() == 0) total[0] = sum;
}

// dx = dy * weight / total * (exp(log_prob) - onehot) + addend?; dx may lie over log_prob. One block per row.
SS_GLOBAL void lossGradRows(Global<const float> dy, Global<const float> logProbabilities, Labels labels,
                            Global<const double> total, Global<const float> addend, Global<float> dx, bool perRow,
                            bool wide) {
  const std::int64_t row = gpu::blockIndex(), width = labels.classes, at = row * width;
  const std::int64_t target = targetOf(labels, row, false);
  const double share = total.present() ? static_cast<double>(total[0]) : 1.0;
  const double factor = target < 0 ? 0.0 : static_cast<double>(dy[perRow ? row : 0]) * weightOf(labels, target) / share;
  forEachPart(width, [&](std::int64_t j, auto n) {
    constexpr int kCount = decltype(n)::value;
    float value[kCount], added[kCount] = {};
    loadPart(logProbabilities, at + j, wide, value);
    if (addend.present()) loadPart(addend, at + j, wide, added);
    for (int e = 0; e < kCount; ++e) {
      const float p = value[e];
      value[e] = target < 0 ? 0.0F : static_cast<float>(factor) * (j + e == target ? expm1f(p) : expf(p));
      if (addend.present()) value[e] += added[e];
    }
    storePart(dx, at + j, wide, value);
  });
}

struct Loss {
  std::int64_t rows = 0, classes = 0;
  std::size_t labels = 0;  // position of the input; weights and the ignored label follow
  Reduction reduction = Reduction::kMean;
  std::optional<std::int64_t> ignored;
  bool wide = true;
  std::string op;

  // What the kernels know of the labels of one call, for one launch.
  Labels of(Launcher& gpu) const {
    Labels result;
    if (wide)
      result.wide = gpu.in<std::int64_t>(labels);
    else
      result.narrow = gpu.in<std::int32_t>(labels);
    result.weights = gpu.in<float>(labels + 1);
    result.classes = classes;
    std::optional<std::int64_t> skip = ignored;
    if (!skip && gpu.call().inputPresent(labels + 2)) skip = elementAsInt(gpu.call().inputs[labels + 2], 0);
    result.ignores = skip.has_value();
    result.ignored = skip.value_or(0);
    result.complaint = gpu.complaint([name = op, classes = classes, skip](std::int64_t row, std::int64_t label) {
      return invalid(fmt::format("{}: label {} at element {}; expected 0..{}{}", name, label, row, classes - 1,
                                 skip ? fmt::format(" or ignore_index {}", *skip) : ""))
          .value();
    });
    return result;
  }
  std::size_t rowBytes() const { return static_cast<std::size_t>(rows) * sizeof(double); }
};

Result<Loss> lossOf(const KernelSpec& spec, const OperandSpec& scores, std::size_t labels) {
  if (!takes(scores) || scores.dims.size() < 2) return notTaken(spec, "scores other than float32 rows");
  Loss loss;
  loss.classes = scores.dims[1];
  loss.rows = elementCount(scores.dims) / loss.classes;
  loss.labels = labels;
  loss.op = spec.op;
  if (loss.rows != scores.dims[0]) return notTaken(spec, "classes that are not the last axis");
  loss.wide = takesInput(spec, labels, DType::kI64);
  if (!loss.wide && !takesInput(spec, labels, DType::kI32)) return notTaken(spec, "labels other than integers");
  if (elementCount(spec.inputs[labels].dims) != loss.rows || !takesOptional(spec, labels + 1, loss.classes))
    return notTaken(spec, "labels or weights of another size");
  if (spec.inputPresent(labels + 2) && (!takesScalar(spec, labels + 2) || spec.inputs[labels + 2].space != Space::kHost))
    return notTaken(spec, "an ignored label that is no scalar of the host");
  const std::string reduction = spec.attrs.text("reduction", "mean");
  loss.reduction = reduction == "none" ? Reduction::kNone : reduction == "sum" ? Reduction::kSum : Reduction::kMean;
  if (spec.attrs.has("ignore_index")) loss.ignored = spec.attrs.integer("ignore_index", 0);
  return loss;
}

bool takesLoss(const Loss& loss, const OperandSpec& operand) {
  return takes(operand) && elementCount(operand.dims) == (loss.reduction == Reduction::kNone ? loss.rows : 1);
}

}  // namespace cross_entropy_cu

// scores, labels, weights?, ignored? → loss, log_prob?
Result<std::unique_ptr<Kernel>> makeCrossEntropy(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || spec.outputs.empty()) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Loss loss, lossOf(spec, spec.inputs[0], 1));
  if (!takesLoss(loss, spec.outputs[0]) || !takesOptionalOutput(spec, 1, loss.rows * loss.classes))
    return notTaken(spec, "results other than float32");
  const auto body = [=](Launcher& gpu) -> Status {
    const std::size_t bytes = loss.rowBytes();
    const KernelCall& call = gpu.call();
    const void* const logs = call.outputPresent(1) ? call.outputs[1].data : nullptr;
    SS_TRY(gpu.run("cross entropy: rows", gpu::function<lossRows>, loss.rows, threadsForRow(loss.classes), gpu.in<float>(0),
                   loss.of(gpu), gpu.out<float>(1), gpu.room<double>(0, loss.rows), gpu.room<double>(bytes, loss.rows),
                   movesQuads(loss.classes, {call.inputs[0].data, logs})));
    const auto terms = gpu.readRoom<double>(0, loss.rows);
    if (loss.reduction == Reduction::kNone)
      return gpu.run("cross entropy", gpu::function<copyTerms>, blocksFor(loss.rows), kThreads, terms, gpu.out<float>(0),
                     loss.rows);
    return gpu.run("cross entropy", gpu::function<joinTerms>, 1, threadsForRow(loss.rows), terms,
                   gpu.readRoom<double>(bytes, loss.rows), gpu.out<float>(0), loss.rows, loss.reduction == Reduction::kMean);
  };
  return makeLaunched("rows", body, 2 * loss.rowBytes());
}

// dy, log_prob, labels, weights?, ignored?, addend? → dscores
Result<std::unique_ptr<Kernel>> makeCrossEntropyGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 3) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Loss loss, lossOf(spec, spec.inputs[1], 2));
  if (!takesLoss(loss, spec.inputs[0]) || !takesOutput(spec, 0) ||
      elementCount(spec.outputs[0].dims) != loss.rows * loss.classes)
    return notTaken(spec, "operands of other sizes");
  if (!takesOptional(spec, 5, loss.rows * loss.classes)) return notTaken(spec, "an addend of another size or type");
  const bool mean = loss.reduction == Reduction::kMean;
  const auto body = [=](Launcher& gpu) -> Status {
    const std::size_t bytes = loss.rowBytes();
    if (mean) {
      SS_TRY(gpu.run("cross entropy gradient: weights", gpu::function<labelWeights>, blocksFor(loss.rows), kThreads,
                     loss.of(gpu), gpu.room<double>(0, loss.rows), loss.rows));
      SS_TRY(gpu.run("cross entropy gradient: total", gpu::function<joinWeights>, 1, threadsForRow(loss.rows),
                     gpu.readRoom<double>(0, loss.rows), gpu.room<double>(bytes, 1), loss.rows));
    }
    const KernelCall& call = gpu.call();
    const void* const addend = call.inputPresent(5) ? call.inputs[5].data : nullptr;
    const auto total = mean ? gpu.readRoom<double>(bytes, 1) : Global<const double>();
    return gpu.run("cross entropy gradient", gpu::function<lossGradRows>, loss.rows, threadsForRow(loss.classes),
                   gpu.in<float>(0), gpu.in<float>(1), loss.of(gpu), total, gpu.in<float>(5), gpu.out<float>(0),
                   loss.reduction == Reduction::kNone,
                   movesQuads(loss.classes, {call.inputs[1].data, addend, call.outputs[0].data}));
  };
  return makeLaunched("rows", body, mean ? loss.rowBytes() + sizeof(double) : 0);
}

}  // namespace stepscope::cuda
