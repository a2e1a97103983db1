// BatchNormalization and its gradient in bfloat16 where channels lie last, alone or fused with an addend and Relu: one pass
// over rows of channels for the sums, one that writes. Arithmetic in float32, sums of many rows in double.
#include <cmath>

#include "kernels/cpu/channels/channels.h"
#include "kernels/cpu/channels/channels_last.h"
#include "kernels/running_variance.h"
#include "kernels/threads.h"

namespace stepscope::cpu {
namespace {

SS_INLINE void momentsOfRow(const BFloat16* x, float* sums, float* squares, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Floats v, s, q;
    load(x + c, v);
    load(sums + c, s);
    load(squares + c, q);
    store(s + v, sums + c);
    store(q + v * v, squares + c);
  }
}
SS_LANE_CLONES void moments(const BFloat16* x, std::int64_t rows, std::int64_t channels, float* run) {
  for (std::int64_t row = 0; row < rows; ++row) momentsOfRow(x + row * channels, run, run + channels, channels);
}

// y = (x - mean) scale + bias; vectors of one float per channel.
struct AffineRow {
  const float *mean, *scale, *bias;
};

template <bool kAdd, bool kRelu>
SS_INLINE void normaliseRow(const BFloat16* x, const BFloat16* z, BFloat16* y, std::int64_t channels, const AffineRow& a) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Floats v, mean, scale, bias;
    load(x + c, v);
    load(a.mean + c, mean);
    load(a.scale + c, scale);
    load(a.bias + c, bias);
    v = (v - mean) * scale + bias;
    if constexpr (kAdd) {
      Floats more;
      load(z + c, more);
      v += more;
    }
    if constexpr (kRelu) v = v < 0 ? Floats{} : v;
    store(v, y + c);
  }
}
SS_LANE_CLONES void normalise(const BFloat16* x, const BFloat16* z, BFloat16* y, std::int64_t rows, std::int64_t channels,
                              const AffineRow& a, bool relu) {
  for (std::int64_t at = 0; at < rows * channels; at += channels) {
    if (z != nullptr)
      relu ? normaliseRow<true, true>(x + at, z + at, y + at, channels, a)
           : normaliseRow<true, false>(x + at, z + at, y + at, channels, a);
    else
      relu ? normaliseRow<false, true>(x + at, z, y + at, channels, a)
           : normaliseRow<false, false>(x + at, z, y + at, channels, a);
  }
}

// What a gradient sums and writes over: y is there behind Relu, and g keeps what passed it.
struct GradientRows {
  const BFloat16 *dy, *x, *y;
  BFloat16* g;
};

template <bool kGate>
SS_INLINE void gated(const GradientRows& r, std::int64_t at, Floats& v) {
  load(r.dy + at, v);
  if constexpr (kGate) {
    Floats result;
    load(r.y + at, result);
    v = result <= 0 ? Floats{} : v;
  }
}

template <bool kGate>
SS_INLINE void sumRowsOf(const GradientRows& r, std::int64_t rows, std::int64_t channels, const float* means, float* run) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      const std::int64_t at = row * channels + c;
      Floats v, s;
      gated<kGate>(r, at, v);
      if (r.g != nullptr) store(v, r.g + at);
      load(run + c, s);
      store(s + v, run + c);
      if (r.x == nullptr) continue;
      Floats x, mean, dot;
      load(r.x + at, x);
      load(means + c, mean);
      load(run + channels + c, dot);
      store(dot + v * (x - mean), run + channels + c);
    }
}
SS_LANE_CLONES void gradientSums(const GradientRows& r, std::int64_t rows, std::int64_t channels, const float* means,
                                 float* run) {
  r.y != nullptr ? sumRowsOf<true>(r, rows, channels, means, run) : sumRowsOf<false>(r, rows, channels, means, run);
}

// dx = g factor - (x - mean) slope - shift
struct SlopeRow {
  const float *mean, *factor, *slope, *shift;
};

template <bool kGate>
SS_INLINE void writeRows(const GradientRows& r, BFloat16* dx, std::int64_t rows, std::int64_t channels, const SlopeRow& s) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t c = 0; c < channels; c += kLanes) {
      const std::int64_t at = row * channels + c;
      Floats v, factor;
      gated<kGate>(r, at, v);
      load(s.factor + c, factor);
      v = v * factor;
      if (r.x != nullptr) {
        Floats x, mean, slope, shift;
        load(r.x + at, x);
        load(s.mean + c, mean);
        load(s.slope + c, slope);
        load(s.shift + c, shift);
        v = v - ((x - mean) * slope + shift);
      }
      store(v, dx + at);
    }
}
SS_LANE_CLONES void writeGradient(const GradientRows& r, BFloat16* dx, std::int64_t rows, std::int64_t channels,
                                  const SlopeRow& s) {
  r.y != nullptr ? writeRows<true>(r, dx, rows, channels, s) : writeRows<false>(r, dx, rows, channels, s);
}

// body(first row, end row) by several threads.
template <typename Body>
void overRows(const ChannelRows& r, int threads, Body&& body) {
  const std::int64_t runs = (r.rows + ChannelRows::kRun - 1) / ChannelRows::kRun;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t run = 0; run < runs; ++run)
    body(run * ChannelRows::kRun, std::min((run + 1) * ChannelRows::kRun, r.rows));
}

const BFloat16* low(const KernelCall& call, std::size_t i) {
  return call.inputPresent(i) ? static_cast<const BFloat16*>(call.inputs[i].data) : nullptr;
}
const float* vector(const KernelCall& call, std::size_t i) { return static_cast<const float*>(call.inputs[i].data); }
template <typename T>
T* result(const KernelCall& call, std::size_t o) {
  return call.outputPresent(o) ? static_cast<T*>(call.outputs[o].data) : nullptr;
}

class RowKernel : public Kernel {
 public:
  // `vectors`: floats per channel that it needs besides the sums.
  RowKernel(const KernelSpec& spec, std::int64_t vectors)
      : rows_(ChannelRows::of(spec.inputs[0])),
        threads_(threadsForElements(4 * elementCount(spec.inputs[0].dims), spec.threads)),
        vectorBytes_(static_cast<std::size_t>(vectors * rows_.channels) * sizeof(float)) {}
  std::size_t workspaceBytes() const override { return vectorBytes_ + rows_.workspaceBytes(); }
  std::string implementation() const override { return "rows of channels"; }
  Determinism determinism() const override {
    return Determinism::fixed("sums are cut into parts that depend on extents alone");
  }

 protected:
  ChannelRows rows_;
  int threads_;
  std::size_t vectorBytes_;  // doubles of the sums lie behind them: a multiple of 64, channels being one of 16
};

// x, scale, b, mean, var, z? → y, running_mean?, running_var?, saved_mean?, saved_inv_std?
class BatchNormLastKernel final : public RowKernel {
 public:
  explicit BatchNormLastKernel(const KernelSpec& spec)
      : RowKernel(spec, 2),
        training_(spec.attrs.integer("training_mode", 0) != 0),
        relu_(spec.attrs.integer("relu", 0) != 0),
        epsilon_(spec.attrs.real("epsilon", 1e-5F)),
        momentum_(spec.attrs.real("momentum", 0.9F)),
        sample_(spec.attrs.integer("sample_variance", 0) != 0) {}

  Status run(const KernelCall& call) override {
    const BFloat16 *x = low(call, 0), *z = low(call, 5);
    const float *scale = vector(call, 1), *oldMean = vector(call, 3), *oldVariance = vector(call, 4);
    auto* y = result<BFloat16>(call, 0);
    const std::array<float*, 4> statistics{result<float>(call, 1), result<float>(call, 2), result<float>(call, 3),
                                           result<float>(call, 4)};
    const std::int64_t channels = rows_.channels;
    auto* means = reinterpret_cast<float*>(call.workspace.data());
    float* factors = means + channels;
    std::byte* sums = call.workspace.data() + vectorBytes_;
    if (training_)
      sumRows(rows_, sums, threads_, [&](std::int64_t begin, std::int64_t end, float* run) {
        moments(x + begin * channels, end - begin, channels, run);
      });
    const double* total = rows_.sums(sums, 0);
    const auto count = static_cast<double>(rows_.rows);
    const double factor = runningVarianceFactor(sample_, count);
    for (std::int64_t c = 0; c < channels; ++c) {
      double mean = oldMean[c], variance = oldVariance[c];
      if (training_) {
        mean = total[c] / count;
        variance = std::max(0.0, total[channels + c] / count - mean * mean);
      }
      const double inverse = 1 / std::sqrt(variance + epsilon_);
      const std::array<double, 4> values{
          training_ ? oldMean[c] * momentum_ + mean * (1 - momentum_) : oldMean[c],
          training_ ? oldVariance[c] * momentum_ + variance * factor * (1 - momentum_) : oldVariance[c], mean, inverse};
      for (std::size_t i = 0; i < values.size(); ++i)
        if (statistics[i] != nullptr) statistics[i][c] = static_cast<float>(values[i]);
      means[c] = static_cast<float>(mean);
      factors[c] = static_cast<float>(scale[c] * inverse);
    }
    const AffineRow affine{means, factors, vector(call, 2)};
    overRows(rows_, threads_, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t at = begin * channels;
      normalise(x + at, z != nullptr ? z + at : nullptr, y + at, end - begin, channels, affine, relu_);
    });
    return {};
  }

 private:
  bool training_, relu_;
  double epsilon_, momentum_;
  bool sample_;
};

// dy, x?, scale, mean, inv_std, y? → dx?, dscale?, dbias?, g?
class BatchNormLastGradKernel final : public RowKernel {
 public:
  explicit BatchNormLastGradKernel(const KernelSpec& spec)
      : RowKernel(spec, 3), training_(spec.attrs.integer("training_mode", 1) != 0) {}

  Status run(const KernelCall& call) override {
    const float *scale = vector(call, 2), *means = vector(call, 3), *inverses = vector(call, 4);
    auto *dx = result<BFloat16>(call, 0), *kept = result<BFloat16>(call, 3);
    auto *dscale = result<float>(call, 1), *dbias = result<float>(call, 2);
    const GradientRows all{low(call, 0), low(call, 1), low(call, 5), kept};
    const std::int64_t channels = rows_.channels;
    auto* factors = reinterpret_cast<float*>(call.workspace.data());
    float *slopes = factors + channels, *shifts = slopes + channels;
    std::byte* sums = call.workspace.data() + vectorBytes_;
    const auto from = [&](GradientRows r, std::int64_t row) {
      for (const BFloat16** operand : {&r.dy, &r.x, &r.y})
        if (*operand != nullptr) *operand += row * channels;
      if (r.g != nullptr) r.g += row * channels;
      return r;
    };
    sumRows(rows_, sums, threads_, [&](std::int64_t begin, std::int64_t end, float* run) {
      gradientSums(from(all, begin), end - begin, channels, means, run);
    });
    const double* total = rows_.sums(sums, 0);
    const auto count = static_cast<double>(rows_.rows);
    for (std::int64_t c = 0; c < channels; ++c) {
      const double inverse = inverses[c], dot = total[channels + c] * inverse, factor = scale[c] * inverse;
      if (dscale != nullptr) dscale[c] = static_cast<float>(dot);
      if (dbias != nullptr) dbias[c] = static_cast<float>(total[c]);
      factors[c] = static_cast<float>(factor);
      slopes[c] = static_cast<float>(factor * dot * inverse / count);
      shifts[c] = static_cast<float>(factor * total[c] / count);
    }
    if (dx == nullptr) return {};
    // What passed Relu was kept where it is asked for. Statistics that are not of this batch have no slope.
    const GradientRows written{kept != nullptr ? kept : all.dy, training_ ? all.x : nullptr,
                               kept != nullptr ? nullptr : all.y, nullptr};
    const SlopeRow slope{means, factors, slopes, shifts};
    overRows(rows_, threads_, [&](std::int64_t begin, std::int64_t end) {
      writeGradient(from(written, begin), dx + begin * channels, end - begin, channels, slope);
    });
    return {};
  }

 private:
  bool training_;
};

}  // namespace

std::unique_ptr<Kernel> makeBatchNormLast(const KernelSpec& spec) { return std::make_unique<BatchNormLastKernel>(spec); }
std::unique_ptr<Kernel> makeBatchNormLastGrad(const KernelSpec& spec) {
  return std::make_unique<BatchNormLastGradKernel>(spec);
}

}  // namespace stepscope::cpu
