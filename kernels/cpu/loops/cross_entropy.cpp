// Cross entropy and negative log likelihood with their gradients: rows where the classes are the last axis, blocks of
// columns where more axes follow, as in segmentation. A label out of range, which the reference kernel names, is left to it.
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/cpu/loops/rows.h"
#include "kernels/cpu/loops/summed_parts.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/wide_math.h"

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

constexpr std::int64_t kBlock = 256;      // columns that are worked on side by side
constexpr std::int64_t kSumClasses = 64;  // powers that are summed in float before they join a double

// Classes of images are far apart, often by a power of two, so that few fit into a cache at once: they are read once, into
// rows of kBlock.
void copyColumns(const float* x, std::int64_t classes, std::int64_t step, float* y, std::int64_t n) {
  for (std::int64_t c = 0; c < classes; ++c) std::copy_n(x + c * step, n, y + c * kBlock);
}

// And written once, past the caches where they would not hold them.
void storeColumns(const float* x, std::int64_t classes, std::int64_t step, bool streams, float* y, std::int64_t n) {
  for (std::int64_t c = 0; c < classes; ++c) {
    if (streams)
      streamCopy(y + c * step, x + c * kBlock, n);
    else
      std::copy_n(x + c * kBlock, n, y + c * step);
  }
}

// Columns in rows of kBlock: log(sum of e^x) per column as its largest score and the rest.
SS_CLONES void columnSums(const float* x, std::int64_t classes, float* max, double* logSum, std::int64_t n) {
  std::array<float, kBlock> part;
  for (std::int64_t j = 0; j < n; ++j) logSum[j] = 0;
  for (std::int64_t j = 0; j < n; ++j) max[j] = -std::numeric_limits<float>::infinity();
  for (std::int64_t c = 0; c < classes; ++c)
    for (std::int64_t j = 0; j < n; ++j) max[j] = x[c * kBlock + j] > max[j] ? x[c * kBlock + j] : max[j];
  for (std::int64_t first = 0; first < classes; first += kSumClasses) {
    part.fill(0);
    for (std::int64_t c = first; c < std::min(first + kSumClasses, classes); ++c)
      for (std::int64_t j = 0; j < n; ++j) part[static_cast<std::size_t>(j)] += expOf(x[c * kBlock + j] - max[j]);
    for (std::int64_t j = 0; j < n; ++j) logSum[j] += static_cast<double>(part[static_cast<std::size_t>(j)]);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const double sum = logSum[j], log = logOfPositive(sum);
    logSum[j] = sum > 0 ? log : sum;  // a NaN stays one
  }
}

SS_CLONES void columnLogProbabilities(float* x, const float* max, const double* logSum, std::int64_t classes,
                                      std::int64_t n) {
  for (std::int64_t c = 0; c < classes; ++c)
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) x[c * kBlock + j] = x[c * kBlock + j] - max[j] - static_cast<float>(logSum[j]);
}

// Factor 0 leaves zeros, whatever the probability.
SS_CLONES void columnProbabilities(float* x, const float* factor, std::int64_t classes, std::int64_t n) {
  for (std::int64_t c = 0; c < classes; ++c)
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) {
      const float value = factor[j] * expOf(x[c * kBlock + j]);
      x[c * kBlock + j] = factor[j] == 0 ? 0.0F : value;
    }
}

// y = factor (p - 1) for the logarithms of the labels' probabilities.
SS_CLONES void ownSlopes(const float* logProbability, const float* factor, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const float value = factor[j] * expm1Of(logProbability[j]);
    y[j] = factor[j] == 0 ? 0.0F : value;
  }
}

// -1 for labels that are ignored.
struct Checked {
  std::int64_t kept = 0, wrong = 0;
};
template <typename T>
SS_CLONES Checked checkLabels(const T* labels, std::int64_t classes, bool skips, std::int64_t skip, std::int64_t* targets,
                              std::int64_t n) {
  std::int64_t kept = 0, wrong = 0;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    const auto label = static_cast<std::int64_t>(labels[j]);
    const bool skipped = skips && label == skip, outside = label < 0 || label >= classes;
    targets[j] = skipped ? -1 : label;
    kept += skipped ? 0 : 1;
    wrong += !skipped && outside ? 1 : 0;
  }
  return {kept, wrong};
}

// In lanes of its own, so that a build that does not vectorise sums in the same order.
SS_CLONES double sumOf(const double* x, std::int64_t n) {
  constexpr std::int64_t kSums = 8;
  std::array<double, kSums> sums{};
  for (std::int64_t i = 0; i < n; ++i) sums[static_cast<std::size_t>(i % kSums)] += x[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
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
  Parts summed;  // of the terms, where they are added up

  std::optional<std::int64_t> ignoredLabel(const KernelCall& call) const {
    return !ignored && call.inputPresent(ignore) ? std::optional(elementAsInt(call.inputs[ignore], 0)) : ignored;
  }
  double weight(const KernelCall& call, std::int64_t target) const {
    return target < 0 ? 0.0 : call.inputPresent(weights) ? static_cast<double>(input(call, weights)[target]) : 1.0;
  }
  // The labels into `targets`, -1 for those ignored; the sum of the weights of the others, nothing where a label is out of
  // range. `sums`: one for each part.
  std::optional<double> targets(const KernelCall& call, std::int64_t* targets, double* sums) const {
    const auto skip = ignoredLabel(call);
    std::atomic<bool> good{true};
    parallelParts(rows, summed, 1, [&](int part, std::int64_t begin, std::int64_t end) {
      const Checked found = wide ? checkLabels(input<std::int64_t>(call, labels) + begin, classes, skip.has_value(),
                                               skip.value_or(0), targets + begin, end - begin)
                                 : checkLabels(input<std::int32_t>(call, labels) + begin, classes, skip.has_value(),
                                               skip.value_or(0), targets + begin, end - begin);
      sums[part] = static_cast<double>(found.kept);
      if (found.wrong > 0) good = false;
      if (found.wrong > 0 || !call.inputPresent(weights)) return;
      sums[part] = 0;
      for (std::int64_t row = begin; row < end; ++row) sums[part] += weight(call, targets[row]);
    });
    if (!good) return std::nullopt;
    double total = 0;
    for (int part = 0; part < summed; ++part) total += sums[part];
    return total;
  }
  // Whether the sums over all terms are cut by the number of threads.
  bool cut() const { return sumCutByThreads(rows, 1); }
  std::size_t partBytes() const { return static_cast<std::size_t>(summed) * sizeof(double); }
  // Columns in rows of kBlock, for each thread.
  std::size_t blockBytes() const {
    return inner > 1 ? static_cast<std::size_t>(parts() * classes * kBlock) * sizeof(float) : 0;
  }
  std::int64_t elements() const { return rows * classes; }
  bool streams() const { return elements() * static_cast<std::int64_t>(sizeof(float)) >= kStreamBytes; }
  // The first score of a term; the others follow `inner` apart.
  std::int64_t at(std::int64_t row) const { return row / inner * classes * inner + row % inner; }
  std::int64_t blocks() const { return (inner + kBlock - 1) / kBlock; }  // of columns, in an image
  Parts parts() const { return partsOf(rows / inner * blocks(), classes * std::min(kBlock, inner), threads); }
  // visit(part, first term, count) for blocks of columns: terms that follow one another in memory.
  template <typename Visit>
  void columns(Visit&& visit) const {
    parallelParts(rows / inner * blocks(), parts(), 1, [&](int part, std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t column = i % blocks() * kBlock;
        visit(part, i / blocks() * inner + column, std::min(kBlock, inner - column));
      }
      finishStreams();
    });
  }
  double share(const KernelCall& call, std::int64_t target, double total) const {
    return weight(call, target) / (reduction == Reduction::kMean ? total : 1.0);
  }
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
  if (spec.inputPresent(loss.ignore) && !takesScalar(spec, loss.ignore))
    return notTaken(spec, "an ignored label that is no scalar");
  const std::string reduction = spec.attrs.text("reduction", "mean");
  loss.reduction = reduction == "none" ? Reduction::kNone : reduction == "sum" ? Reduction::kSum : Reduction::kMean;
  if (spec.attrs.has("ignore_index")) loss.ignored = spec.attrs.integer("ignore_index", 0);
  loss.threads = spec.threads;
  loss.summed = summedParts(loss.rows, 1, spec.threads);
  return loss;
}

// Numbers of rows, then sums of parts, then blocks: where they stand in the workspace.
struct Room {
  std::int64_t* targets;
  double *terms, *sums;
  float* blocks;
  Room(const Loss& loss, const KernelCall& call, bool withTerms)
      : targets(reinterpret_cast<std::int64_t*>(call.workspace.data())),
        terms(reinterpret_cast<double*>(targets + loss.rows)),
        sums(terms + (withTerms ? loss.rows : 0)),
        blocks(reinterpret_cast<float*>(sums + loss.summed)) {}
  static std::size_t bytes(const Loss& loss, bool withTerms) {
    return static_cast<std::size_t>(loss.rows) * (sizeof(std::int64_t) + (withTerms ? sizeof(double) : 0)) +
           loss.partBytes() + loss.blockBytes();
  }
};

// Logarithms of probabilities become terms of the loss.
void store(const Loss& loss, const KernelCall& call, const Room& room, double totalWeight) {
  float* y = output(call, 0);
  const bool weighted = call.inputPresent(loss.weights);
  parallelParts(loss.rows, loss.summed, 1, [&](int part, std::int64_t begin, std::int64_t end) {
    if (weighted)
      for (std::int64_t row = begin; row < end; ++row)
        if (room.targets[row] >= 0) room.terms[row] *= loss.weight(call, room.targets[row]);
    if (loss.reduction == Reduction::kNone)
      for (std::int64_t row = begin; row < end; ++row)
        y[row] = room.targets[row] < 0 ? 0.0F : static_cast<float>(-room.terms[row]);
    else
      room.sums[part] = sumOf(room.terms + begin, end - begin);
  });
  if (loss.reduction == Reduction::kNone) return;
  double total = 0;
  for (int part = 0; part < loss.summed; ++part) total -= room.sums[part];
  y[0] = static_cast<float>(loss.reduction == Reduction::kSum ? total : total / totalWeight);
}

SS_CLONES void addAddend(const float* addend, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] += addend[i];
}

bool takesLoss(const KernelSpec& spec, const Loss& loss, const OperandSpec& operand) {
  return takes(operand) && elementCount(operand.dims) == (loss.reduction == Reduction::kNone ? loss.rows : 1) &&
         !spec.outputs.empty();
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeCrossEntropy(const KernelSpec& spec) {
  if (spec.inputs.size() < 2 || spec.outputs.empty()) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Loss loss, lossOf(spec, spec.inputs[0], 1));
  if (!takesLoss(spec, loss, spec.outputs[0]) || !takesOptionalOutput(spec, 1, loss.elements()))
    return notTaken(spec, "results other than float32");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const bool takesScores = spec.op.starts_with("Softmax");
  const auto body = [=](const KernelCall& call) -> Status {
    const Room room(loss, call, true);
    const auto total = loss.targets(call, room.targets, room.sums);
    if (!total) return reference->run(call);
    const float* x = input(call, 0);
    float* logProbability = call.outputPresent(1) ? output(call, 1) : nullptr;
    if (loss.inner > 1) {
      loss.columns([&](int part, std::int64_t first, std::int64_t n) {
        float* block = room.blocks + part * loss.classes * kBlock;
        std::array<float, kBlock> max{};
        std::array<double, kBlock> logSum{};
        const float* scores = x + loss.at(first);
        const std::int64_t step = takesScores ? kBlock : loss.inner;
        if (takesScores) {
          copyColumns(scores, loss.classes, loss.inner, block, n);
          columnSums(block, loss.classes, max.data(), logSum.data(), n);
          scores = block;
        }
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t target = room.targets[first + j];
          const auto k = static_cast<std::size_t>(j);
          room.terms[first + j] =
              target < 0 ? 0.0 : static_cast<double>(scores[target * step + j]) - static_cast<double>(max[k]) - logSum[k];
        }
        if (!takesScores || logProbability == nullptr) return;
        columnLogProbabilities(block, max.data(), logSum.data(), loss.classes, n);
        storeColumns(block, loss.classes, loss.inner, loss.streams(), logProbability + loss.at(first), n);
      });
      store(loss, call, room, *total);
      return {};
    }
    parallelRows(loss.rows, takesScores ? loss.classes : 1, loss.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const float* scores = x + row * loss.classes;
        const std::int64_t target = room.targets[row];
        room.terms[row] = target < 0 ? 0.0 : static_cast<double>(scores[target]);
        if (!takesScores || (logProbability == nullptr && target < 0)) continue;
        const RowSum s = rowSum(scores, loss.classes);
        const double logSum = std::log(s.sum);
        if (target >= 0) room.terms[row] -= static_cast<double>(s.max) + logSum;
        if (logProbability != nullptr)
          logProbabilities(scores, s.max, static_cast<float>(logSum), logProbability + row * loss.classes, loss.classes);
      }
    });
    store(loss, call, room, *total);
    return {};
  };
  return makeBodyKernel("vector rows", body, Room::bytes(loss, true),
                        loss.reduction != Reduction::kNone && loss.cut()
                            ? Determinism::perThread("the loss is summed over the rows of each thread")
                            : Determinism::fixed());
}

// dy, log_prob (cross entropy) or the shape of x, labels, weights?, ignore_index?, addend? → dx
Result<std::unique_ptr<Kernel>> makeCrossEntropyGrad(const KernelSpec& spec) {
  if (spec.inputs.size() < 3 || spec.outputs.empty()) return notTaken(spec, "too few operands");
  SS_ASSIGN(const Loss loss, lossOf(spec, spec.outputs[0], 2));
  const bool ofScores = spec.op.starts_with("Softmax");
  if (!takesLoss(spec, loss, spec.inputs[0]) ||
      (ofScores && (!takesInput(spec, 1) || elementCount(spec.inputs[1].dims) != loss.elements())))
    return notTaken(spec, "operands of another size or type");
  if (!takesOptional(spec, 5, loss.elements()) || (spec.inputPresent(5) && loss.inner > 1))
    return notTaken(spec, "an addend of another size or type, or classes with axes behind them");
  SS_ASSIGN(std::shared_ptr<Kernel> reference, makeKernel(Backend::kReference, spec));
  const auto body = [=](const KernelCall& call) -> Status {
    const Room room(loss, call, false);
    const float* addend = call.inputPresent(5) ? input(call, 5) : nullptr;
    const auto* targets = room.targets;
    const auto total = loss.targets(call, room.targets, room.sums);
    if (!total) return reference->run(call);
    const float *dy = input(call, 0), *logProbability = ofScores ? input(call, 1) : nullptr;
    float* dx = output(call, 0);
    if (loss.inner > 1) {
      const bool weighted = call.inputPresent(loss.weights), each = loss.reduction == Reduction::kNone;
      const double share = loss.reduction == Reduction::kMean ? 1.0 / *total : 1.0;
      loss.columns([&](int part, std::int64_t first, std::int64_t n) {
        float* block = room.blocks + part * loss.classes * kBlock;
        std::array<float, kBlock> factors{}, own{};
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t target = targets[first + j];
          const double weight = weighted ? loss.weight(call, target) : 1.0;
          factors[static_cast<std::size_t>(j)] =
              target < 0 ? 0.0F : static_cast<float>(static_cast<double>(dy[each ? first + j : 0]) * weight * share);
        }
        if (ofScores) {
          copyColumns(logProbability + loss.at(first), loss.classes, loss.inner, block, n);
          for (std::int64_t j = 0; j < n; ++j)
            own[static_cast<std::size_t>(j)] = block[std::max<std::int64_t>(0, targets[first + j]) * kBlock + j];
          columnProbabilities(block, factors.data(), loss.classes, n);
          ownSlopes(own.data(), factors.data(), own.data(), n);
        } else {
          std::fill_n(block, loss.classes * kBlock, 0.0F);
          for (std::int64_t j = 0; j < n; ++j) own[static_cast<std::size_t>(j)] = -factors[static_cast<std::size_t>(j)];
        }
        for (std::int64_t j = 0; j < n; ++j)
          if (targets[first + j] >= 0) block[targets[first + j] * kBlock + j] = own[static_cast<std::size_t>(j)];
        storeColumns(block, loss.classes, loss.inner, loss.streams(), dx + loss.at(first), n);
      });
      return {};
    }
    parallelRows(loss.rows, loss.classes, loss.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t target = targets[row];
        float* y = dx + row * loss.classes;
        if (target < 0) {
          if (addend != nullptr)
            std::copy_n(addend + row * loss.classes, loss.classes, y);
          else
            std::fill_n(y, loss.classes, 0.0F);
          continue;
        }
        const double factor =
            static_cast<double>(dy[loss.reduction == Reduction::kNone ? row : 0]) * loss.share(call, target, *total);
        if (!ofScores) {
          std::fill_n(y, loss.classes, 0.0F);
          y[target] = static_cast<float>(-factor);
          continue;
        }
        const float* p = logProbability + row * loss.classes;
        const auto own = static_cast<float>(factor * std::expm1(static_cast<double>(p[target])));
        scaledProbabilities(p, static_cast<float>(factor), y, loss.classes);
        y[target] = own;
        if (addend != nullptr) addAddend(addend + row * loss.classes, y, loss.classes);
      }
    });
    return {};
  };
  // Without weights the divisor is a count, which any order of addition gives exactly.
  const bool sums = loss.reduction == Reduction::kMean && spec.inputPresent(loss.weights) && loss.cut();
  return makeBodyKernel("vector rows", body, Room::bytes(loss, false),
                        sums ? Determinism::perThread("the weights of the labels are summed over the rows of each thread")
                             : Determinism::fixed());
}

}  // namespace stepscope::cpu
