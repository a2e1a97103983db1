#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferConcatShape(ShapeContext& c) {
  if (c.inputCount() == 0) return c.error("no inputs; expected at least one");
  std::optional<Shape> shape;
  bool allKnown = true;
  std::size_t axis = 0;
  for (std::size_t i = 0; i < c.inputCount(); ++i) {
    SS_TRY(sameType(c, 0, i));
    if (!c.rankKnown(i)) {
      allKnown = false;
      continue;
    }
    const Shape& part = *c.inputShape(i);
    if (!shape) {
      SS_ASSIGN(axis, c.axis(c.attrs().integer("axis", 0), part));
      shape = part;
      continue;
    }
    if (part.size() != shape->size())
      return c.error("input " + std::to_string(i) + " of shape " + shapeText(part) + " has another rank than " +
                     shapeText(*shape));
    for (std::size_t a = 0; a < part.size(); ++a) {
      if (a == axis) {
        (*shape)[a] = (*shape)[a] + part[a];
        continue;
      }
      SS_TRY(c.unify((*shape)[a], part[a], "extents of the inputs besides the axis"));
      if (part[a].known()) (*shape)[a] = part[a];
    }
  }
  if (shape && !allKnown) (*shape)[axis] = c.freshDim(0, axis);
  c.setOutput(0, c.inputDType(0), shape);
  if (c.hasOutput(1)) c.setOutput(1, DType::kI64, Shape{Dim(static_cast<std::int64_t>(c.inputCount()))});
  if (!shape || shape->size() != 1) return {};
  Contents all;
  for (std::size_t i = 0; i < c.inputCount(); ++i) {
    const auto part = knownContents(c, i);
    if (!part || all.size() + part->size() > kMaxContents) return {};
    all.insert(all.end(), part->begin(), part->end());
  }
  c.setContents(0, std::move(all));
  return {};
}

Status concatGradient(GradientContext& g) {
  const std::size_t parts = g.node().inputs.size();
  if (parts == 1) {
    g.setGradient(0, g.dy(0));
    return {};
  }
  const std::int64_t axis = g.attrs().integer("axis", 0);
  std::vector<ValueId> sizes;
  for (std::size_t i = 0; i < parts; ++i) sizes.push_back(g.dimOf(g.x(i), axis));
  std::vector<std::int64_t> numbers;
  for (const ValueId size : sizes)
    if (const Tensor* constant = g.constant(size)) numbers.push_back(elementAsInt(constant->view(), 0));
  const ValueId split = numbers.size() == parts ? g.ints(numbers) : g.op("Concat", sizes, {{"axis", std::int64_t{0}}});
  const auto slices = g.emit("", "Split", {g.dy(0), split}, parts, {{"axis", axis}});
  for (std::size_t i = 0; i < parts; ++i)
    if (g.needs(i)) g.setGradient(i, slices[i]);
  return {};
}

}  // namespace

constexpr OpDef kConcatOp{
    .name = "Concat",
    .sinceVersion = 13,
    .doc = "The inputs one after another along `axis`.",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferConcatShape,
    .gradient = concatGradient,
    .differentiableInputs = kAllInputs,
    .layout = {.inputs = kAllInputs, .outputs = bit(0), .together = true, .channels = ChannelRule::kParts},
    .traffic = {.moves = true},
};

constexpr OpDef kConcatTrainingOp{
    .name = "ConcatTraining",
    .domain = "com.microsoft",
    .doc = "Concat that also gives the extent of each input along `axis` as a vector.",
    .inputs = {1, kMany},
    .outputs = {1, 2},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferConcatShape,
    .gradient = concatGradient,
    .differentiableInputs = kAllInputs,
    .differentiableOutputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
