#include "engine/ops/linear/ops.h"
#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> linearOps() {
  static constexpr std::array kOps{
      &kAffineGridOp,
      &kAveragePoolGradOp,
      &kAveragePoolOp,
      &kBatchedMatMulOp,
      &kConvInputGradOp,
      &kConvIntegerOp,
      &kConvOp,
      &kConvTransposeInputGradOp,
      &kConvTransposeOp,
      &kConvTransposeWeightGradOp,
      &kConvWeightGradOp,
      &kEinsumGradOp,
      &kEinsumOp,
      &kFusedMatMulOp,
      &kGRUGradOp,
      &kGRUOp,
      &kGemmOp,
      &kGlobalAveragePoolOp,
      &kGlobalLpPoolOp,
      &kGlobalMaxPoolGradOp,
      &kGlobalMaxPoolOp,
      &kGridSampleGridGradOp,
      &kGridSampleInputGradOp,
      &kGridSampleOp,
      &kLSTMGradOp,
      &kLSTMOp,
      &kLpPoolGradOp,
      &kLpPoolOp,
      &kMatMulIntegerOp,
      &kMatMulOp,
      &kMaxPoolGradOp,
      &kMaxPoolOp,
      &kMaxUnpoolGradOp,
      &kMaxUnpoolOp,
      &kProductOp,
      &kQLinearConvOp,
      &kQLinearMatMulOp,
      &kRNNGradOp,
      &kRNNOp,
      &kRoiAlignGradOp,
      &kRoiAlignOp,
      &kResizeGradOp,
      &kResizeOp,
  };
  return kOps;
}

}  // namespace stepscope::ops
