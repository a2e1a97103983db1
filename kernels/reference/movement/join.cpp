// Join: parts of the inputs (kernels/strided_view.h) one after another along `axis`.
#include "kernels/reference/movement/common.h"
#include "kernels/strided_view.h"

namespace stepscope::reference {

Status joinKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  const auto axis = static_cast<std::size_t>(spec.attrs.integer("axis", 0));
  if (axis >= y.dims.size()) return kernelError(spec, "axis out of range for shape " + dimsText(y.dims));
  const Dims strides = rowMajorStrides(y.dims);
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    SS_ASSIGN(const StridedView part, seenOperand(spec.domain, spec.op, k, call.inputs[k].dims, spec.attrs));
    Dims fitting = y.dims;
    if (part.dims.size() == fitting.size()) fitting[axis] = part.dims[axis];
    if (part.dims != fitting || begin + part.dims[axis] > y.dims[axis])
      return kernelError(spec, "part of shape " + dimsText(part.dims) + " does not fit shape " + dimsText(y.dims));
    dispatchBySize(y.dtype, [&](auto tag) {
      using T = decltype(tag);
      for (std::int64_t i = 0; i < elementCount(part.dims); ++i) {
        std::int64_t from = part.offset, to = begin * strides[axis], rest = i;
        for (std::size_t a = part.dims.size(); a-- > 0; rest /= part.dims[a]) {
          from += rest % part.dims[a] * part.strides[a];
          to += rest % part.dims[a] * strides[a];
        }
        static_cast<T*>(y.data)[to] = static_cast<const T*>(call.inputs[k].data)[from];
      }
    });
    begin += part.dims[axis];
  }
  if (begin != y.dims[axis])
    return kernelError(spec, "inputs fill " + std::to_string(begin) + " of shape " + dimsText(y.dims));
  return {};
}

}  // namespace stepscope::reference
