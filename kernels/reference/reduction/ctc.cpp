#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

double logSum(double a, double b) {
  const double most = std::max(a, b);
  return most == kNone ? kNone : most + std::log1p(std::exp(std::min(a, b) - most));
}

// CtcLoss: log_probs [T, N, C], targets, lengths of inputs, lengths of targets → loss [N]. CtcLossGrad: dy before them →
// dlog_probs. Graves et al. 2006, equations 5 to 16, in logarithms and double: alpha[t][s] is what leads to position s of
// the labels with blanks between them and around, beta[t][s] what follows, both with the probability at t.
class Ctc final : public Kernel {
 public:
  Ctc(KernelSpec spec, bool gradient) : spec_(std::move(spec)), gradient_(gradient) {
    const OperandSpec& x = spec_.inputs[gradient_ ? 1 : 0];
    const Dims& targets = spec_.inputs[gradient_ ? 2 : 1].dims;
    steps_ = x.dims[0], samples_ = x.dims[1], classes_ = x.dims[2];
    padded_ = targets.size() == 2;
    longest_ = targets.back(), targets_ = elementCount(targets);
    blank_ = spec_.attrs.integer("blank", 0);
    zeroInfinity_ = spec_.attrs.integer("zero_infinity", 0) != 0;
    normalized_ = spec_.attrs.integer("normalized", 0) != 0;
  }
  // Rows of alpha, one for the forward phase too and all for the gradient; two of beta, and a sum per class.
  std::size_t workspaceBytes() const override {
    const std::int64_t row = 2 * longest_ + 1;
    const std::int64_t rows = gradient_ ? std::max<std::int64_t>(steps_, 1) + 2 : 2;
    return static_cast<std::size_t>(rows * row + (gradient_ ? classes_ : 0)) * sizeof(double);
  }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

  Status run(const KernelCall& call) override {
    const std::size_t first = gradient_ ? 1 : 0;
    const TensorView& x = call.inputs[first];
    SS_TRY(expectElements(spec_, gradient_ ? "dlog_probs" : "loss", call.outputs[0],
                          gradient_ ? steps_ * samples_ * classes_ : samples_));
    std::int64_t begin = 0;
    for (std::int64_t n = 0; n < samples_; ++n) {
      Sample sample{&call.inputs[first + 1], begin, elementAsInt(call.inputs[first + 3], n),
                    elementAsInt(call.inputs[first + 2], n), n};
      if (padded_) sample.begin = n * longest_;
      SS_TRY(check(sample));
      begin += sample.labels;
      const bool known = dispatchFloat(x.dtype, [&](auto tag) { compute<decltype(tag)>(call, x, sample); });
      if (!known) return badType(spec_, x.dtype);
    }
    return {};
  }

 private:
  struct Sample {
    const TensorView* targets;
    std::int64_t begin, labels, steps, n;
  };

  Status check(const Sample& s) const {
    if (s.steps < 0 || s.steps > steps_)
      return invalid(fmt::format("{}: sample {} has an input length of {}; expected 0..{}", spec_.op, s.n, s.steps, steps_));
    const std::int64_t most = padded_ ? longest_ : targets_ - s.begin;
    if (s.labels < 0 || s.labels > most)
      return invalid(fmt::format("{}: sample {} has a target length of {}; expected 0..{}", spec_.op, s.n, s.labels, most));
    for (std::int64_t i = 0; i < s.labels; ++i)
      if (const std::int64_t label = elementAsInt(*s.targets, s.begin + i);
          label < 0 || label >= classes_ || label == blank_)
        return invalid(fmt::format("{}: label {} of sample {} is {}; expected 0..{} and not the blank {}", spec_.op, i, s.n,
                                   label, classes_ - 1, blank_));
    return {};
  }

  std::int64_t symbol(const Sample& s, std::int64_t position) const {
    return position % 2 == 0 ? blank_ : elementAsInt(*s.targets, s.begin + position / 2);
  }
  // Whether a blank may be left out in front of this position.
  bool skips(const Sample& s, std::int64_t position) const {
    return position % 2 == 1 && position > 1 && symbol(s, position) != symbol(s, position - 2);
  }

  template <typename T>
  double logProbability(const TensorView& x, const Sample& s, std::int64_t t, std::int64_t c) const {
    return static_cast<double>(readAs<T>(x)[(t * samples_ + s.n) * classes_ + c]);
  }

  // Fills one row of alpha from the one before it.
  template <typename T>
  void forward(const TensorView& x, const Sample& s, std::int64_t t, const double* before, double* row) const {
    for (std::int64_t p = 0; p < 2 * s.labels + 1; ++p) {
      double reached = kNone;
      if (t == 0) {
        reached = p < 2 ? 0 : kNone;
      } else {
        reached = p > 0 ? logSum(before[p], before[p - 1]) : before[p];
        if (skips(s, p)) reached = logSum(reached, before[p - 2]);
      }
      row[p] = reached + logProbability<T>(x, s, t, symbol(s, p));
    }
  }

  template <typename T>
  void compute(const KernelCall& call, const TensorView& x, const Sample& s) const {
    auto* alpha = reinterpret_cast<double*>(call.workspace.data());
    const std::int64_t width = 2 * longest_ + 1, positions = 2 * s.labels + 1;
    const auto row = [&](std::int64_t t) { return alpha + (gradient_ ? t : t % 2) * width; };
    for (std::int64_t t = 0; t < s.steps; ++t) forward<T>(x, s, t, t > 0 ? row(t - 1) : nullptr, row(t));
    double loss = s.labels == 0 ? 0 : -kNone;  // of no steps at all
    if (s.steps > 0) {
      const double* last = row(s.steps - 1);
      loss = -(positions > 1 ? logSum(last[positions - 1], last[positions - 2]) : last[0]);
    }
    if (!gradient_) {
      writeAs<T>(call.outputs[0])[s.n] = static_cast<T>(zeroInfinity_ && loss == -kNone ? 0.0 : loss);
      return;
    }
    const double dy = static_cast<double>(readAs<T>(call.inputs[0])[s.n]);
    double* beta = alpha + std::max<std::int64_t>(steps_, 1) * width;
    double* shares = beta + 2 * width;
    T* dx = writeAs<T>(call.outputs[0]);
    for (std::int64_t t = steps_ - 1; t >= 0; --t) {
      T* out = dx + (t * samples_ + s.n) * classes_;
      if (t >= s.steps || (zeroInfinity_ && loss == -kNone)) {
        std::fill_n(out, classes_, T(0.0f));
        continue;
      }
      double *now = beta + t % 2 * width, *after = beta + (t + 1) % 2 * width;
      std::fill_n(shares, classes_, kNone);
      for (std::int64_t p = positions - 1; p >= 0; --p) {
        double follows = kNone;
        if (t == s.steps - 1) {
          follows = p + 2 >= positions ? 0 : kNone;
        } else {
          follows = p + 1 < positions ? logSum(after[p], after[p + 1]) : after[p];
          if (p + 2 < positions && skips(s, p + 2)) follows = logSum(follows, after[p + 2]);
        }
        const std::int64_t c = symbol(s, p);
        now[p] = follows + logProbability<T>(x, s, t, c);
        shares[c] = logSum(shares[c], row(t)[p] + now[p]);
      }
      for (std::int64_t c = 0; c < classes_; ++c) {
        const double lp = logProbability<T>(x, s, t, c);
        out[c] = static_cast<T>(((normalized_ ? std::exp(lp) : 0.0) - std::exp(shares[c] + loss - lp)) * dy);
      }
    }
  }

  KernelSpec spec_;
  bool gradient_, padded_ = false, zeroInfinity_ = false, normalized_ = false;
  std::int64_t steps_ = 0, samples_ = 0, classes_ = 0, longest_ = 0, targets_ = 0, blank_ = 0;
};

template <bool kGradient>
Result<std::unique_ptr<Kernel>> makeCtc(const KernelSpec& spec) {
  const Dims &x = spec.inputs[kGradient ? 1 : 0].dims, &targets = spec.inputs[kGradient ? 2 : 1].dims;
  if (x.size() != 3 || targets.empty() || targets.size() > 2)
    return invalid(fmt::format("{}: log_probs {} and targets {}; expected [T, N, C] and [N, S] or one row", spec.op,
                               dimsText(x), dimsText(targets)));
  if (const std::int64_t blank = spec.attrs.integer("blank", 0); blank < 0 || blank >= x[2])
    return invalid(fmt::format("{}: blank {}; expected one of the {} classes", spec.op, blank, x[2]));
  return std::make_unique<Ctc>(spec, kGradient);
}

constexpr KernelEntry kCtcEntries[] = {
    {"stepscope", "CtcLoss", makeCtc<false>},
    {"stepscope", "CtcLossGrad", makeCtc<true>},
};

}  // namespace

std::span<const KernelEntry> ctcKernels() { return kCtcEntries; }

}  // namespace stepscope::reference
