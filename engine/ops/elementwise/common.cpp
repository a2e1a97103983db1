#include "engine/ops/elementwise/common.h"

#include <numbers>

namespace stepscope::ops {

Status requireFloat(const ShapeContext& c, std::size_t input) {
  const DType dtype = c.inputDType(input);
  if (dtype == DType::kUndefined || isFloating(dtype)) return {};
  return c.error("input " + std::to_string(input) + " is " + std::string(dtypeName(dtype)) + "; a floating type is needed");
}

Status requireType(const ShapeContext& c, std::size_t input, DType dtype) {
  const DType found = c.inputDType(input);
  if (found == DType::kUndefined || found == dtype) return {};
  return c.error("input " + std::to_string(input) + " is " + std::string(dtypeName(found)) + "; " +
                 std::string(dtypeName(dtype)) + " is needed");
}

Status requireSameTypes(const ShapeContext& c, std::size_t first) {
  DType common = DType::kUndefined;
  for (std::size_t i = first; i < c.inputCount(); ++i) {
    const DType dtype = c.inputDType(i);
    if (dtype == DType::kUndefined) continue;
    if (common == DType::kUndefined) common = dtype;
    if (dtype != common)
      return c.error("input " + std::to_string(i) + " is " + std::string(dtypeName(dtype)) + "; the others are " +
                     std::string(dtypeName(common)));
  }
  return {};
}

Status floatUnary(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  return shape_rules::sameAsInput0(c);
}

Status floatBroadcast(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  return binary(c);
}

Status binary(ShapeContext& c) {
  SS_TRY(requireSameTypes(c));
  return shape_rules::broadcastAll(c);
}

Status compare(ShapeContext& c) {
  SS_TRY(requireSameTypes(c));
  return shape_rules::broadcastBool(c);
}

Status logical(ShapeContext& c) {
  for (std::size_t i = 0; i < c.inputCount(); ++i) SS_TRY(requireType(c, i, DType::kBool));
  return shape_rules::broadcastBool(c);
}

Status castContents(ShapeContext& c, DType to) {
  c.setOutput(0, to, c.inputShape(0));
  auto contents = operandContents(c, 0);
  if (!contents) return {};
  for (Dim& element : *contents) {
    const auto cast = castDim(element, to);
    if (!cast) return {};
    element = *cast;
  }
  c.setContents(0, std::move(*contents));
  return {};
}

ValueId geluGradient(GradientContext& g, ValueId dy, ValueId x, bool tanhForm) {
  return g.internal("GeluGrad", {dy, x}, {{"approximate", std::string(tanhForm ? "tanh" : "none")}});
}

Status evenShareGradient(GradientContext& g) {
  const std::size_t count = g.node().inputs.size();
  if (count == 1) {
    g.setGradient(0, g.dy(0));
    return {};
  }
  if (count == 2) {
    const std::string_view beaten = g.node().op == "Max" ? "Less" : "Greater";
    const ValueId share = g.where(g.op("Equal", {g.x(0), g.x(1)}), g.mul(g.dy(0), 0.5), g.dy(0));
    for (std::size_t i = 0; i < 2; ++i)
      if (g.needs(i)) g.setGradient(i, g.reduceTo(dropWhere(g, g.op(beaten, {g.x(i), g.x(1 - i)}), share), g.x(i)));
    return {};
  }
  std::vector<ValueId> attains;
  ValueId attaining;
  for (std::size_t i = 0; i < count; ++i) {
    attains.push_back(g.op("Equal", {g.x(i), g.y(0)}));
    const ValueId one = g.castLike(attains[i], g.dy(0));
    attaining = i == 0 ? one : g.add(attaining, one);
  }
  const ValueId share = g.div(g.dy(0), attaining);
  for (std::size_t i = 0; i < count; ++i)
    if (g.needs(i)) g.setGradient(i, g.reduceTo(keepWhere(g, attains[i], share), g.x(i)));
  return {};
}

ValueId keepWhere(GradientContext& g, ValueId condition, ValueId x) { return g.where(condition, x, g.scalar(0, x)); }
ValueId dropWhere(GradientContext& g, ValueId condition, ValueId x) { return g.where(condition, g.scalar(0, x), x); }

}  // namespace stepscope::ops
