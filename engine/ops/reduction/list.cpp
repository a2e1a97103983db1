#include "engine/ops/op_list.h"

namespace stepscope::ops {

extern const OpDef kArgMaxOp;
extern const OpDef kArgMinOp;
extern const OpDef kBatchNormalizationGradOp;
extern const OpDef kBatchNormalizationOp;
extern const OpDef kCumSumOp;
extern const OpDef kDetGradOp;
extern const OpDef kDetOp;
extern const OpDef kFusedBatchNormalizationGradOp;
extern const OpDef kFusedBatchNormalizationOp;
extern const OpDef kGroupNormalizationGradOp;
extern const OpDef kGroupNormalizationOp;
extern const OpDef kHardmaxOp;
extern const OpDef kInstanceNormalizationOp;
extern const OpDef kInverseOp;
extern const OpDef kLayerNormalizationGradOp;
extern const OpDef kLayerNormalizationOp;
extern const OpDef kLogSoftmaxGradOp;
extern const OpDef kLogSoftmaxOp;
extern const OpDef kLpNormalizationOp;
extern const OpDef kLrnGradOp;
extern const OpDef kLrnOp;
extern const OpDef kMaskedSoftmaxOp;
extern const OpDef kMeanVarianceNormalizationOp;
extern const OpDef kMsSimplifiedLayerNormalizationOp;
extern const OpDef kNegativeLogLikelihoodLossGradOp;
extern const OpDef kNegativeLogLikelihoodLossInternalOp;
extern const OpDef kNegativeLogLikelihoodLossOp;
extern const OpDef kReduceL1Op;
extern const OpDef kReduceL2Op;
extern const OpDef kReduceLogSumExpOp;
extern const OpDef kReduceLogSumOp;
extern const OpDef kReduceMaxOp;
extern const OpDef kReduceMeanOp;
extern const OpDef kReduceMinOp;
extern const OpDef kReduceProdGradOp;
extern const OpDef kReduceProdOp;
extern const OpDef kReduceSumOp;
extern const OpDef kReduceSumSquareOp;
extern const OpDef kReduceToShapeOp;
extern const OpDef kRmsNormalizationOp;
extern const OpDef kSimplifiedLayerNormalizationGradOp;
extern const OpDef kSimplifiedLayerNormalizationOp;
extern const OpDef kSkipLayerNormalizationOp;
extern const OpDef kSkipSimplifiedLayerNormalizationOp;
extern const OpDef kSoftmaxCrossEntropyLossGradOp;
extern const OpDef kSoftmaxCrossEntropyLossInternalOp;
extern const OpDef kSoftmaxCrossEntropyLossOp;
extern const OpDef kSoftmaxGradOp;
extern const OpDef kSoftmaxOp;

std::span<const OpDef* const> reductionOps() {
  static constexpr const OpDef* kOps[] = {
      &kArgMaxOp,
      &kArgMinOp,
      &kBatchNormalizationGradOp,
      &kBatchNormalizationOp,
      &kCumSumOp,
      &kDetGradOp,
      &kDetOp,
      &kFusedBatchNormalizationGradOp,
      &kFusedBatchNormalizationOp,
      &kGroupNormalizationGradOp,
      &kGroupNormalizationOp,
      &kHardmaxOp,
      &kInstanceNormalizationOp,
      &kInverseOp,
      &kLayerNormalizationGradOp,
      &kLayerNormalizationOp,
      &kLogSoftmaxGradOp,
      &kLogSoftmaxOp,
      &kLpNormalizationOp,
      &kLrnGradOp,
      &kLrnOp,
      &kMaskedSoftmaxOp,
      &kMeanVarianceNormalizationOp,
      &kMsSimplifiedLayerNormalizationOp,
      &kNegativeLogLikelihoodLossGradOp,
      &kNegativeLogLikelihoodLossInternalOp,
      &kNegativeLogLikelihoodLossOp,
      &kReduceL1Op,
      &kReduceL2Op,
      &kReduceLogSumExpOp,
      &kReduceLogSumOp,
      &kReduceMaxOp,
      &kReduceMeanOp,
      &kReduceMinOp,
      &kReduceProdGradOp,
      &kReduceProdOp,
      &kReduceSumOp,
      &kReduceSumSquareOp,
      &kReduceToShapeOp,
      &kRmsNormalizationOp,
      &kSimplifiedLayerNormalizationGradOp,
      &kSimplifiedLayerNormalizationOp,
      &kSkipLayerNormalizationOp,
      &kSkipSimplifiedLayerNormalizationOp,
      &kSoftmaxCrossEntropyLossGradOp,
      &kSoftmaxCrossEntropyLossInternalOp,
      &kSoftmaxCrossEntropyLossOp,
      &kSoftmaxGradOp,
      &kSoftmaxOp,
  };
  return kOps;
}

}  // namespace stepscope::ops
