// Every op of this group; the table is in list.cpp.
#pragma once

#include "engine/ops/op_def.h"

namespace stepscope::ops {

extern const OpDef kAffineGridOp;
extern const OpDef kAveragePoolGradOp;
extern const OpDef kAveragePoolOp;
extern const OpDef kBatchedMatMulOp;
extern const OpDef kConvInputGradOp;
extern const OpDef kConvIntegerOp;
extern const OpDef kConvOp;
extern const OpDef kConvTransposeInputGradOp;
extern const OpDef kConvTransposeOp;
extern const OpDef kConvTransposeWeightGradOp;
extern const OpDef kConvWeightGradOp;
extern const OpDef kEinsumGradOp;
extern const OpDef kEinsumOp;
extern const OpDef kFusedMatMulOp;
extern const OpDef kGRUGradOp;
extern const OpDef kGRUOp;
extern const OpDef kGemmOp;
extern const OpDef kGlobalAveragePoolOp;
extern const OpDef kGlobalLpPoolOp;
extern const OpDef kGlobalMaxPoolGradOp;
extern const OpDef kGlobalMaxPoolOp;
extern const OpDef kGridSampleGridGradOp;
extern const OpDef kGridSampleInputGradOp;
extern const OpDef kGridSampleOp;
extern const OpDef kLSTMGradOp;
extern const OpDef kLSTMOp;
extern const OpDef kLpPoolGradOp;
extern const OpDef kLpPoolOp;
extern const OpDef kMatMulIntegerOp;
extern const OpDef kMatMulOp;
extern const OpDef kMaxPoolGradOp;
extern const OpDef kMaxPoolOp;
extern const OpDef kMaxUnpoolGradOp;
extern const OpDef kMaxUnpoolOp;
extern const OpDef kProductOp;
extern const OpDef kQLinearConvOp;
extern const OpDef kQLinearMatMulOp;
extern const OpDef kRNNGradOp;
extern const OpDef kRNNOp;
extern const OpDef kResizeGradOp;
extern const OpDef kResizeOp;

// Regions of interest.
extern const OpDef kRoiAlignGradOp;
extern const OpDef kRoiAlignOp;

}  // namespace stepscope::ops
