// TopK: the k largest (smallest) along an axis with their positions; equal values keep the lower position first. NaN counts
// as the largest value.
#include <numeric>

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

// The order needs one int64 per position of the axis: it comes from the workspace.
class TopKKernel final : public Kernel {
 public:
  TopKKernel(KernelSpec spec, std::size_t bytes) : spec_(std::move(spec)), bytes_(bytes) {}
  std::size_t workspaceBytes() const override { return bytes_; }
  std::string implementation() const override { return "reference"; }
  Determinism determinism() const override { return Determinism::oneThread(); }

  Status run(const KernelCall& call) override {
    const TensorView &x = call.inputs[0], &kView = call.inputs[1];
    const auto normal = normalizeAxis(spec_.attrs.integer("axis", -1), static_cast<std::int64_t>(x.dims.size()));
    if (!normal || kView.elements() != 1) return kernelError(spec_, "axis or k does not fit shape " + dimsText(x.dims));
    const auto axis = static_cast<std::size_t>(*normal);
    const std::int64_t extent = x.dims[axis], k = elementAsInt(kView, 0);
    if (k < 0 || k > extent)
      return kernelError(spec_, "k = " + std::to_string(k) + "; expected 0.." + std::to_string(extent));
    if (call.workspace.size() < static_cast<std::size_t>(extent) * sizeof(std::int64_t))
      return kernelError(spec_, "workspace too small for shape " + dimsText(x.dims));
    const std::int64_t outer = product(x.dims, 0, axis), inner = product(x.dims, axis + 1, x.dims.size());
    for (std::size_t i = 0; i < 2; ++i)
      if (call.outputPresent(i) &&
          (call.outputs[i].dims.size() != x.dims.size() || call.outputs[i].elements() != outer * k * inner))
        return kernelError(spec_,
                           "k = " + std::to_string(k) + " differs from the planned shape " + dimsText(call.outputs[i].dims));
    const bool largest = spec_.attrs.integer("largest", 1) != 0;
    auto* order = reinterpret_cast<std::int64_t*>(call.workspace.data());
    const bool known = dispatchNumeric(x.dtype, [&](auto tag) {
      using T = decltype(tag);
      T* values = call.outputPresent(0) ? static_cast<T*>(call.outputs[0].data) : nullptr;
      auto* positions = call.outputPresent(1) ? static_cast<std::int64_t*>(call.outputs[1].data) : nullptr;
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < inner; ++i) {
          const T* line = static_cast<const T*>(x.data) + o * extent * inner + i;
          const auto above = [&](std::int64_t a, std::int64_t b) {
            const T p = line[a * inner], q = line[b * inner];
            const bool pNan = p != p, qNan = q != q;
            if (pNan || qNan) return pNan != qNan ? (largest ? pNan : qNan) : a < b;
            if (p != q) return largest ? p > q : p < q;
            return a < b;
          };
          std::iota(order, order + extent, std::int64_t{0});
          std::partial_sort(order, order + k, order + extent, above);
          for (std::int64_t n = 0; n < k; ++n) {
            const std::int64_t at = (o * k + n) * inner + i;
            if (values != nullptr) values[at] = line[order[n] * inner];
            if (positions != nullptr) positions[at] = order[n];
          }
        }
    });
    if (!known) return kernelError(spec_, "type " + std::string(dtypeName(x.dtype)) + " has no order");
    return {};
  }

 private:
  KernelSpec spec_;
  std::size_t bytes_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeTopKKernel(const KernelSpec& spec) {
  if (spec.inputs.empty()) return kernelError(spec, "no input");
  const Dims& dims = spec.inputs[0].dims;
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(dims.size()));
  if (!axis) return kernelError(spec, "axis out of range for shape " + dimsText(dims));
  return std::make_unique<TopKKernel>(
      spec, static_cast<std::size_t>(dims[static_cast<std::size_t>(*axis)]) * sizeof(std::int64_t));
}

}  // namespace stepscope::reference
