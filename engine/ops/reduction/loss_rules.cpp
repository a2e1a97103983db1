#include "engine/ops/reduction/loss_rules.h"

namespace stepscope::loss_rules {

DType resultType(const ShapeContext& c) {
  const auto dtype = dtypeFromOnnx(static_cast<int>(c.attrs().integer("output_type", 0)));
  return dtype && isFloating(*dtype) ? *dtype : c.inputDType(0);
}

Status inferLoss(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  const std::string reduction = c.attrs().text("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return c.error("reduction '" + reduction + "'; expected mean, sum or none");
  SS_TRY(reduction_rules::expectFloat(c, 0, "scores"));
  SS_TRY(reduction_rules::expectFloat(c, 2, "weights"));
  const DType labelType = c.inputDType(1);
  // Probabilities of the classes instead of class numbers: lower_soft_labels rewrites these.
  const bool soft = c.node().op == "SoftmaxCrossEntropyLoss" && isFloating(labelType) && c.rankKnown(0) && c.rankKnown(1) &&
                    c.inputShape(0)->size() == c.inputShape(1)->size() && c.inputShape(0)->size() > 1;
  if (soft) {
    SS_TRY(c.unifyShapes(*c.inputShape(1), *c.inputShape(0), "probabilities of the classes and scores"));
    Shape rows = *c.inputShape(0);
    rows.erase(rows.begin() + 1);
    c.setOutput(0, resultType(c), reduction == "none" ? rows : Shape{});
    return {};
  }
  if (labelType != DType::kUndefined && !isInteger(labelType))
    return c.error("labels are " + std::string(dtypeName(labelType)) +
                   "; expected integers, or floats of the shape of the scores");
  if (c.rankKnown(0)) {
    const Shape scores = *c.inputShape(0);
    if (scores.size() < 2) return c.error("scores have shape " + shapeText(scores) + "; expected [N, C, ...]");
    SS_TRY(reduction_rules::expectVector(c, 2, scores[1], "weights"));
    if (c.rankKnown(1)) {
      const Shape labels = *c.inputShape(1);
      Shape expected = scores;
      expected.erase(expected.begin() + 1);
      const bool flattened = c.node().domain == "com.microsoft" && labels.size() != expected.size();
      if (!flattened) SS_TRY(c.unifyShapes(labels, expected, "labels and the scores without their class axis"));
    }
  }
  c.setOutput(0, resultType(c), reduction == "none" ? c.inputShape(1) : Shape{});
  return {};
}

std::vector<ValueId> gradientInputs(GradientContext& g, ValueId second) {
  std::vector<ValueId> inputs{g.dy(0), second, g.x(1)};
  const bool ignore = g.x(3).valid();
  if (g.x(2).valid() || ignore) inputs.push_back(g.x(2));
  if (ignore) inputs.push_back(g.x(3));
  return inputs;
}

Attributes gradientAttributes(GradientContext& g) {
  Attributes attrs{{"reduction", g.attrs().text("reduction", "mean")}};
  if (g.attrs().has("ignore_index")) attrs.set("ignore_index", g.attrs().integer("ignore_index", 0));
  if (g.dtype(g.x(0)) != g.dtype(g.y(0))) attrs.set("output_type", static_cast<std::int64_t>(g.dtype(g.x(0))));
  return attrs;
}

Status inferLossGrad(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 3));
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  const auto dtype = dtypeFromOnnx(static_cast<int>(c.attrs().integer("output_type", 0)));
  c.setOutput(0, dtype && isFloating(*dtype) ? *dtype : c.inputDType(1), c.inputShape(1));
  return {};
}

}  // namespace stepscope::loss_rules
