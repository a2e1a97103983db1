#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferLrnShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 1));
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  if (c.attrs().integer("size", 0) < 1)
    return c.error("size " + std::to_string(c.attrs().integer("size", 0)) + "; expected a positive number");
  if (c.rankKnown(0) && c.inputShape(0)->size() < 2)
    return c.error("x has shape " + shapeText(*c.inputShape(0)) + "; expected [N, C, ...]");
  return shape_rules::sameAsInput0(c);
}

Status lrnGradient(GradientContext& g) {
  g.setGradient(0, g.internal("LRNGrad", {g.dy(0), g.x(0)},
                              {{"alpha", g.attrs().real("alpha", 1e-4F)},
                               {"beta", g.attrs().real("beta", 0.75F)},
                               {"bias", g.attrs().real("bias", 1.0F)},
                               {"size", g.attrs().integer("size", 1)}}));
  return {};
}

Status inferLrnGrad(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  return {};
}

}  // namespace

extern const OpDef kLrnOp{
    .name = "LRN",
    .sinceVersion = 13,
    .doc = "y[c] = x[c] / (bias + alpha/size * sum of x[k]^2)^beta, k within `size` channels around c.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferLrnShape,
    .gradient = lrnGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<20>,
};

extern const OpDef kLrnGradOp{
    .name = "LRNGrad",
    .domain = kInternalDomain,
    .doc = "dy, x → dx; attributes of LRN.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferLrnGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .flops = reduction_rules::flopsPerElement<60, 1>,
};

}  // namespace stepscope::ops
