#include <cmath>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"
#include "kernels/running_variance.h"

namespace stepscope::reference {
namespace {

// x is [batch, channels, spatial]; a tensor of rank 1 is a batch of one channel.
struct Planes {
  std::int64_t batch = 1, channels = 1, spatial = 1;
};

Result<Planes> planesOf(const KernelSpec& spec, const KernelCall& call, const TensorView& x, std::size_t firstOfChannel,
                        std::size_t lastOfChannel) {
  if (x.dims.empty()) return invalid(spec.op + ": x is a scalar; expected at least one axis");
  const std::span<const std::int64_t> dims = x.dims;
  const Planes planes{dims[0], dims.size() > 1 ? dims[1] : 1, dims.size() > 2 ? elementCount(dims.subspan(2)) : 1};
  for (std::size_t i = firstOfChannel; i <= lastOfChannel; ++i)
    SS_TRY(expectElements(spec, "input " + std::to_string(i), call.inputs[i], planes.channels));
  return planes;
}

// visit(i) for every element of channel c.
template <typename F>
void forEachOfChannel(const Planes& p, std::int64_t c, F&& visit) {
  for (std::int64_t n = 0; n < p.batch; ++n) {
    const std::int64_t begin = (n * p.channels + c) * p.spatial;
    for (std::int64_t i = begin; i < begin + p.spatial; ++i) visit(i);
  }
}

// x, scale, b, mean, var, z? → y, running_mean?, running_var?, saved_mean?, saved_inv_std?; z and relu belong to the fused
// op.
Status batchNorm(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Planes p, planesOf(spec, call, x, 1, 4));
  const bool training = spec.attrs.integer("training_mode", 0) != 0;
  const double epsilon = spec.attrs.real("epsilon", 1e-5F), momentum = spec.attrs.real("momentum", 0.9F);
  const bool relu = spec.attrs.integer("relu", 0) != 0, adds = call.inputPresent(5);
  if (adds) SS_TRY(expectElements(spec, "z", call.inputs[5], x.elements()));
  const auto count = static_cast<double>(p.batch * p.spatial);
  const double factor = runningVarianceFactor(spec.attrs.integer("sample_variance", 0) != 0, count);
  const auto store = [&](std::size_t output, std::int64_t c, double value) {
    if (call.outputPresent(output)) storeElement(call.outputs[output], c, value);
  };
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* in = readAs<T>(x);
    const T* z = adds ? readAs<T>(call.inputs[5]) : nullptr;
    T* out = writeAs<T>(call.outputs[0]);
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const double oldMean = elementAsDouble(call.inputs[3], c), oldVariance = elementAsDouble(call.inputs[4], c);
      double mean = oldMean, variance = oldVariance;
      if (training) {
        mean = variance = 0;
        forEachOfChannel(p, c, [&](std::int64_t i) { mean += static_cast<double>(in[i]); });
        mean /= count;
        forEachOfChannel(p, c, [&](std::int64_t i) {
          const double d = static_cast<double>(in[i]) - mean;
          variance += d * d;
        });
        variance /= count;
      }
      const double inverse = 1 / std::sqrt(variance + epsilon);
      const double scale = elementAsDouble(call.inputs[1], c) * inverse, bias = elementAsDouble(call.inputs[2], c);
      forEachOfChannel(p, c, [&](std::int64_t i) {
        double y = (static_cast<double>(in[i]) - mean) * scale + bias;
        if (z != nullptr) y += static_cast<double>(z[i]);
        out[i] = static_cast<T>(relu && y < 0 ? 0 : y);
      });
      store(1, c, training ? oldMean * momentum + mean * (1 - momentum) : oldMean);
      store(2, c, training ? oldVariance * momentum + variance * factor * (1 - momentum) : oldVariance);
      store(3, c, mean);
      store(4, c, inverse);
    }
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

// dy, x?, scale, mean, inv_std, y? → dx?, dscale?, dbias?, g?. With training_mode the statistics depend on x. y and g belong
// to the fused op, whose dy first goes through the gradient of Relu.
Status batchNormGrad(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& dy = call.inputs[0];
  SS_ASSIGN(const Planes p, planesOf(spec, call, dy, 2, 4));
  const bool training = spec.attrs.integer("training_mode", 1) != 0;
  const bool wantsX = call.outputPresent(0), wantsScale = call.outputPresent(1), wantsBias = call.outputPresent(2);
  const bool hasX = call.inputPresent(1), readsX = wantsScale || (wantsX && training);
  if (readsX && !hasX) return invalid(spec.op + ": x is absent; expected for training_mode or dscale");
  if (hasX) SS_TRY(expectElements(spec, "x", call.inputs[1], dy.elements()));
  const bool gated = call.inputPresent(5);
  if (gated) SS_TRY(expectElements(spec, "y", call.inputs[5], dy.elements()));
  const auto count = static_cast<double>(p.batch * p.spatial);
  const bool known = dispatchFloat(dy.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* d = readAs<T>(dy);
    const T* x = readsX ? readAs<T>(call.inputs[1]) : nullptr;
    const T* y = gated ? readAs<T>(call.inputs[5]) : nullptr;
    T* gOut = call.outputPresent(3) ? writeAs<T>(call.outputs[3]) : nullptr;
    const auto gradientAt = [&](std::int64_t i) {
      return y != nullptr && static_cast<double>(y[i]) <= 0 ? 0.0 : static_cast<double>(d[i]);
    };
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const double mean = elementAsDouble(call.inputs[3], c), inverse = elementAsDouble(call.inputs[4], c);
      double sum = 0, dot = 0;
      if (readsX || wantsBias)
        forEachOfChannel(p, c, [&](std::int64_t i) {
          const double g = gradientAt(i);
          sum += g;
          if (x != nullptr) dot += g * (static_cast<double>(x[i]) - mean);
        });
      dot *= inverse;
      // Before dx, which may take the memory of dy.
      if (gOut != nullptr) forEachOfChannel(p, c, [&](std::int64_t i) { gOut[i] = static_cast<T>(gradientAt(i)); });
      const double factor = wantsX ? elementAsDouble(call.inputs[2], c) * inverse : 0;
      if (wantsX && training) {
        T* dx = writeAs<T>(call.outputs[0]);
        const double shift = sum / count, slope = dot * inverse / count;
        forEachOfChannel(p, c, [&](std::int64_t i) {
          dx[i] = static_cast<T>(factor * (gradientAt(i) - shift - (static_cast<double>(x[i]) - mean) * slope));
        });
      } else if (wantsX) {
        T* dx = writeAs<T>(call.outputs[0]);
        forEachOfChannel(p, c, [&](std::int64_t i) { dx[i] = static_cast<T>(factor * gradientAt(i)); });
      }
      if (wantsScale) storeElement(call.outputs[1], c, dot);
      if (wantsBias) storeElement(call.outputs[2], c, sum);
    }
  });
  if (!known) return badType(spec, dy.dtype);
  return {};
}

constexpr KernelEntry kBatchNormEntries[] = {
    {"", "BatchNormalization", plain<batchNorm>},
    {"stepscope", "BatchNormalizationGrad", plain<batchNormGrad>},
    {"stepscope", "FusedBatchNormalization", plain<batchNorm>},
    {"stepscope", "FusedBatchNormalizationGrad", plain<batchNormGrad>},
};

}  // namespace

std::span<const KernelEntry> batchNormKernels() { return kBatchNormEntries; }

}  // namespace stepscope::reference
