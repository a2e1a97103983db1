// ScatterElements and ScatterND: a copy of the data with updates written or combined, in the order of the updates.
#include "kernels/reference/movement/element_walk.h"

namespace stepscope::reference {

Result<ScatterReduction> scatterReduction(const KernelSpec& spec) {
  const std::string name = spec.attrs.text("reduction", "none");
  if (name == "none") return ScatterReduction::kNone;
  if (name == "add") return ScatterReduction::kAdd;
  if (name == "mul") return ScatterReduction::kMul;
  if (name == "min") return ScatterReduction::kMin;
  if (name == "max") return ScatterReduction::kMax;
  return kernelError(spec, "reduction '" + name + "'; expected none, add, mul, min or max");
}

namespace {

template <typename T>
void copyData(const TensorView& x, const TensorView& y) {
  if (x.data != y.data) copyRun(static_cast<T*>(y.data), static_cast<const T*>(x.data), x.elements());
}

}  // namespace

Status scatterElementsKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &updates = call.inputs[2], &y = call.outputs[0];
  SS_ASSIGN(const ScatterReduction reduction, scatterReduction(spec));
  SS_TRY(checkOutput(spec, call, 0, x.dims.data(), x.dims.size()));
  if (updates.dims != indices.dims)
    return kernelError(spec, "updates " + dimsText(updates.dims) + " and indices " + dimsText(indices.dims) + " differ");
  Status status;
  dispatchAll(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    copyData<T>(x, y);
    T* to = static_cast<T*>(y.data);
    const T* values = static_cast<const T*>(updates.data);
    status = walkElements(spec, x.dims, indices,
                          [&](std::int64_t i, std::int64_t place) { combine(reduction, to[place], values[i]); });
  });
  return status;
}

Status scatterNdKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &updates = call.inputs[2], &y = call.outputs[0];
  SS_ASSIGN(const ScatterReduction reduction, scatterReduction(spec));
  SS_TRY(checkOutput(spec, call, 0, x.dims.data(), x.dims.size()));
  if (indices.dims.empty() || indices.dims.back() < 0 || indices.dims.back() > static_cast<std::int64_t>(x.dims.size()))
    return kernelError(spec, "indices of shape " + dimsText(indices.dims) + " do not fit shape " + dimsText(x.dims));
  const std::int64_t run = product(x.dims, static_cast<std::size_t>(indices.dims.back()), x.dims.size());
  if (product(indices.dims, 0, indices.dims.size() - 1) * run != updates.elements())
    return kernelError(
        spec, "updates of shape " + dimsText(updates.dims) + " do not fill the places of indices " + dimsText(indices.dims));
  Status status;
  dispatchAll(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    copyData<T>(x, y);
    T* to = static_cast<T*>(y.data);
    const T* values = static_cast<const T*>(updates.data);
    status = walkTuples(spec, x.dims, indices, 0, [&](std::int64_t place, std::int64_t t) {
      for (std::int64_t i = 0; i < run; ++i) combine(reduction, to[place + i], values[t * run + i]);
    });
  });
  return status;
}

}  // namespace stepscope::reference
