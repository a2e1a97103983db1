// BatchNormalization forward, alone or with an addend and max(., 0): one pass for the statistics of a group of channels, one
// that writes, the second while the group is in the cache.
#include <cmath>

#include "kernels/cpu/channels/channels.h"
#include "kernels/cpu/channels/lanes.h"
#include "kernels/running_variance.h"
#include "kernels/threads.h"

namespace stepscope::cpu {
namespace {

template <typename T>
SS_LANE_CLONES void moments(const T* x, std::int64_t n, double* sums, double* squares) {
  HalfDoubles s0, s1, q0, q1;
  load(sums, s0, s1);
  load(squares, q0, q1);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Floats v;
    HalfDoubles low, high;
    load(x + i, v);
    widen(v, low, high);
    s0 += low;
    s1 += high;
    q0 += low * low;
    q1 += high * high;
  }
  store(s0, s1, sums);
  store(q0, q1, squares);
  for (std::int64_t lane = 0; i < n; ++i, ++lane) {
    const double v = static_cast<float>(x[i]);
    sums[lane] += v;
    squares[lane] += v * v;
  }
}

struct Affine {
  LaneFloats mean, scale, bias;
};

template <bool kAdd, bool kRelu, typename T>
SS_INLINE void normaliseAs(const T* x, const T* z, T* y, std::int64_t n, const Affine& a) {
  Floats mean, scale, bias;
  load(a.mean.data(), mean);
  load(a.scale.data(), scale);
  load(a.bias.data(), bias);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Floats v;
    load(x + i, v);
    v = (v - mean) * scale + bias;
    if constexpr (kAdd) {
      Floats more;
      load(z + i, more);
      v += more;
    }
    if constexpr (kRelu) v = v < 0 ? Floats{} : v;
    store(v, y + i);
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    float v = (x[i] - a.mean[lane]) * a.scale[lane] + a.bias[lane];
    if constexpr (kAdd) v += z[i];
    if constexpr (kRelu) v = v < 0 ? 0 : v;
    y[i] = v;
  }
}

template <typename T>
SS_LANE_CLONES void normalise(const T* x, const T* z, T* y, std::int64_t n, const Affine& a, bool relu) {
  if (z != nullptr)
    relu ? normaliseAs<true, true>(x, z, y, n, a) : normaliseAs<true, false>(x, z, y, n, a);
  else
    relu ? normaliseAs<false, true>(x, z, y, n, a) : normaliseAs<false, false>(x, z, y, n, a);
}

// x, scale, b, mean, var, z? → y, running_mean?, running_var?, saved_mean?, saved_inv_std?; x, z and y are T, the others
// float32
template <typename T>
class BatchNormKernel final : public Kernel {
 public:
  explicit BatchNormKernel(const KernelSpec& spec)
      : g_(ChannelGroups::of(spec.inputs[0])),
        training_(spec.attrs.integer("training_mode", 0) != 0),
        relu_(spec.attrs.integer("relu", 0) != 0),
        epsilon_(spec.attrs.real("epsilon", 1e-5F)),
        momentum_(spec.attrs.real("momentum", 0.9F)),
        sample_(spec.attrs.integer("sample_variance", 0) != 0),
        threads_(threadsForElements(4 * elementCount(spec.inputs[0].dims), spec.threads)) {}

  Status run(const KernelCall& call) override {
    const auto in = [&](std::size_t i) {
      return call.inputPresent(i) ? static_cast<const float*>(call.inputs[i].data) : nullptr;
    };
    const auto out = [&](std::size_t i) {
      return call.outputPresent(i) ? static_cast<float*>(call.outputs[i].data) : nullptr;
    };
    const float *scale = in(1), *bias = in(2), *oldMean = in(3), *oldVariance = in(4);
    const T* x = static_cast<const T*>(call.inputs[0].data);
    const T* z = call.inputPresent(5) ? static_cast<const T*>(call.inputs[5].data) : nullptr;
    T* y = static_cast<T*>(call.outputs[0].data);
    const std::array<float*, 4> statistics{out(1), out(2), out(3), out(4)};
    const double count = g_.count(), factor = runningVarianceFactor(sample_, count);
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      LaneSums sums{}, squares{};
      if (training_)
        for (std::int64_t n = 0; n < g_.batch; ++n) moments(x + g_.offset(n, group), g_.length, sums.data(), squares.data());
      if (g_.lanes == 1) {
        sums[0] = total(sums);
        squares[0] = total(squares);
      }
      Affine a{};
      for (std::int64_t lane = 0; lane < g_.lanes; ++lane) {
        const std::int64_t c = group * g_.lanes + lane;
        const auto l = static_cast<std::size_t>(lane);
        double mean = oldMean[c], variance = oldVariance[c];
        if (training_) {
          mean = sums[l] / count;
          variance = squares[l] / count - mean * mean;
          if (variance < 0) variance = 0;  // rounding
        }
        const double inverse = 1 / std::sqrt(variance + epsilon_);
        const std::array<double, 4> values{
            training_ ? oldMean[c] * momentum_ + mean * (1 - momentum_) : oldMean[c],
            training_ ? oldVariance[c] * momentum_ + variance * factor * (1 - momentum_) : oldVariance[c], mean, inverse};
        for (std::size_t i = 0; i < values.size(); ++i)
          if (statistics[i] != nullptr) statistics[i][c] = static_cast<float>(values[i]);
        a.mean[l] = static_cast<float>(mean);
        a.scale[l] = static_cast<float>(scale[c] * inverse);
        a.bias[l] = bias[c];
      }
      if (g_.lanes == 1) {
        a.mean.fill(a.mean[0]);
        a.scale.fill(a.scale[0]);
        a.bias.fill(a.bias[0]);
      }
      for (std::int64_t n = 0; n < g_.batch; ++n) {
        const std::int64_t at = g_.offset(n, group);
        normalise<T>(x + at, z != nullptr ? z + at : nullptr, y + at, g_.length, a, relu_);
      }
    }
    return {};
  }
  std::string implementation() const override { return g_.lanes == 1 ? "lanes of one channel" : "lanes of 16 channels"; }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  ChannelGroups g_;
  bool training_, relu_;
  double epsilon_, momentum_;
  bool sample_;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeBatchNorm(const KernelSpec& spec) {
  SS_TRY(takesChannels(spec, {0, 5}, {0}, {1, 2, 3, 4}, true));
  if (spec.inputs[0].layout == Layout::kChannelsLast) {
    if (spec.inputs[0].dtype != DType::kBF16) return unsupported(spec.op + ": channels that lie last are taken in bfloat16");
    return makeBatchNormLast(spec);
  }
  if (spec.inputs[0].dtype == DType::kBF16) return std::make_unique<BatchNormKernel<BFloat16>>(spec);
  return std::make_unique<BatchNormKernel<float>>(spec);
}

}  // namespace stepscope::cpu
