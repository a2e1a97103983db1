#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

enum class Reduction { kNone, kSum, kMean };

// Scores are [outer, classes, inner]; there is one label, and one term of the loss, per (outer, inner).
struct Loss {
  const KernelSpec& spec;
  Lines lines;  // axis = classes
  const TensorView& labels;
  const TensorView* weights = nullptr;  // one per class, or none
  Reduction reduction = Reduction::kMean;
  std::optional<std::int64_t> ignoreIndex;

  std::int64_t terms() const { return lines.outer * lines.inner; }
  double weight(std::int64_t label) const { return weights != nullptr ? elementAsDouble(*weights, label) : 1.0; }
  // The label of term i, or -1 when it is ignored.
  Result<std::int64_t> label(std::int64_t i) const {
    const std::int64_t value = elementAsInt(labels, i);
    if (ignoreIndex && value == *ignoreIndex) return -1;
    if (value >= 0 && value < lines.axis) return value;
    return invalid(fmt::format("{}: label {} at element {}; expected 0..{}{}", spec.op, value, i, lines.axis - 1,
                               ignoreIndex ? fmt::format(" or ignore_index {}", *ignoreIndex) : ""));
  }
  // Sum of the weights of the labels that count.
  Result<double> totalWeight() const {
    double total = 0;
    for (std::int64_t i = 0; i < terms(); ++i) {
      SS_ASSIGN(const std::int64_t target, label(i));
      if (target >= 0) total += weight(target);
    }
    return total;
  }
};

// Classes are axis 1. `labels`, `weights` and `ignore` are positions of inputs; the last two may be absent.
Result<Loss> lossOf(const KernelSpec& spec, const KernelCall& call, std::span<const std::int64_t> scores, std::size_t labels,
                    std::size_t weights, std::size_t ignore) {
  SS_ASSIGN(const Lines lines, linesOf(spec, scores, 1));
  Loss loss{spec, lines, call.inputs[labels], nullptr, Reduction::kMean, std::nullopt};
  if (call.inputPresent(weights)) {
    loss.weights = &call.inputs[weights];
    SS_TRY(expectElements(spec, "weights", *loss.weights, lines.axis));
  }
  SS_TRY(expectElements(spec, "labels", loss.labels, loss.terms()));
  if (!isInteger(loss.labels.dtype)) return badType(spec, loss.labels.dtype);
  const std::string reduction = spec.attrs.text("reduction", "mean");
  loss.reduction = reduction == "none" ? Reduction::kNone : reduction == "sum" ? Reduction::kSum : Reduction::kMean;
  if (spec.attrs.has("ignore_index"))
    loss.ignoreIndex = spec.attrs.integer("ignore_index", 0);
  else if (call.inputPresent(ignore)) {
    SS_TRY(expectElements(spec, "ignore_index", call.inputs[ignore], 1));
    loss.ignoreIndex = elementAsInt(call.inputs[ignore], 0);
  }
  return loss;
}

template <typename T>
double logOfSum(const T* x, const Lines& lines) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner) {
    const auto v = static_cast<double>(x[i]);
    if (v > max || v != v) max = v;
  }
  for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner) sum += std::exp(static_cast<double>(x[i]) - max);
  return max + std::log(sum);
}

// Sums the terms; `logProbability(term, line begin, label)` is asked for labels that count only, `visit(line begin)` first.
template <typename U, typename F>
Status accumulate(const Loss& loss, U* y, F&& logProbability) {
  double total = 0, totalWeight = 0;
  std::int64_t term = 0;
  for (std::int64_t o = 0; o < loss.lines.outer; ++o)
    for (std::int64_t i = 0; i < loss.lines.inner; ++i, ++term) {
      SS_ASSIGN(const std::int64_t label, loss.label(term));
      const double value = logProbability(o * loss.lines.axis * loss.lines.inner + i, label);
      const double weight = label < 0 ? 0 : loss.weight(label);
      const double result = label < 0 ? 0 : -weight * value;
      if (loss.reduction == Reduction::kNone) y[term] = static_cast<U>(result);
      total += result;
      totalWeight += weight;
    }
  if (loss.reduction == Reduction::kSum) y[0] = static_cast<U>(total);
  if (loss.reduction == Reduction::kMean) y[0] = static_cast<U>(total / totalWeight);
  return {};
}

// Calls f with the element types of scores and results, which differ only with the attribute output_type of com.microsoft.
template <typename F>
Status dispatchPair(const KernelSpec& spec, DType scores, DType results, F&& f) {
  Status status;
  bool known = false;
  dispatchFloat(scores, [&](auto scoresTag) {
    if (scores == results) {
      known = true;
      status = f(scoresTag, scoresTag);
    } else {
      known = dispatchFloat(results, [&](auto resultsTag) { status = f(scoresTag, resultsTag); });
    }
  });
  if (!known) return badType(spec, scores);
  return status;
}

// scores, labels, weights?, ignore_index? → loss, log_prob?
Status softmaxCrossEntropy(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& scores = call.inputs[0];
  SS_ASSIGN(const Loss loss, lossOf(spec, call, scores.dims, 1, 2, 3));
  SS_TRY(expectElements(spec, "loss", call.outputs[0], loss.reduction == Reduction::kNone ? loss.terms() : 1));
  return dispatchPair(spec, scores.dtype, call.outputs[0].dtype, [&](auto scoresTag, auto resultsTag) {
    using T = decltype(scoresTag);
    using U = decltype(resultsTag);
    U* logProb = call.outputPresent(1) ? writeAs<U>(call.outputs[1]) : nullptr;
    return accumulate(loss, writeAs<U>(call.outputs[0]), [&](std::int64_t at, std::int64_t label) {
      const T* x = readAs<T>(scores) + at;
      if (logProb == nullptr && label < 0) return 0.0;
      const double normaliser = logOfSum(x, loss.lines);
      if (logProb != nullptr)
        for (std::int64_t i = 0; i < loss.lines.axis * loss.lines.inner; i += loss.lines.inner)
          logProb[at + i] = static_cast<U>(static_cast<double>(x[i]) - normaliser);
      return label < 0 ? 0.0 : static_cast<double>(x[label * loss.lines.inner]) - normaliser;
    });
  });
}

// log probabilities, labels, weights?, ignore_index? → loss
Status negativeLogLikelihood(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Loss loss, lossOf(spec, call, x.dims, 1, 2, 3));
  SS_TRY(expectElements(spec, "loss", call.outputs[0], loss.reduction == Reduction::kNone ? loss.terms() : 1));
  return dispatchPair(spec, x.dtype, call.outputs[0].dtype, [&](auto scoresTag, auto resultsTag) {
    using T = decltype(scoresTag);
    using U = decltype(resultsTag);
    return accumulate(loss, writeAs<U>(call.outputs[0]), [&](std::int64_t at, std::int64_t label) {
      return label < 0 ? 0.0 : static_cast<double>(readAs<T>(x)[at + label * loss.lines.inner]);
    });
  });
}

// `write(line begin, label, factor)` for every term; label -1 with factor 0 for what is ignored.
template <typename U, typename F>
Status spread(const Loss& loss, const TensorView& dy, F&& write) {
  SS_TRY(expectElements(loss.spec, "dy", dy, loss.reduction == Reduction::kNone ? loss.terms() : 1));
  double total = 1;
  if (loss.reduction == Reduction::kMean) {
    SS_ASSIGN(total, loss.totalWeight());
  }
  std::int64_t term = 0;
  for (std::int64_t o = 0; o < loss.lines.outer; ++o)
    for (std::int64_t i = 0; i < loss.lines.inner; ++i, ++term) {
      SS_ASSIGN(const std::int64_t label, loss.label(term));
      const auto d = static_cast<double>(readAs<U>(dy)[loss.reduction == Reduction::kNone ? term : 0]);
      write(o * loss.lines.axis * loss.lines.inner + i, label, label < 0 ? 0.0 : d * loss.weight(label) / total);
    }
  return {};
}

// dy, log_prob, labels, weights?, ignore_index?, addend? → dscores = factor * (exp(log_prob) - onehot(label)) + addend
Status softmaxCrossEntropyGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& logProb = call.inputs[1];
  const TensorView* addend = call.inputPresent(5) ? &call.inputs[5] : nullptr;
  if (addend && (addend->dtype != call.outputs[0].dtype || addend->dims != call.outputs[0].dims))
    return invalid(spec.op + ": addend " + dimsText(addend->dims) + "; expected the type and extents of the result, " +
                   dimsText(call.outputs[0].dims));
  SS_ASSIGN(const Loss loss, lossOf(spec, call, logProb.dims, 2, 3, 4));
  return dispatchPair(spec, call.outputs[0].dtype, logProb.dtype, [&](auto scoresTag, auto resultsTag) {
    using T = decltype(scoresTag);
    using U = decltype(resultsTag);
    return spread<U>(loss, call.inputs[0], [&](std::int64_t at, std::int64_t label, double factor) {
      const U* p = readAs<U>(logProb) + at;
      T* dx = writeAs<T>(call.outputs[0]) + at;
      for (std::int64_t c = 0; c < loss.lines.axis; ++c) {
        const std::int64_t i = c * loss.lines.inner;
        const double other = addend ? static_cast<double>(readAs<T>(*addend)[at + i]) : 0.0;
        dx[i] = static_cast<T>((label < 0 ? 0.0 : factor * (std::exp(static_cast<double>(p[i])) - (c == label ? 1 : 0))) +
                               other);
      }
    });
  });
}

// dy, shape of x, labels, weights?, ignore_index? → dx, zero but for the label's element
Status negativeLogLikelihoodGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& dx = call.outputs[0];
  SS_ASSIGN(const Loss loss, lossOf(spec, call, dx.dims, 2, 3, 4));
  return dispatchPair(spec, dx.dtype, call.inputs[0].dtype, [&](auto scoresTag, auto resultsTag) {
    using T = decltype(scoresTag);
    using U = decltype(resultsTag);
    return spread<U>(loss, call.inputs[0], [&](std::int64_t at, std::int64_t label, double factor) {
      T* out = writeAs<T>(dx) + at;
      for (std::int64_t c = 0; c < loss.lines.axis; ++c)
        out[c * loss.lines.inner] = static_cast<T>(c == label ? -factor : 0.0);
    });
  });
}

constexpr KernelEntry kCrossEntropyEntries[] = {
    {"", "NegativeLogLikelihoodLoss", plain<negativeLogLikelihood>},
    {"", "SoftmaxCrossEntropyLoss", plain<softmaxCrossEntropy>},
    {"com.microsoft", "NegativeLogLikelihoodLossInternal", plain<negativeLogLikelihood>},
    {"com.microsoft", "SoftmaxCrossEntropyLossInternal", plain<softmaxCrossEntropy>},
    {"stepscope", "NegativeLogLikelihoodLossGrad", plain<negativeLogLikelihoodGrad>},
    {"stepscope", "SoftmaxCrossEntropyLossGrad", plain<softmaxCrossEntropyGrad>},
};

}  // namespace

std::span<const KernelEntry> crossEntropyKernels() { return kCrossEntropyEntries; }

}  // namespace stepscope::reference
