#include <cmath>

#include "kernels/reference/reduction/kernels.h"
#include "kernels/reference/reduction/loops.h"

namespace stepscope::reference {
namespace {

Status lpNormalization(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  SS_ASSIGN(const Lines lines, linesOf(spec, x.dims, spec.attrs.integer("axis", -1)));
  const bool euclidean = spec.attrs.integer("p", 2) == 2;
  const bool known = dispatchFloat(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    forEachLine(lines, [&](std::int64_t at) {
      const T* in = readAs<T>(x) + at;
      T* out = writeAs<T>(call.outputs[0]) + at;
      double norm = 0;
      for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner) {
        const auto v = static_cast<double>(in[i]);
        norm += euclidean ? v * v : std::fabs(v);
      }
      if (euclidean) norm = std::sqrt(norm);
      for (std::int64_t i = 0; i < lines.axis * lines.inner; i += lines.inner)
        out[i] = static_cast<T>(norm == 0 ? 0.0 : static_cast<double>(in[i]) / norm);
    });
  });
  if (!known) return badType(spec, x.dtype);
  return {};
}

constexpr KernelEntry kLpNormalizationEntries[] = {{"", "LpNormalization", plain<lpNormalization>}};

}  // namespace

std::span<const KernelEntry> lpNormalizationKernels() { return kLpNormalizationEntries; }

}  // namespace stepscope::reference
