#include "engine/ops/movement/ops.h"
#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> movementOps() {
  static constexpr const OpDef* kOps[] = {
      &kConcatOp,
      &kConcatFromSequenceOp,
      &kConstantOp,
      &kConstantOfShapeOp,
      &kExpandOp,
      &kEyeLikeOp,
      &kFlattenOp,
      &kGatherOp,
      &kGatherElementsOp,
      &kGatherNDOp,
      &kNonZeroOp,
      &kOneHotOp,
      &kOptionalOp,
      &kOptionalGetElementOp,
      &kOptionalHasElementOp,
      &kPadOp,
      &kRangeOp,
      &kReshapeOp,
      &kScatterElementsOp,
      &kScatterNDOp,
      &kSequenceAtOp,
      &kSequenceConstructOp,
      &kSequenceEmptyOp,
      &kSequenceEraseOp,
      &kSequenceInsertOp,
      &kSequenceLengthOp,
      &kShapeOp,
      &kSizeOp,
      &kSliceOp,
      &kSplitOp,
      &kSplitToSequenceOp,
      &kSqueezeOp,
      &kTileOp,
      &kTopKOp,
      &kTransposeOp,
      &kTriluOp,
      &kUnsqueezeOp,
      &kGatherElementsGradOp,
      &kGatherGradOp,
      &kGatherNDGradOp,
      &kPadGradOp,
      &kSliceGradOp,
      &kTileGradOp,
  };
  return kOps;
}

}  // namespace stepscope::ops
