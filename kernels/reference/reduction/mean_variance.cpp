#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

constexpr double kEpsilon = 1e-9;  // of the ONNX function body; added to the deviation, not to the variance

// visit(j, i): element i belongs to result j of the block that starts at x[at].
template <typename F>
void forEachInBlock(const ReducePlan& plan, std::int64_t n, std::int64_t at, F&& visit) {
  forEachOffset(plan.reduced, at, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < n; ++j) visit(static_cast<std::size_t>(j), i + j);
  });
}

template <typename T>
void normalise(const ReducePlan& plan, const T* x, T* y) {
  const auto count = static_cast<double>(plan.count);
  if (plan.count == 0) return;
  forEachResultBlock(plan, [&](std::int64_t, std::int64_t n, std::int64_t at) {
    std::array<double, kBlock> mean{}, squares{};
    forEachInBlock(plan, n, at, [&](std::size_t j, std::int64_t i) { mean[j] += static_cast<double>(x[i]); });
    for (double& m : mean) m /= count;
    forEachInBlock(plan, n, at, [&](std::size_t j, std::int64_t i) {
      const double d = static_cast<double>(x[i]) - mean[j];
      squares[j] += d * d;
    });
    forEachInBlock(plan, n, at, [&](std::size_t j, std::int64_t i) {
      y[i] = static_cast<T>((static_cast<double>(x[i]) - mean[j]) / (std::sqrt(squares[j] / count) + kEpsilon));
    });
  });
}

Status meanVarianceNormalization(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const auto rank = static_cast<std::int64_t>(x.dims.size());
  std::uint64_t mask = 0;
  for (const std::int64_t axis : spec.attrs.integers("axes", {0, 2, 3})) {
    const auto normal = normalizeAxis(axis, rank);
    if (!normal || *normal > 63)
      return invalid(fmt::format("{}: axis {} out of range for shape {}", spec.op, axis, dimsText(x.dims)));
    mask |= std::uint64_t{1} << *normal;
  }
  SS_ASSIGN(const ReducePlan plan, planReduction(x.dims, mask));
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    normalise<T>(plan, readAs<T>(x), writeAs<T>(call.outputs[0]));
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

constexpr KernelEntry kMeanVarianceEntries[] = {{"", "MeanVarianceNormalization", plain<meanVarianceNormalization>}};

}  // namespace

std::span<const KernelEntry> meanVarianceKernels() { return kMeanVarianceEntries; }

}  // namespace stepscope::reference
