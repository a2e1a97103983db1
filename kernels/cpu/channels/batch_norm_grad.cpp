// Gradient of BatchNormalization, alone or behind the gradient of Relu: one pass for the two sums of a group of channels,
// one that writes, the second while the group is in the cache.
#include <cmath>

#include "kernels/cpu/channels/channels.h"
#include "kernels/cpu/channels/lanes.h"
#include "kernels/threads.h"

namespace stepscope::cpu {
namespace {

template <bool kGate, bool kKeep, bool kDot, typename T>
SS_INLINE void sumAs(const T* dy, const T* y, const T* x, T* g, std::int64_t n, const float* means, double* sums,
                     double* dots) {
  HalfDoubles s0, s1, d0, d1;
  Floats mean;
  load(sums, s0, s1);
  load(dots, d0, d1);
  load(means, mean);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Floats v;
    HalfDoubles low, high;
    load(dy + i, v);
    if constexpr (kGate) {
      Floats result;
      load(y + i, result);
      v = result <= 0 ? Floats{} : v;
    }
    if constexpr (kKeep) store(v, g + i);
    widen(v, low, high);
    s0 += low;
    s1 += high;
    if constexpr (kDot) {
      Floats centred;
      load(x + i, centred);
      const Floats product = v * (centred - mean);
      widen(product, low, high);
      d0 += low;
      d1 += high;
    }
  }
  store(s0, s1, sums);
  store(d0, d1, dots);
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    const float v = kGate && y[i] <= 0 ? 0.0F : static_cast<float>(dy[i]);
    if constexpr (kKeep) g[i] = v;
    sums[lane] += v;
    if constexpr (kDot) dots[lane] += v * (x[i] - means[lane]);
  }
}

template <typename T>
SS_LANE_CLONES void sumPlain(const T* dy, const T* x, std::int64_t n, const float* means, double* sums, double* dots) {
  x != nullptr ? sumAs<false, false, true, T>(dy, nullptr, x, nullptr, n, means, sums, dots)
               : sumAs<false, false, false, T>(dy, nullptr, x, nullptr, n, means, sums, dots);
}
template <typename T>
SS_LANE_CLONES void sumGated(const T* dy, const T* y, const T* x, T* g, std::int64_t n, const float* means, double* sums,
                             double* dots) {
  if (g != nullptr)
    x != nullptr ? sumAs<true, true, true>(dy, y, x, g, n, means, sums, dots)
                 : sumAs<true, true, false>(dy, y, x, g, n, means, sums, dots);
  else
    x != nullptr ? sumAs<true, false, true>(dy, y, x, g, n, means, sums, dots)
                 : sumAs<true, false, false>(dy, y, x, g, n, means, sums, dots);
}

// dx = g factor - (x - mean) slope - shift
struct Slopes {
  LaneFloats mean, factor, slope, shift;
};

template <bool kGate, bool kCentre, typename T>
SS_INLINE void writeAs(const T* dy, const T* y, const T* x, T* dx, std::int64_t n, const Slopes& s) {
  Floats mean, factor, slope, shift;
  load(s.mean.data(), mean);
  load(s.factor.data(), factor);
  load(s.slope.data(), slope);
  load(s.shift.data(), shift);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Floats v;
    load(dy + i, v);
    if constexpr (kGate) {
      Floats result;
      load(y + i, result);
      v = result <= 0 ? Floats{} : v;
    }
    v = v * factor;
    if constexpr (kCentre) {
      Floats centred;
      load(x + i, centred);
      v = v - ((centred - mean) * slope + shift);
    }
    store(v, dx + i);
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    float v = (kGate && y[i] <= 0 ? 0.0F : static_cast<float>(dy[i])) * s.factor[lane];
    if constexpr (kCentre) v = v - ((x[i] - s.mean[lane]) * s.slope[lane] + s.shift[lane]);
    dx[i] = v;
  }
}

template <typename T>
SS_LANE_CLONES void write(const T* dy, const T* y, const T* x, T* dx, std::int64_t n, const Slopes& s) {
  if (y != nullptr)
    x != nullptr ? writeAs<true, true>(dy, y, x, dx, n, s) : writeAs<true, false>(dy, y, x, dx, n, s);
  else
    x != nullptr ? writeAs<false, true>(dy, y, x, dx, n, s) : writeAs<false, false>(dy, y, x, dx, n, s);
}

// dy, x?, scale, mean, inv_std, y? → dx?, dscale?, dbias?, g?; dy, x, y, dx and g are T, the others float32
template <typename T>
class BatchNormGradKernel final : public Kernel {
 public:
  explicit BatchNormGradKernel(const KernelSpec& spec)
      : g_(ChannelGroups::of(spec.inputs[0])),
        training_(spec.attrs.integer("training_mode", 1) != 0),
        threads_(threadsForElements(4 * elementCount(spec.inputs[0].dims), spec.threads)) {}

  Status run(const KernelCall& call) override {
    const auto in = [&](std::size_t i) {
      return call.inputPresent(i) ? static_cast<const float*>(call.inputs[i].data) : nullptr;
    };
    const auto out = [&](std::size_t i) {
      return call.outputPresent(i) ? static_cast<float*>(call.outputs[i].data) : nullptr;
    };
    const auto input = [&](std::size_t i) {
      return call.inputPresent(i) ? static_cast<const T*>(call.inputs[i].data) : nullptr;
    };
    const auto output = [&](std::size_t i) {
      return call.outputPresent(i) ? static_cast<T*>(call.outputs[i].data) : nullptr;
    };
    const float *scale = in(2), *means = in(3), *inverses = in(4);
    float *dscale = out(1), *dbias = out(2);
    const T *dy = input(0), *x = input(1), *y = input(5);
    T *dx = output(0), *kept = output(3);
    const double count = g_.count();
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t group = 0; group < g_.groups; ++group) {
      Slopes s{};
      for (std::int64_t lane = 0; lane < kLanes; ++lane)
        s.mean[static_cast<std::size_t>(lane)] = means[g_.lanes == 1 ? group : group * kLanes + lane];
      LaneSums sums{}, dots{};
      for (std::int64_t n = 0; n < g_.batch; ++n) {
        const std::int64_t at = g_.offset(n, group);
        const T* xs = x != nullptr ? x + at : nullptr;
        if (y != nullptr)
          sumGated<T>(dy + at, y + at, xs, kept != nullptr ? kept + at : nullptr, g_.length, s.mean.data(), sums.data(),
                      dots.data());
        else
          sumPlain<T>(dy + at, xs, g_.length, s.mean.data(), sums.data(), dots.data());
      }
      if (g_.lanes == 1) {
        sums[0] = total(sums);
        dots[0] = total(dots);
      }
      for (std::int64_t lane = 0; lane < g_.lanes; ++lane) {
        const auto l = static_cast<std::size_t>(lane);
        const std::int64_t c = group * g_.lanes + lane;
        const double inverse = inverses[c], dot = dots[l] * inverse, factor = scale[c] * inverse;
        if (dscale != nullptr) dscale[c] = static_cast<float>(dot);
        if (dbias != nullptr) dbias[c] = static_cast<float>(sums[l]);
        s.factor[l] = static_cast<float>(factor);
        s.slope[l] = static_cast<float>(factor * dot * inverse / count);
        s.shift[l] = static_cast<float>(factor * sums[l] / count);
      }
      if (dx == nullptr) continue;
      if (g_.lanes == 1) {
        s.factor.fill(s.factor[0]);
        s.slope.fill(s.slope[0]);
        s.shift.fill(s.shift[0]);
      }
      for (std::int64_t n = 0; n < g_.batch; ++n) {
        const std::int64_t at = g_.offset(n, group);
        const T* from = kept != nullptr ? kept : dy;
        write<T>(from + at, y != nullptr && kept == nullptr ? y + at : nullptr, training_ ? x + at : nullptr, dx + at,
                 g_.length, s);
      }
    }
    return {};
  }
  std::string implementation() const override { return g_.lanes == 1 ? "lanes of one channel" : "lanes of 16 channels"; }
  Determinism determinism() const override { return Determinism::fixed(); }

 private:
  ChannelGroups g_;
  bool training_;
  int threads_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeBatchNormGrad(const KernelSpec& spec) {
  SS_TRY(takesChannels(spec, {0, 1, 5}, {0, 3}, {2, 3, 4}, true));
  const bool training = spec.attrs.integer("training_mode", 1) != 0;
  if (!spec.inputPresent(1) && (spec.outputPresent(1) || (training && spec.outputPresent(0))))
    return unsupported(spec.op + ": x is absent; the reference kernel says what is missing");
  if (spec.inputs[0].layout == Layout::kChannelsLast) {
    if (spec.inputs[0].dtype != DType::kBF16) return unsupported(spec.op + ": channels that lie last are taken in bfloat16");
    return makeBatchNormLastGrad(spec);
  }
  if (spec.inputs[0].dtype == DType::kBF16) return std::make_unique<BatchNormGradKernel<BFloat16>>(spec);
  return std::make_unique<BatchNormGradKernel<float>>(spec);
}

}  // namespace stepscope::cpu
