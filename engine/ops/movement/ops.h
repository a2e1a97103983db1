// The movement ops, one declaration each; list.cpp makes the table.
#pragma once

#include "engine/ops/op_def.h"

namespace stepscope::ops {

extern const OpDef kCenterCropPadOp;
extern const OpDef kCol2ImGradOp;
extern const OpDef kCol2ImOp;
extern const OpDef kCompressOp;
extern const OpDef kConcatFromSequenceOp;
extern const OpDef kConcatOp;
extern const OpDef kConcatTrainingOp;
extern const OpDef kConstantOfShapeOp;
extern const OpDef kConstantOp;
extern const OpDef kDepthToSpaceOp;
extern const OpDef kExpandOp;
extern const OpDef kEyeLikeOp;
extern const OpDef kFlattenAndUnpadOp;
extern const OpDef kFlattenOp;
extern const OpDef kGatherElementsGradOp;
extern const OpDef kGatherElementsOp;
extern const OpDef kGatherGradOp;
extern const OpDef kGatherNDGradOp;
extern const OpDef kGatherNDOp;
extern const OpDef kGatherOp;
extern const OpDef kMelWeightMatrixOp;
extern const OpDef kNonMaxSuppressionOp;
extern const OpDef kNonZeroOp;
extern const OpDef kOneHotOp;
extern const OpDef kOptionalGetElementOp;
extern const OpDef kOptionalHasElementOp;
extern const OpDef kOptionalOp;
extern const OpDef kPadAndUnflattenOp;
extern const OpDef kPadGradOp;
extern const OpDef kPadOp;
extern const OpDef kRangeOp;
extern const OpDef kReorderOp;
extern const OpDef kReshapeOp;
extern const OpDef kReverseSequenceOp;
extern const OpDef kScatterElementsOp;
extern const OpDef kScatterNDOp;
extern const OpDef kSequenceAtOp;
extern const OpDef kSequenceConstructOp;
extern const OpDef kSequenceEmptyOp;
extern const OpDef kSequenceEraseOp;
extern const OpDef kSequenceInsertOp;
extern const OpDef kSequenceLengthOp;
extern const OpDef kShapeOp;
extern const OpDef kShrunkenGatherOp;
extern const OpDef kSizeOp;
extern const OpDef kSliceGradOp;
extern const OpDef kSliceOp;
extern const OpDef kSpaceToDepthOp;
extern const OpDef kSplitOp;
extern const OpDef kSplitToSequenceOp;
extern const OpDef kSplitTrainingOp;
extern const OpDef kSqueezeOp;
extern const OpDef kStringNormalizerOp;
extern const OpDef kTileGradOp;
extern const OpDef kTileOp;
extern const OpDef kTopKOp;
extern const OpDef kTransposeOp;
extern const OpDef kTriluOp;
extern const OpDef kUniqueOp;
extern const OpDef kUnsqueezeOp;

}  // namespace stepscope::ops
