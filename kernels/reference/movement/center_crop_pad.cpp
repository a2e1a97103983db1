// CenterCropPad: the middle of x, or x in the middle of zeros, per axis.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status centerCropPadKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &shape = call.inputs[1], &y = call.outputs[0];
  const std::size_t rank = x.dims.size();
  SS_TRY(checkRank(spec, rank));
  Extents wished{};
  std::copy(x.dims.begin(), x.dims.end(), wished.begin());
  const AttrValue* attr = spec.attrs.find("axes");
  const auto* axes = attr != nullptr ? std::get_if<std::vector<std::int64_t>>(attr) : nullptr;
  if (shape.elements() != static_cast<std::int64_t>(axes != nullptr ? axes->size() : rank))
    return kernelError(spec, std::to_string(shape.elements()) + " extents; expected one for each axis");
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const auto axis =
        normalizeAxis(axes != nullptr ? (*axes)[static_cast<std::size_t>(i)] : i, static_cast<std::int64_t>(rank));
    if (!axis)
      return kernelError(spec, "axis at position " + std::to_string(i) + " out of range for shape " + dimsText(x.dims));
    wished[static_cast<std::size_t>(*axis)] = elementAsInt(shape, i);
  }
  SS_TRY(checkOutput(spec, call, 0, wished.data(), rank));
  const Extents from = stridesOf(x.dims), to = stridesOf(y.dims);
  Extents common{};
  std::int64_t fromOffset = 0, toOffset = 0;
  for (std::size_t a = 0; a < rank; ++a) {
    common[a] = std::min(x.dims[a], y.dims[a]);
    if (x.dims[a] > y.dims[a]) fromOffset += (x.dims[a] - y.dims[a]) / 2 * from[a];
    if (x.dims[a] < y.dims[a]) toOffset += (y.dims[a] - x.dims[a]) / 2 * to[a];
  }
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::fill_n(static_cast<T*>(y.data), y.elements(), T{});
    if (y.elements() > 0 && x.elements() > 0)
      stridedCopy(rank, common, static_cast<T*>(y.data) + toOffset, to, static_cast<const T*>(x.data) + fromOffset, from);
  });
  return {};
}

}  // namespace stepscope::reference
