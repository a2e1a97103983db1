#include "kernels/reference/kernel_list.h"
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status concatKernel(const KernelSpec& spec, const KernelCall& call);
Status constantKernel(const KernelSpec& spec, const KernelCall& call);
Status constantOfShapeKernel(const KernelSpec& spec, const KernelCall& call);
Status expandKernel(const KernelSpec& spec, const KernelCall& call);
Status eyeLikeKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherElementsGradKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherElementsKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherGradKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherNdGradKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherNdKernel(const KernelSpec& spec, const KernelCall& call);
Status nonZeroKernel(const KernelSpec& spec, const KernelCall& call);
Status oneHotKernel(const KernelSpec& spec, const KernelCall& call);
Status padGradKernel(const KernelSpec& spec, const KernelCall& call);
Status padKernel(const KernelSpec& spec, const KernelCall& call);
Status rangeKernel(const KernelSpec& spec, const KernelCall& call);
Status scatterElementsKernel(const KernelSpec& spec, const KernelCall& call);
Status scatterNdKernel(const KernelSpec& spec, const KernelCall& call);
Status shapeKernel(const KernelSpec& spec, const KernelCall& call);
Status sizeKernel(const KernelSpec& spec, const KernelCall& call);
Status sliceGradKernel(const KernelSpec& spec, const KernelCall& call);
Status sliceKernel(const KernelSpec& spec, const KernelCall& call);
Status splitKernel(const KernelSpec& spec, const KernelCall& call);
Status tileGradKernel(const KernelSpec& spec, const KernelCall& call);
Status tileKernel(const KernelSpec& spec, const KernelCall& call);
Status transposeKernel(const KernelSpec& spec, const KernelCall& call);
Status triluKernel(const KernelSpec& spec, const KernelCall& call);
Status viewKernel(const KernelSpec& spec, const KernelCall& call);
Result<std::unique_ptr<Kernel>> makeTopKKernel(const KernelSpec& spec);

std::span<const KernelEntry> movementKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Concat", plain<concatKernel>},
      {"", "Constant", plain<constantKernel>},
      {"", "ConstantOfShape", plain<constantOfShapeKernel>},
      {"", "Expand", plain<expandKernel>},
      {"", "EyeLike", plain<eyeLikeKernel>},
      {"", "Flatten", plain<viewKernel>},
      {"", "Gather", plain<gatherKernel>},
      {"", "GatherElements", plain<gatherElementsKernel>},
      {"", "GatherND", plain<gatherNdKernel>},
      {"", "NonZero", plain<nonZeroKernel>},
      {"", "OneHot", plain<oneHotKernel>},
      {"", "Pad", plain<padKernel>},
      {"", "Range", plain<rangeKernel>},
      {"", "Reshape", plain<viewKernel>},
      {"", "ScatterElements", plain<scatterElementsKernel>},
      {"", "ScatterND", plain<scatterNdKernel>},
      {"", "Shape", plain<shapeKernel>},
      {"", "Size", plain<sizeKernel>},
      {"", "Slice", plain<sliceKernel>},
      {"", "Split", plain<splitKernel>},
      {"", "Squeeze", plain<viewKernel>},
      {"", "Tile", plain<tileKernel>},
      {"", "TopK", makeTopKKernel},
      {"", "Transpose", plain<transposeKernel>},
      {"", "Trilu", plain<triluKernel>},
      {"", "Unsqueeze", plain<viewKernel>},
      {"stepscope", "GatherElementsGrad", accumulating<gatherElementsGradKernel>},
      {"stepscope", "GatherGrad", accumulating<gatherGradKernel>},
      {"stepscope", "GatherNDGrad", accumulating<gatherNdGradKernel>},
      {"stepscope", "PadGrad", accumulating<padGradKernel>},
      {"stepscope", "SliceGrad", plain<sliceGradKernel>},
      {"stepscope", "TileGrad", accumulating<tileGradKernel>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
