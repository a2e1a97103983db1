#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

// x is [batch, groups, perGroup, spatial] with channels = groups * perGroup; scale and bias have one element per channel,
// or one per group (opset 18).
struct Groups {
  std::int64_t batch = 1, groups = 1, perGroup = 1, spatial = 1;
  bool scalePerGroup = false;
  std::int64_t regions() const { return batch * groups; }
  std::int64_t regionElements() const { return perGroup * spatial; }
  std::int64_t scaleIndex(std::int64_t group, std::int64_t k) const { return scalePerGroup ? group : group * perGroup + k; }
};

// Instance normalisation is one group per channel, written as num_groups = 0.
Result<Groups> groupsOf(const KernelSpec& spec, std::span<const std::int64_t> dims, const std::int64_t scaleElements) {
  if (dims.size() < 2) return invalid(fmt::format("{}: x has shape {}; expected [N, C, ...]", spec.op, dimsText(dims)));
  Groups g;
  g.batch = dims[0];
  const std::int64_t asked = spec.op == "InstanceNormalization" ? 0 : spec.attrs.integer("num_groups", 0);
  g.groups = asked == 0 ? dims[1] : asked;
  if (g.groups < 0 || (g.groups > 0 && dims[1] % g.groups != 0))
    return invalid(fmt::format("{}: num_groups {} does not divide {} channels", spec.op, asked, dims[1]));
  g.perGroup = g.groups == 0 ? 0 : dims[1] / g.groups;
  g.spatial = elementCount(dims.subspan(2));
  g.scalePerGroup = scaleElements != dims[1];
  if (g.scalePerGroup && scaleElements != g.groups)
    return invalid(fmt::format("{}: scale has {} elements; expected one per channel ({}) or per group ({})", spec.op,
                               scaleElements, dims[1], g.groups));
  return g;
}

struct Statistics {
  double mean = 0, inverse = 0;
};

template <typename T>
Statistics statisticsOf(const T* x, std::int64_t count, double epsilon) {
  Statistics s;
  for (std::int64_t i = 0; i < count; ++i) s.mean += static_cast<double>(x[i]);
  s.mean /= static_cast<double>(count);
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(x[i]) - s.mean;
    squares += d * d;
  }
  s.inverse = 1 / std::sqrt(squares / static_cast<double>(count) + epsilon);
  return s;
}

Status groupNorm(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Groups g, groupsOf(spec, x.dims, call.inputs[1].elements()));
  SS_TRY(expectElements(spec, "bias", call.inputs[2], call.inputs[1].elements()));
  const double epsilon = spec.attrs.real("epsilon", 1e-5F);
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t r = 0; r < g.regions(); ++r) {
      const T* in = readAs<T>(x) + r * g.regionElements();
      T* out = writeAs<T>(call.outputs[0]) + r * g.regionElements();
      const Statistics s = statisticsOf(in, g.regionElements(), epsilon);
      for (std::int64_t k = 0; k < g.perGroup; ++k) {
        const std::int64_t c = g.scaleIndex(r % g.groups, k);
        const double scale = elementAsDouble(call.inputs[1], c) * s.inverse, bias = elementAsDouble(call.inputs[2], c);
        for (std::int64_t i = k * g.spatial; i < (k + 1) * g.spatial; ++i)
          out[i] = static_cast<T>((static_cast<double>(in[i]) - s.mean) * scale + bias);
      }
    }
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

// dy, x, scale → dx?, dscale?, dbias?. The statistics of all regions are kept in the workspace, since dscale sums over the
// batch and dx over the channels of a group.
class GroupNormGrad final : public Kernel {
 public:
  GroupNormGrad(KernelSpec spec, Groups groups) : spec_(std::move(spec)), g_(groups) {}
  std::size_t workspaceBytes() const override { return static_cast<std::size_t>(g_.regions()) * sizeof(Statistics); }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

  Status run(const KernelCall& call) override {
    SS_TRY(expectElements(spec_, "dy", call.inputs[0], g_.regions() * g_.regionElements()));
    SS_TRY(expectElements(spec_, "x", call.inputs[1], g_.regions() * g_.regionElements()));
    const bool known = dispatchFloat(call.inputs[1].dtype, [&](auto tag) { compute<decltype(tag)>(call); });
    if (!known) return badType(spec_, call.inputs[1].dtype);
    return {};
  }

 private:
  template <typename T>
  void compute(const KernelCall& call) const {
    const T* dy = readAs<T>(call.inputs[0]);
    const T* x = readAs<T>(call.inputs[1]);
    const double epsilon = spec_.attrs.real("epsilon", 1e-5F);
    auto* statistics = reinterpret_cast<Statistics*>(call.workspace.data());
    for (std::int64_t r = 0; r < g_.regions(); ++r)
      statistics[r] = statisticsOf(x + r * g_.regionElements(), g_.regionElements(), epsilon);
    if (call.outputPresent(1) || call.outputPresent(2)) parameters(call, dy, x, statistics);
    if (call.outputPresent(0)) input(call, dy, x, statistics);
  }

  template <typename T>
  void parameters(const KernelCall& call, const T* dy, const T* x, const Statistics* statistics) const {
    const std::int64_t results = g_.scalePerGroup ? g_.groups : g_.groups * g_.perGroup;
    const std::int64_t width =
        g_.scalePerGroup ? g_.regionElements() : g_.spatial;  // elements that share a scale, per image
    for (std::int64_t c = 0; c < results; ++c) {
      double scaleSum = 0, biasSum = 0;
      for (std::int64_t n = 0; n < g_.batch; ++n) {
        const Statistics& s = statistics[n * g_.groups + (g_.scalePerGroup ? c : c / g_.perGroup)];
        double dot = 0;
        for (std::int64_t i = (n * results + c) * width; i < (n * results + c + 1) * width; ++i) {
          dot += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - s.mean);
          biasSum += static_cast<double>(dy[i]);
        }
        scaleSum += dot * s.inverse;
      }
      if (call.outputPresent(1)) storeElement(call.outputs[1], c, scaleSum);
      if (call.outputPresent(2)) storeElement(call.outputs[2], c, biasSum);
    }
  }

  template <typename T>
  void input(const KernelCall& call, const T* dy, const T* x, const Statistics* statistics) const {
    T* dx = writeAs<T>(call.outputs[0]);
    const auto count = static_cast<double>(g_.regionElements());
    for (std::int64_t r = 0; r < g_.regions(); ++r) {
      const Statistics& s = statistics[r];
      const std::int64_t begin = r * g_.regionElements();
      double sum = 0, dot = 0;
      for (std::int64_t k = 0; k < g_.perGroup; ++k) {
        const double scale = elementAsDouble(call.inputs[2], g_.scaleIndex(r % g_.groups, k));
        for (std::int64_t i = begin + k * g_.spatial; i < begin + (k + 1) * g_.spatial; ++i) {
          const double d = static_cast<double>(dy[i]) * scale;
          sum += d;
          dot += d * (static_cast<double>(x[i]) - s.mean);
        }
      }
      const double shift = sum / count, slope = dot * s.inverse * s.inverse / count;
      for (std::int64_t k = 0; k < g_.perGroup; ++k) {
        const double scale = elementAsDouble(call.inputs[2], g_.scaleIndex(r % g_.groups, k));
        for (std::int64_t i = begin + k * g_.spatial; i < begin + (k + 1) * g_.spatial; ++i)
          dx[i] = static_cast<T>(
              s.inverse * (static_cast<double>(dy[i]) * scale - shift - (static_cast<double>(x[i]) - s.mean) * slope));
      }
    }
  }

  KernelSpec spec_;
  Groups g_;
};

Result<std::unique_ptr<Kernel>> makeGroupNormGrad(const KernelSpec& spec) {
  SS_ASSIGN(const Groups groups, groupsOf(spec, spec.inputs[1].dims, elementCount(spec.inputs[2].dims)));
  return std::make_unique<GroupNormGrad>(spec, groups);
}

constexpr KernelEntry kGroupNormEntries[] = {
    {"", "GroupNormalization", plain<groupNorm>},
    {"", "InstanceNormalization", plain<groupNorm>},
    {"stepscope", "GroupNormalizationGrad", makeGroupNormGrad},
};

}  // namespace

std::span<const KernelEntry> groupNormKernels() { return kGroupNormEntries; }

}  // namespace stepscope::reference
