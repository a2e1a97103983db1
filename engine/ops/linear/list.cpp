#include "engine/ops/linear/ops.h"
#include "engine/ops/op_list.h"

namespace stepscope::ops {

std::span<const OpDef* const> linearOps() {
  static constexpr std::array kOps{
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
      &kGemmOp,
      &kGlobalAveragePoolOp,
      &kGlobalLpPoolOp,
      &kGlobalMaxPoolGradOp,
      &kGlobalMaxPoolOp,
      &kLpPoolGradOp,
      &kLpPoolOp,
      &kMatMulIntegerOp,
      &kMatMulOp,
      &kMaxPoolGradOp,
      &kMaxPoolOp,
      &kMaxUnpoolOp,
      &kQLinearConvOp,
      &kQLinearMatMulOp,
  };
  return kOps;
}

}  // namespace stepscope::ops
