#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferMaskedSoftmaxShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  if (c.inputDType(1) != DType::kBool) SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  if (c.rankKnown(0) && c.rankKnown(1)) {
    SS_ASSIGN(const Shape y, c.broadcast(*c.inputShape(0), *c.inputShape(1)));
    if (y.size() != c.inputShape(0)->size())
      return c.error("mask of shape " + shapeText(*c.inputShape(1)) + " does not broadcast to " +
                     shapeText(*c.inputShape(0)));
  }
  return shape_rules::sameAsInput0(c);
}

}  // namespace

extern const OpDef kMaskedSoftmaxOp{
    .name = "MaskedSoftmax",
    .domain = kInternalDomain,
    .doc =
        "y = softmax along the last axis of x + mask, or of x where a bool mask is not `invert` (0) and `fill` elsewhere; "
        "the mask "
        "broadcasts to x. Written by passes after the gradient.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferMaskedSoftmaxShape,
    .noGradientReason = "written after the gradient was taken",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<9>,
};

}  // namespace stepscope::ops
