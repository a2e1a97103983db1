// BatchNormalization, alone and with an addition and Relu behind it, and the gradients. One block sums a channel, in double;
// what it finds is applied by one thread to four elements.
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/row_parts.h"
#include "kernels/cuda/support.h"
#include "kernels/running_variance.h"

namespace stepscope::cuda {
inline namespace batch_norm_cu {

constexpr int kEach = kQuad;

// x: [batch, channels, spatial].
struct Planes {
  std::int64_t batch = 1, channels = 1, spatial = 1;
  SS_ANY std::int64_t ofChannel() const { return batch * spatial; }
  // Where element i of channel c lies.
  SS_DEVICE std::int64_t at(std::int64_t c, std::int64_t i) const {
    return (i / spatial * channels + c) * spatial + i % spatial;
  }
  // Calls visit(place, n) for the elements of channel c that this thread has: n neighbours, an integral_constant of four
  // where a plane has a multiple of them, else of one.
  template <typename Visit>
  SS_DEVICE void forEachOf(std::int64_t c, Visit&& visit) const {
    if (spatial % kQuad == 0)
      for (std::int64_t i = kQuad * gpu::threadIndex(); i < ofChannel(); i += kQuad * gpu::blockSize())
        visit(at(c, i), std::integral_constant<int, kQuad>());
    else
      for (std::int64_t i = gpu::threadIndex(); i < ofChannel(); i += gpu::blockSize())
        visit(at(c, i), std::integral_constant<int, 1>());
  }
};

struct Norm {
  Planes planes;
  bool training = false, relu = false;
  double epsilon = 0, momentum = 0, varianceFactor = 1;
};

// found: [channels, 2] mean and 1 / deviation. One block per channel; the state may be written over what it follows.
SS_GLOBAL void channelStatistics(Global<const float> x, Global<const float> mean, Global<const float> variance,
                                 Global<float> nextMean, Global<float> nextVariance, Global<float> savedMean,
                                 Global<float> savedInverse, Global<double> found, Norm norm) {
  const std::int64_t c = gpu::blockIndex(), count = norm.planes.ofChannel();
  double centre = 0, spread = 0;
  if (norm.training) {
    norm.planes.forEachOf(c, [&](std::int64_t at, auto n) {
      float part[decltype(n)::value];
      loadPart(x, at, true, part);
      for (const float one : part) centre += static_cast<double>(one);
    });
    centre = joinBlock<Plus>(centre) / static_cast<double>(count);
    norm.planes.forEachOf(c, [&](std::int64_t at, auto n) {
      float part[decltype(n)::value];
      loadPart(x, at, true, part);
      for (const float one : part) spread += (static_cast<double>(one) - centre) * (static_cast<double>(one) - centre);
    });
    spread = joinBlock<Plus>(spread) / static_cast<double>(count);
  }
  if (gpu::threadIndex() != 0) return;
  const double oldMean = static_cast<double>(mean[c]), oldVariance = static_cast<double>(variance[c]);
  if (!norm.training) {
    centre = oldMean;
    spread = oldVariance;
  }
  const double inverse = 1 / sqrt(spread + norm.epsilon), m = norm.training ? norm.momentum : 1.0;
  found[2 * c] = centre;
  found[2 * c + 1] = inverse;
  if (nextMean.present()) nextMean[c] = static_cast<float>(oldMean * m + centre * (1 - m));
  if (nextVariance.present())
    nextVariance[c] = static_cast<float>(oldVariance * m + spread * (norm.training ? norm.varianceFactor : 1.0) * (1 - m));
  if (savedMean.present()) savedMean[c] = static_cast<float>(centre);
  if (savedInverse.present()) savedInverse[c] = static_cast<float>(inverse);
}

// y = (x - mean) * inverse * scale + bias (+ z), not below zero where relu; y may lie over x or z.
SS_GLOBAL void normalise(Global<const float> x, Global<const float> scale, Global<const float> bias, Global<const float> z,
                         Global<const double> found, Global<float> y, Norm norm) {
  const std::int64_t total = norm.planes.ofChannel() * norm.planes.channels;
  const std::int64_t first = (gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex()) * kEach;
  if (first >= total) return;
  const int n = static_cast<int>(total - first < kEach ? total - first : kEach);
  float value[kEach] = {}, added[kEach] = {};
  load(x, first, n, value);
  if (z.present()) load(z, first, n, added);
  for (int e = 0; e < n; ++e) {
    const std::int64_t c = (first + e) / norm.planes.spatial % norm.planes.channels;
    const double factor = static_cast<double>(found[2 * c + 1]) * static_cast<double>(scale[c]);
    const double result = (static_cast<double>(value[e]) - found[2 * c]) * factor + static_cast<double>(bias[c]) +
                          static_cast<double>(added[e]);
    value[e] = norm.relu && result < 0 ? 0.0F : static_cast<float>(result);
  }
  store(y, first, n, value);
}

// g: dy of some neighbours behind the gradient of Relu, whose result is y.
template <int kCount>
SS_DEVICE void loadGated(const Global<const float>& dy, const Global<const float>& y, std::int64_t at, float (&g)[kCount]) {
  loadPart(dy, at, true, g);
  if (!y.present()) return;
  float result[kCount];
  loadPart(y, at, true, result);
  for (int e = 0; e < kCount; ++e) g[e] = result[e] <= 0.0F ? 0.0F : g[e];
}

// found: [channels, 2] sums of g and of g (x - mean) inverse. One block per channel.
SS_GLOBAL void gradientSums(Global<const float> dy, Global<const float> x, Global<const float> mean,
                            Global<const float> inverse, Global<const float> y, Global<float> dscale, Global<float> dbias,
                            Global<double> found, Planes planes) {
  const std::int64_t c = gpu::blockIndex();
  const double centre = static_cast<double>(mean[c]);
  double sum = 0, dot = 0;
  planes.forEachOf(c, [&](std::int64_t at, auto n) {
    constexpr int kCount = decltype(n)::value;
    float g[kCount], value[kCount] = {};
    loadGated(dy, y, at, g);
    if (x.present()) loadPart(x, at, true, value);
    for (int e = 0; e < kCount; ++e) {
      sum += static_cast<double>(g[e]);
      if (x.present()) dot += static_cast<double>(g[e]) * (static_cast<double>(value[e]) - centre);
    }
  });
  sum = joinBlock<Plus>(sum);
  dot = joinBlock<Plus>(dot) * static_cast<double>(inverse[c]);
  if (gpu::threadIndex() != 0) return;
  found[2 * c] = sum;
  found[2 * c + 1] = dot;
  if (dscale.present()) dscale[c] = static_cast<float>(dot);
  if (dbias.present()) dbias[c] = static_cast<float>(sum);
}

// dx = scale inverse (g - (sum g + (x - mean) inverse sum g (x - mean) inverse) / count), the inner part only where the
// statistics depend on x; gated?: g. dx may lie over dy. One thread per four elements.
SS_GLOBAL void gradientElements(Global<const float> dy, Global<const float> x, Global<const float> scale,
                                Global<const float> mean, Global<const float> inverse, Global<const float> y,
                                Global<const double> found, Global<float> dx, Global<float> gated, Planes planes,
                                bool training) {
  const std::int64_t total = planes.ofChannel() * planes.channels;
  const std::int64_t first = (gpu::blockIndex() * gpu::blockSize() + gpu::threadIndex()) * kEach;
  if (first >= total) return;
  const int n = static_cast<int>(total - first < kEach ? total - first : kEach);
  const bool centred = training && dx.present();
  const double count = static_cast<double>(planes.ofChannel());
  float g[kEach] = {}, result[kEach] = {}, value[kEach] = {};
  load(dy, first, n, g);
  if (y.present()) {
    load(y, first, n, result);
    for (int e = 0; e < n; ++e) g[e] = result[e] <= 0.0F ? 0.0F : g[e];
  }
  if (centred) load(x, first, n, value);
  if (gated.present()) store(gated, first, n, g);
  if (!dx.present()) return;
  for (int e = 0; e < n; ++e) {
    const std::int64_t c = (first + e) / planes.spatial % planes.channels;
    const double steep = static_cast<double>(inverse[c]);
    double own = static_cast<double>(g[e]);
    if (centred) {
      const double distance = static_cast<double>(value[e]) - static_cast<double>(mean[c]);
      own -= found[2 * c] / count + distance * (found[2 * c + 1] * steep / count);
    }
    g[e] = static_cast<float>(static_cast<double>(scale[c]) * steep * own);
  }
  store(dx, first, n, g);
}

Result<Planes> planesOf(const KernelSpec& spec, std::size_t firstOfChannel, std::size_t lastOfChannel) {
  if (!takesInput(spec, 0) || spec.inputs[0].dims.empty()) return notTaken(spec, "elements other than float32");
  const std::span<const std::int64_t> dims = spec.inputs[0].dims;
  const Planes planes{dims[0], dims.size() > 1 ? dims[1] : 1, dims.size() > 2 ? elementCount(dims.subspan(2)) : 1};
  for (std::size_t i = firstOfChannel; i <= lastOfChannel; ++i)
    if (!takesInput(spec, i) || elementCount(spec.inputs[i].dims) != planes.channels)
      return notTaken(spec, "parameters other than one float32 per channel");
  return planes;
}

std::size_t roomFor(const Planes& planes) { return static_cast<std::size_t>(planes.channels) * 2 * sizeof(double); }

}  // namespace batch_norm_cu

// x, scale, bias, mean, variance, z? → y, next mean?, next variance?, saved mean?, saved inverse?
Result<std::unique_ptr<Kernel>> makeBatchNorm(const KernelSpec& spec) {
  Norm norm;
  SS_ASSIGN(norm.planes, planesOf(spec, 1, 4));
  const std::int64_t total = norm.planes.ofChannel() * norm.planes.channels;
  norm.training = spec.attrs.integer("training_mode", 0) != 0;
  norm.relu = spec.attrs.integer("relu", 0) != 0;
  norm.epsilon = static_cast<double>(spec.attrs.real("epsilon", 1e-5F));
  norm.momentum = static_cast<double>(spec.attrs.real("momentum", 0.9F));
  norm.varianceFactor =
      runningVarianceFactor(spec.attrs.integer("sample_variance", 0) != 0, static_cast<double>(norm.planes.ofChannel()));
  if (!takesOutput(spec, 0) || !takesOptional(spec, 5, total)) return notTaken(spec, "operands of another size");
  for (std::size_t o = 1; o < 5; ++o)
    if (!takesOptionalOutput(spec, o, norm.planes.channels))
      return notTaken(spec, "results other than one float32 per channel");
  const std::int64_t channels = norm.planes.channels;
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(gpu.run("batch norm: statistics", gpu::function<channelStatistics>, channels,
                   norm.training ? threadsForRow(norm.planes.ofChannel()) : 32, gpu.in<float>(0), gpu.in<float>(3),
                   gpu.in<float>(4), gpu.out<float>(1), gpu.out<float>(2), gpu.out<float>(3), gpu.out<float>(4),
                   gpu.room<double>(0, 2 * channels), norm));
    return gpu.run("batch norm", gpu::function<normalise>, blocksFor(total, kThreads * kEach), kThreads, gpu.in<float>(0),
                   gpu.in<float>(1), gpu.in<float>(2), gpu.in<float>(5), gpu.readRoom<double>(0, 2 * channels),
                   gpu.out<float>(0), norm);
  };
  return makeLaunched("channels", body, roomFor(norm.planes));
}

// dy, x?, scale, mean, inverse, y? → dx?, dscale?, dbias?, g?
Result<std::unique_ptr<Kernel>> makeBatchNormGrad(const KernelSpec& spec) {
  SS_ASSIGN(const Planes planes, planesOf(spec, 2, 4));
  const std::int64_t total = planes.ofChannel() * planes.channels;
  const bool training = spec.attrs.integer("training_mode", 1) != 0;
  const bool needsX = spec.outputPresent(1) || (spec.outputPresent(0) && training);
  if ((needsX && !spec.inputPresent(1)) || !takesOptional(spec, 1, total) || !takesOptional(spec, 5, total) ||
      !takesOptionalOutput(spec, 0, total) || !takesOptionalOutput(spec, 1, planes.channels) ||
      !takesOptionalOutput(spec, 2, planes.channels) || !takesOptionalOutput(spec, 3, total))
    return notTaken(spec, "operands of other sizes");
  const bool elements = spec.outputPresent(0) || spec.outputPresent(3);
  const auto body = [=](Launcher& gpu) -> Status {
    const auto x = [&] { return needsX ? gpu.in<float>(1) : Global<const float>(); };
    SS_TRY(gpu.run("batch norm gradient: sums", gpu::function<gradientSums>, planes.channels,
                   threadsForRow(planes.ofChannel()), gpu.in<float>(0), x(), gpu.in<float>(3), gpu.in<float>(4),
                   gpu.in<float>(5), gpu.out<float>(1), gpu.out<float>(2), gpu.room<double>(0, 2 * planes.channels),
                   planes));
    if (!elements) return {};
    return gpu.run("batch norm gradient", gpu::function<gradientElements>, blocksFor(total, kThreads * kEach), kThreads,
                   gpu.in<float>(0), x(), gpu.in<float>(2), gpu.in<float>(3), gpu.in<float>(4), gpu.in<float>(5),
                   gpu.readRoom<double>(0, 2 * planes.channels), gpu.out<float>(0), gpu.out<float>(3), planes, training);
  };
  return makeLaunched("channels", body, roomFor(planes));
}

}  // namespace stepscope::cuda
