#include "kernels/reference/kernel_list.h"
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status centerCropPadKernel(const KernelSpec& spec, const KernelCall& call);
Status col2ImGradKernel(const KernelSpec& spec, const KernelCall& call);
Status col2ImKernel(const KernelSpec& spec, const KernelCall& call);
Status compressKernel(const KernelSpec& spec, const KernelCall& call);
Status concatKernel(const KernelSpec& spec, const KernelCall& call);
Status constantKernel(const KernelSpec& spec, const KernelCall& call);
Status constantOfShapeKernel(const KernelSpec& spec, const KernelCall& call);
Status depthToSpaceKernel(const KernelSpec& spec, const KernelCall& call);
Status expandKernel(const KernelSpec& spec, const KernelCall& call);
Status eyeLikeKernel(const KernelSpec& spec, const KernelCall& call);
Status melWeightMatrixKernel(const KernelSpec& spec, const KernelCall& call);
Status flattenAndUnpadKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherElementsGradKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherElementsKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherGradKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherNdGradKernel(const KernelSpec& spec, const KernelCall& call);
Status gatherNdKernel(const KernelSpec& spec, const KernelCall& call);
Status nonMaxSuppressionKernel(const KernelSpec& spec, const KernelCall& call);
Status nonZeroKernel(const KernelSpec& spec, const KernelCall& call);
Status oneHotKernel(const KernelSpec& spec, const KernelCall& call);
Status padAndUnflattenKernel(const KernelSpec& spec, const KernelCall& call);
Status padGradKernel(const KernelSpec& spec, const KernelCall& call);
Status padKernel(const KernelSpec& spec, const KernelCall& call);
Status rangeKernel(const KernelSpec& spec, const KernelCall& call);
Status reverseSequenceKernel(const KernelSpec& spec, const KernelCall& call);
Status scatterElementsKernel(const KernelSpec& spec, const KernelCall& call);
Status scatterNdKernel(const KernelSpec& spec, const KernelCall& call);
Status shapeKernel(const KernelSpec& spec, const KernelCall& call);
Status sizeKernel(const KernelSpec& spec, const KernelCall& call);
Status sliceGradKernel(const KernelSpec& spec, const KernelCall& call);
Status sliceKernel(const KernelSpec& spec, const KernelCall& call);
Status spaceToDepthKernel(const KernelSpec& spec, const KernelCall& call);
Status splitKernel(const KernelSpec& spec, const KernelCall& call);
Status stringNormalizerKernel(const KernelSpec& spec, const KernelCall& call);
Status tileGradKernel(const KernelSpec& spec, const KernelCall& call);
Status tileKernel(const KernelSpec& spec, const KernelCall& call);
Status transposeKernel(const KernelSpec& spec, const KernelCall& call);
Status triluKernel(const KernelSpec& spec, const KernelCall& call);
Status uniqueKernel(const KernelSpec& spec, const KernelCall& call);
Status viewKernel(const KernelSpec& spec, const KernelCall& call);
Result<std::unique_ptr<Kernel>> makeTopKKernel(const KernelSpec& spec);

std::span<const KernelEntry> movementKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "CenterCropPad", plain<centerCropPadKernel>},
      {"", "Col2Im", accumulating<col2ImKernel>},
      {"", "Compress", plain<compressKernel>},
      {"", "Concat", plain<concatKernel>},
      {"", "Constant", plain<constantKernel>},
      {"", "ConstantOfShape", plain<constantOfShapeKernel>},
      {"", "DepthToSpace", plain<depthToSpaceKernel>},
      {"", "Expand", plain<expandKernel>},
      {"", "EyeLike", plain<eyeLikeKernel>},
      {"", "Flatten", plain<viewKernel>},
      {"", "Gather", plain<gatherKernel>},
      {"", "GatherElements", plain<gatherElementsKernel>},
      {"", "GatherND", plain<gatherNdKernel>},
      {"", "MelWeightMatrix", plain<melWeightMatrixKernel>},
      {"", "NonMaxSuppression", plain<nonMaxSuppressionKernel>},
      {"", "NonZero", plain<nonZeroKernel>},
      {"", "OneHot", plain<oneHotKernel>},
      {"", "Pad", plain<padKernel>},
      {"", "Range", plain<rangeKernel>},
      {"", "Reshape", plain<viewKernel>},
      {"", "ReverseSequence", plain<reverseSequenceKernel>},
      {"", "ScatterElements", plain<scatterElementsKernel>},
      {"", "ScatterND", plain<scatterNdKernel>},
      {"", "Shape", plain<shapeKernel>},
      {"", "Size", plain<sizeKernel>},
      {"", "Slice", plain<sliceKernel>},
      {"", "SpaceToDepth", plain<spaceToDepthKernel>},
      {"", "Split", plain<splitKernel>},
      {"", "Squeeze", plain<viewKernel>},
      {"", "StringNormalizer", plain<stringNormalizerKernel>},
      {"", "Tile", plain<tileKernel>},
      {"", "TopK", makeTopKKernel},
      {"", "Transpose", plain<transposeKernel>},
      {"", "Trilu", plain<triluKernel>},
      {"", "Unique", plain<uniqueKernel>},
      {"", "Unsqueeze", plain<viewKernel>},
      {"com.microsoft", "ConcatTraining", plain<concatKernel>},
      {"com.microsoft", "FlattenAndUnpad", plain<flattenAndUnpadKernel>},
      {"com.microsoft", "PadAndUnflatten", accumulating<padAndUnflattenKernel>},
      {"com.microsoft", "ShrunkenGather", plain<gatherKernel>},
      {"com.microsoft", "SplitTraining", plain<splitKernel>},
      {"stepscope", "Col2ImGrad", plain<col2ImGradKernel>},
      {"stepscope", "GatherElementsGrad", accumulating<gatherElementsGradKernel>},
      {"stepscope", "GatherGrad", accumulating<gatherGradKernel>},
      {"stepscope", "GatherNDGrad", accumulating<gatherNdGradKernel>},
      {"stepscope", "PadGrad", accumulating<padGradKernel>},
      {"stepscope", "Reorder", plain<viewKernel>},
      {"stepscope", "SliceGrad", plain<sliceGradKernel>},
      {"stepscope", "TileGrad", accumulating<tileGradKernel>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
