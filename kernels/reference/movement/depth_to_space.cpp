// DepthToSpace and SpaceToDepth: one strided copy over [n, c, h, i, w, j] with i, j inside a block.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {
namespace {

// Copies between `deep` [n, b*b*c, h, w] and `wide` [n, c, h*b, w*b].
Status moveBlocks(const KernelSpec& spec, const TensorView& deep, const TensorView& wide, bool crd, bool toWide) {
  const std::int64_t b = spec.attrs.integer("blocksize", 0);
  bool fits = b >= 1 && b <= 32768 && deep.dims.size() == 4 && wide.dims.size() == 4;
  fits = fits && deep.dims[0] == wide.dims[0] && deep.dims[1] == wide.dims[1] * b * b && deep.dims[2] * b == wide.dims[2] &&
         deep.dims[3] * b == wide.dims[3];
  if (!fits)
    return kernelError(spec, "shapes " + dimsText(deep.dims) + " and " + dimsText(wide.dims) + " do not fit blocksize " +
                                 std::to_string(b));
  const std::int64_t n = deep.dims[0], c = wide.dims[1], h = deep.dims[2], w = deep.dims[3];
  const Extents dims{n, c, h, b, w, b};
  const Extents deepStrides{c * b * b * h * w,    (crd ? b * b : 1) * h * w, w, (crd ? b : b * c) * h * w, 1,
                            (crd ? 1 : c) * h * w};
  const Extents wideStrides{c * h * b * w * b, h * b * w * b, b * w * b, w * b, b, 1};
  dispatchBySize(deep.dtype, [&](auto tag) {
    using T = decltype(tag);
    if (toWide)
      stridedCopy(6, dims, static_cast<T*>(wide.data), wideStrides, static_cast<const T*>(deep.data), deepStrides);
    else
      stridedCopy(6, dims, static_cast<T*>(deep.data), deepStrides, static_cast<const T*>(wide.data), wideStrides);
  });
  return {};
}

}  // namespace

Status depthToSpaceKernel(const KernelSpec& spec, const KernelCall& call) {
  return moveBlocks(spec, call.inputs[0], call.outputs[0], spec.attrs.text("mode", "DCR") == "CRD", true);
}

Status spaceToDepthKernel(const KernelSpec& spec, const KernelCall& call) {
  return moveBlocks(spec, call.outputs[0], call.inputs[0], false, false);
}

}  // namespace stepscope::reference
