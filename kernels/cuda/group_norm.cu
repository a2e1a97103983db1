// GroupNormalization, InstanceNormalization (a group per channel) and their gradient. The channels of a group of one image
// lie side by side: a region, which has one block. Gradients of scale and bias have a block per element, which adds the
// images in their order.
#include "kernels/cuda/block_sums.h"
#include "kernels/cuda/row_parts.h"
#include "kernels/cuda/support.h"

namespace stepscope::cuda {
inline namespace group_norm_cu {

// x is [batch, groups, perGroup, spatial]; scale and bias have an element per channel, or per group (opset 18).
struct Groups {
  std::int64_t batch = 1, groups = 1, perGroup = 1, spatial = 1;
  bool scalePerGroup = false;
  SS_ANY std::int64_t regions() const { return batch * groups; }
  SS_ANY std::int64_t width() const { return perGroup * spatial; }
  SS_ANY std::int64_t scales() const { return scalePerGroup ? groups : groups * perGroup; }
  // Of element i of a region.
  SS_ANY std::int64_t scaleAt(std::int64_t region, std::int64_t i) const {
    return scalePerGroup ? region % groups : region % groups * perGroup + i / spatial;
  }
};

struct Region {
  float mean, inverse;
};
// Of the block's region; all threads get it.
SS_DEVICE Region statisticsOf(const Global<const float>& x, std::int64_t at, std::int64_t width, float epsilon) {
  float sum = 0;
  forEachPart(width, [&](std::int64_t i, auto n) {
    float part[decltype(n)::value];
    loadPart(x, at + i, true, part);
    for (const float one : part) sum += one;
  });
  const float mean = joinBlock<Plus>(sum) / static_cast<float>(width);
  float squares = 0;
  forEachPart(width, [&](std::int64_t i, auto n) {
    float part[decltype(n)::value];
    loadPart(x, at + i, true, part);
    for (const float one : part) squares += (one - mean) * (one - mean);
  });
  return {mean, 1.0F / sqrtf(joinBlock<Plus>(squares) / static_cast<float>(width) + epsilon)};
}

// x, y: [regions, width]; scale, bias: [scales]; y may lie over x.
SS_GLOBAL void groupNorm(Global<const float> x, Global<const float> scale, Global<const float> bias, Global<float> y,
                         Groups g, float epsilon) {
  const std::int64_t region = gpu::blockIndex(), at = region * g.width();
  const Region s = statisticsOf(x, at, g.width(), epsilon);
  forEachPart(g.width(), [&](std::int64_t i, auto n) {
    constexpr int kCount = decltype(n)::value;
    float value[kCount];
    loadPart(x, at + i, true, value);
    for (int e = 0; e < kCount; ++e) {
      const std::int64_t c = g.scaleAt(region, i + e);
      value[e] = (value[e] - s.mean) * s.inverse * scale[c] + bias[c];
    }
    storePart(y, at + i, true, value);
  });
}

// mean, inverse: [regions]
SS_GLOBAL void groupStatistics(Global<const float> x, Global<float> mean, Global<float> inverse, Groups g, float epsilon) {
  const std::int64_t region = gpu::blockIndex();
  const Region s = statisticsOf(x, region * g.width(), g.width(), epsilon);
  if (gpu::threadIndex() != 0) return;
  mean[region] = s.mean;
  inverse[region] = s.inverse;
}

// dscale?, dbias?: [scales], a block each.
SS_GLOBAL void groupParameters(Global<const float> dy, Global<const float> x, Global<const float> mean,
                               Global<const float> inverse, Global<float> dscale, Global<float> dbias, Groups g) {
  const std::int64_t c = gpu::blockIndex(), width = g.scalePerGroup ? g.width() : g.spatial;
  double scaleSum = 0, biasSum = 0;
  for (std::int64_t n = 0; n < g.batch; ++n) {
    const std::int64_t region = n * g.groups + (g.scalePerGroup ? c : c / g.perGroup), at = (n * g.scales() + c) * width;
    const float centre = mean[region], factor = inverse[region];
    forEachPart(width, [&](std::int64_t i, auto k) {
      constexpr int kCount = decltype(k)::value;
      float d[kCount], value[kCount];
      loadPart(dy, at + i, true, d);
      loadPart(x, at + i, true, value);
      for (int e = 0; e < kCount; ++e) {
        scaleSum += static_cast<double>(d[e] * ((value[e] - centre) * factor));
        biasSum += static_cast<double>(d[e]);
      }
    });
  }
  scaleSum = joinBlock<Plus>(scaleSum);
  biasSum = joinBlock<Plus>(biasSum);
  if (gpu::threadIndex() != 0) return;
  if (dscale.present()) dscale[c] = static_cast<float>(scaleSum);
  if (dbias.present()) dbias[c] = static_cast<float>(biasSum);
}

// dx = inverse * (d - (sum d + (x - mean) inverse^2 sum d (x - mean)) / width) with d = dy * scale; dx may lie over dy or x.
SS_GLOBAL void groupNormGrad(Global<const float> dy, Global<const float> x, Global<const float> scale,
                             Global<const float> mean, Global<const float> inverse, Global<float> dx, Groups g) {
  const std::int64_t region = gpu::blockIndex(), at = region * g.width();
  const float centre = mean[region], factor = inverse[region];
  float total = 0, dot = 0;
  forEachPart(g.width(), [&](std::int64_t i, auto n) {
    constexpr int kCount = decltype(n)::value;
    float d[kCount], value[kCount];
    loadPart(dy, at + i, true, d);
    loadPart(x, at + i, true, value);
    for (int e = 0; e < kCount; ++e) {
      const float own = d[e] * scale[g.scaleAt(region, i + e)];
      total += own;
      dot += own * (value[e] - centre);
    }
  });
  const float count = static_cast<float>(g.width());
  const float shift = joinBlock<Plus>(total) / count, slope = joinBlock<Plus>(dot) * factor * factor / count;
  forEachPart(g.width(), [&](std::int64_t i, auto n) {
    constexpr int kCount = decltype(n)::value;
    float d[kCount], value[kCount];
    loadPart(dy, at + i, true, d);
    loadPart(x, at + i, true, value);
    for (int e = 0; e < kCount; ++e)
      d[e] = factor * (d[e] * scale[g.scaleAt(region, i + e)] - shift - (value[e] - centre) * slope);
    storePart(dx, at + i, true, d);
  });
}

Result<Groups> groupsOf(const KernelSpec& spec, const Dims& x, const Dims& scale) {
  if (x.size() < 2 || elementCount(x) == 0) return notTaken(spec, "nothing to normalise");
  const std::int64_t asked = spec.op == "InstanceNormalization" ? 0 : spec.attrs.integer("num_groups", 0);
  Groups g;
  g.batch = x[0];
  g.groups = asked == 0 ? x[1] : asked;
  if (g.groups < 1 || x[1] % g.groups != 0) return notTaken(spec, "groups that do not divide the channels");
  g.perGroup = x[1] / g.groups;
  g.spatial = elementCount(std::span<const std::int64_t>(x).subspan(2));
  g.scalePerGroup = elementCount(scale) != x[1];
  if (elementCount(scale) != g.scales()) return notTaken(spec, "a scale of another size");
  return g;
}

}  // namespace group_norm_cu

// x, scale, bias → y
Result<std::unique_ptr<Kernel>> makeGroupNorm(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesInput(spec, 2) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Groups groups, groupsOf(spec, spec.inputs[0].dims, spec.inputs[1].dims));
  if (elementCount(spec.inputs[2].dims) != groups.scales()) return notTaken(spec, "a bias of another size");
  const float epsilon = spec.attrs.real("epsilon", 1e-5F);
  return makeLaunched("regions", [=](Launcher& gpu) {
    return gpu.run("group norm", gpu::function<groupNorm>, groups.regions(), threadsForRow(groups.width()), gpu.in<float>(0),
                   gpu.in<float>(1), gpu.in<float>(2), gpu.out<float>(0), groups, epsilon);
  });
}

// dy, x, scale → dx?, dscale?, dbias?
Result<std::unique_ptr<Kernel>> makeGroupNormGrad(const KernelSpec& spec) {
  for (std::size_t i = 0; i < 3; ++i)
    if (!takesInput(spec, i)) return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Groups groups, groupsOf(spec, spec.inputs[1].dims, spec.inputs[2].dims));
  const std::int64_t total = groups.regions() * groups.width();
  if (!takesOptional(spec, 0, total) || !takesOptionalOutput(spec, 0, total) ||
      !takesOptionalOutput(spec, 1, groups.scales()) || !takesOptionalOutput(spec, 2, groups.scales()))
    return notTaken(spec, "operands of other sizes");
  const float epsilon = spec.attrs.real("epsilon", 1e-5F);
  const bool parameters = spec.outputPresent(1) || spec.outputPresent(2), dx = spec.outputPresent(0);
  const std::int64_t regions = groups.regions();
  const std::size_t half = static_cast<std::size_t>(regions) * sizeof(float);
  const auto body = [=](Launcher& gpu) -> Status {
    SS_TRY(gpu.run("group norm gradient: statistics", gpu::function<groupStatistics>, regions, threadsForRow(groups.width()),
                   gpu.in<float>(1), gpu.room<float>(0, regions), gpu.room<float>(half, regions), groups, epsilon));
    // dx may lie over dy or x, so it is written last.
    if (parameters)
      SS_TRY(gpu.run("group norm gradient: parameters", gpu::function<groupParameters>, groups.scales(),
                     threadsForRow(groups.spatial), gpu.in<float>(0), gpu.in<float>(1), gpu.readRoom<float>(0, regions),
                     gpu.readRoom<float>(half, regions), gpu.out<float>(1), gpu.out<float>(2), groups));
    if (!dx) return {};
    return gpu.run("group norm gradient", gpu::function<groupNormGrad>, regions, threadsForRow(groups.width()),
                   gpu.in<float>(0), gpu.in<float>(1), gpu.in<float>(2), gpu.readRoom<float>(0, regions),
                   gpu.readRoom<float>(half, regions), gpu.out<float>(0), groups);
  };
  return makeLaunched("regions", body, 2 * half);
}

}  // namespace stepscope::cuda
