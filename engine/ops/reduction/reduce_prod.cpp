#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferReduceProdShape(ShapeContext& c) {
  return reduction_rules::inferReduceContents(c, [](const Dim& a, const Dim& b) { return a * b; });
}

Status reduceProdGradient(GradientContext& g) {
  std::vector<ValueId> inputs{g.dy(0), g.x(0)};
  if (g.x(1).valid()) inputs.push_back(g.x(1));
  g.setGradient(0, g.internal("ReduceProdGrad", std::move(inputs),
                              {{"noop_with_empty_axes", g.attrs().integer("noop_with_empty_axes", 0)}}));
  return {};
}

Status inferReduceProdGrad(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  return {};
}

}  // namespace

extern const OpDef kReduceProdOp{
    .name = "ReduceProd",
    .sinceVersion = 18,
    .doc = "y = product of x over `axes`.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = inferReduceProdShape,
    .gradient = reduceProdGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<1>,
};

extern const OpDef kReduceProdGradOp{
    .name = "ReduceProdGrad",
    .domain = kInternalDomain,
    .doc = "dy, x, axes? → dx: dx[i] = dy * product of the other elements of i's result, exact where elements are zero.",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(2),
    .inferShape = inferReduceProdGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .flops = reduction_rules::flopsPerElement<3, 1>,
};

}  // namespace stepscope::ops
