// GroupNormalization, InstanceNormalization and their gradient: a group of channels of one image is a row in memory.
#include "kernels/cpu/loops/row_statistics.h"
#include "kernels/cpu/loops/row_sums.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

// x is [batch, groups, perGroup, spatial]; scale and bias have one element per channel, or one per group (opset 18).
struct Groups {
  std::int64_t batch = 1, groups = 1, perGroup = 1, spatial = 1;
  bool scalePerGroup = false;
  std::int64_t regions() const { return batch * groups; }
  std::int64_t width() const { return perGroup * spatial; }
  std::int64_t total() const { return regions() * width(); }
  std::int64_t scales() const { return scalePerGroup ? groups : groups * perGroup; }
  std::int64_t scaleIndex(std::int64_t region, std::int64_t k) const {
    return scalePerGroup ? region % groups : region % groups * perGroup + k;
  }
};

Result<Groups> groupsOf(const KernelSpec& spec, const Dims& dims, std::int64_t scales) {
  if (dims.size() < 2) return notTaken(spec, "an operand without channels");
  const std::int64_t asked = spec.op == "InstanceNormalization" ? 0 : spec.attrs.integer("num_groups", 0);
  Groups g;
  g.batch = dims[0];
  g.groups = asked == 0 ? dims[1] : asked;
  if (g.groups < 1 || dims[1] % g.groups != 0) return notTaken(spec, "groups that do not divide the channels");
  g.perGroup = dims[1] / g.groups;
  g.spatial = elementCount(std::span<const std::int64_t>(dims).subspan(2));
  g.scalePerGroup = scales != dims[1];
  if (scales != g.scales()) return notTaken(spec, "scales of another number");
  return g;
}

SS_CLONES void normaliseRun(const float* x, float rough, float rest, float scale, float bias, float* y, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = ((x[i] - rough) - rest) * scale + bias;
}

// Of dy, and of dy times the distance from the rough mean.
struct Dots {
  float total = 0, dot = 0;
};
SS_CLONES Dots dotsOf(const float* dy, const float* x, float rough, std::int64_t n) {
  SumLanes totals[kSumChains] = {}, dots[kSumChains] = {};
  std::int64_t i = 0;
  for (; i + kSumChains * kSumLanes <= n; i += kSumChains * kSumLanes)
    for (std::int64_t chain = 0; chain < kSumChains; ++chain) {
      SumLanes d, distance;
      loadLanes(dy + i + chain * kSumLanes, d);
      loadLanes(x + i + chain * kSumLanes, distance);
      totals[chain] += d;
      dots[chain] += d * (distance - rough);
    }
  Dots sum;
  for (; i < n; ++i) {
    sum.total += dy[i];
    sum.dot += dy[i] * (x[i] - rough);
  }
  return {sum.total + sumOfLanes(totals), sum.dot + sumOfLanes(dots)};
}

SS_CLONES void gradientRun(const float* dy, const float* x, float rough, float rest, float scale, float shift, float slope,
                           float* dx, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * scale - shift - ((x[i] - rough) - rest) * slope;
}

// Sums over the elements of one channel of one image: of dy, and of dy (x - mean) / deviation.
struct ChannelSums {
  double bias = 0, scale = 0;
};

// What run() of the gradient works on.
struct GradCall {
  const float *dy, *x, *scale;
  float* dx;  // or null
  ChannelSums* channels;
};

void gradientOfRegion(const Groups& g, double epsilon, const GradCall& c, std::int64_t region) {
  const std::int64_t begin = region * g.width();
  const RowStatistics s = rowStatistics(c.x + begin, g.width(), epsilon, true);
  ChannelSums* own = c.channels + region * g.perGroup;
  double total = 0, dot = 0;  // of dy scale, and of dy scale (x - mean) / deviation
  for (std::int64_t k = 0; k < g.perGroup; ++k) {
    double sum = 0, product = 0;
    for (std::int64_t at = 0; at < g.spatial; at += kSumBlock) {
      const std::int64_t i = begin + k * g.spatial + at;
      const Dots d = dotsOf(c.dy + i, c.x + i, s.rough, std::min(kSumBlock, g.spatial - at));
      sum += static_cast<double>(d.total);
      product += static_cast<double>(d.dot);
    }
    own[k] = {sum, (product - s.rest * sum) * s.inverse};
    const auto scale = static_cast<double>(c.scale[g.scaleIndex(region, k)]);
    total += scale * own[k].bias;
    dot += scale * own[k].scale;
  }
  if (c.dx == nullptr) return;
  const auto count = static_cast<double>(g.width());
  const auto shift = static_cast<float>(s.inverse * total / count),
             slope = static_cast<float>(dot * s.inverse * s.inverse / count);
  for (std::int64_t k = 0; k < g.perGroup; ++k) {
    const std::int64_t i = begin + k * g.spatial;
    const auto scale = static_cast<float>(s.inverse * static_cast<double>(c.scale[g.scaleIndex(region, k)]));
    gradientRun(c.dy + i, c.x + i, s.rough, static_cast<float>(s.rest), scale, shift, slope, c.dx + i, g.spatial);
  }
}

// Sums of the images, in their order; with one scale per group those of its channels too.
void sumChannels(const Groups& g, const ChannelSums* channels, float* dscale, float* dbias) {
  const std::int64_t perScale = g.scalePerGroup ? g.perGroup : 1;
  for (std::int64_t c = 0; c < g.scales(); ++c) {
    ChannelSums sum;
    for (std::int64_t n = 0; n < g.batch; ++n)
      for (std::int64_t k = 0; k < perScale; ++k) {
        const ChannelSums& part = channels[n * g.groups * g.perGroup + c * perScale + k];
        sum.bias += part.bias;
        sum.scale += part.scale;
      }
    if (dscale != nullptr) dscale[c] = static_cast<float>(sum.scale);
    if (dbias != nullptr) dbias[c] = static_cast<float>(sum.bias);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeGroupNorm(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesInput(spec, 2) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Groups g, groupsOf(spec, spec.inputs[0].dims, elementCount(spec.inputs[1].dims)));
  if (elementCount(spec.inputs[2].dims) != g.scales() || elementCount(spec.outputs[0].dims) != g.total())
    return notTaken(spec, "operands of other sizes");
  const double epsilon = static_cast<double>(spec.attrs.real("epsilon", 1e-5F));
  return makeBodyKernel("vector rows", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float *x = input(call, 0), *scale = input(call, 1), *bias = input(call, 2);
    float* y = output(call, 0);
    parallelRows(g.regions(), g.width(), threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t region = begin; region < end; ++region) {
        const RowStatistics s = rowStatistics(x + region * g.width(), g.width(), epsilon, true);
        for (std::int64_t k = 0; k < g.perGroup; ++k) {
          const std::int64_t at = region * g.width() + k * g.spatial, c = g.scaleIndex(region, k);
          normaliseRun(x + at, s.rough, static_cast<float>(s.rest),
                       static_cast<float>(s.inverse * static_cast<double>(scale[c])), bias[c], y + at, g.spatial);
        }
      }
    });
    return {};
  });
}

// dy, x, scale → dx?, dscale?, dbias?
Result<std::unique_ptr<Kernel>> makeGroupNormGrad(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesInput(spec, 2))
    return notTaken(spec, "elements other than float32");
  SS_ASSIGN(const Groups g, groupsOf(spec, spec.inputs[1].dims, elementCount(spec.inputs[2].dims)));
  if (elementCount(spec.inputs[0].dims) != g.total() || !takesOptionalOutput(spec, 0, g.total()) ||
      !takesOptionalOutput(spec, 1, g.scales()) || !takesOptionalOutput(spec, 2, g.scales()))
    return notTaken(spec, "operands of other sizes");
  const double epsilon = static_cast<double>(spec.attrs.real("epsilon", 1e-5F));
  const auto body = [=, threads = spec.threads](const KernelCall& call) -> Status {
    const GradCall c{input(call, 0), input(call, 1), input(call, 2), call.outputPresent(0) ? output(call, 0) : nullptr,
                     reinterpret_cast<ChannelSums*>(call.workspace.data())};
    parallelRows(g.regions(), g.width(), threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t region = begin; region < end; ++region) gradientOfRegion(g, epsilon, c, region);
    });
    sumChannels(g, c.channels, call.outputPresent(1) ? output(call, 1) : nullptr,
                call.outputPresent(2) ? output(call, 2) : nullptr);
    return {};
  };
  return makeBodyKernel("vector rows", body, static_cast<std::size_t>(g.regions() * g.perGroup) * sizeof(ChannelSums));
}

}  // namespace stepscope::cpu
