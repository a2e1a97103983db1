#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferGatherShape(ShapeContext& c) {
  SS_TRY(indexType(c, 1));
  const std::optional<Shape> data = c.inputShape(0), indices = c.inputShape(1);
  if (!data || !indices) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", 0), *data));
  Shape shape(data->begin(), data->begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), indices->begin(), indices->end());
  shape.insert(shape.end(), data->begin() + static_cast<std::ptrdiff_t>(axis) + 1, data->end());
  c.setOutput(0, c.inputDType(0), shape);
  if (data->size() != 1 || indices->size() > 1) return {};
  const auto contents = knownContents(c, 0);
  const auto picks = knownContents(c, 1);
  const auto numbers = picks ? knownDims(*picks) : std::nullopt;
  if (!contents || !numbers) return {};
  return pickContents(c, *contents, *numbers);
}

// What is added up in float32 is rounded once into the type of the addend.
Status inferGradShape(ShapeContext& c) {
  if (!c.hasInput(3)) return gradientShapedByInput2(c);
  const DType rows = c.inputDType(0), addend = c.inputDType(3);
  if (rows != addend && !(rows == DType::kF32 && isLow(addend)))
    return c.error("addend of type " + std::string(dtypeName(addend)) + " for rows of " + std::string(dtypeName(rows)) +
                   "; the same, or a low type for float32");
  return outputShapedByInput(c, 2, addend);
}

Status gatherGradient(GradientContext& g) {
  g.setGradient(0, g.internal("GatherGrad", {g.dy(0), g.x(1), g.shapeOf(g.x(0))}, {{"axis", g.attrs().integer("axis", 0)}}));
  return {};
}

}  // namespace

constexpr OpDef kGatherOp{
    .name = "Gather",
    .sinceVersion = 13,
    .doc = "y[o, k, i] = x[o, indices[k], i] along `axis`; negative indices count from the end.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGatherShape,
    .gradient = gatherGradient,
    .differentiableInputs = bit(0),
    .traffic = {.picked = bit(0), .moves = true},
};

constexpr OpDef kShrunkenGatherOp{
    .name = "ShrunkenGather",
    .domain = "com.microsoft",
    .doc = "Gather with a vector of indices that picks fewer rows than there are; marks the place where padding is removed.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGatherShape,
    .gradient = gatherGradient,
    .differentiableInputs = bit(0),
    .traffic = {.picked = bit(0), .moves = true},
};

constexpr OpDef kGatherGradOp{
    .name = "GatherGrad",
    .domain = kInternalDomain,
    .doc =
        "dx of Gather: dy added at indices along `axis`, duplicates in order; inputs dy, indices, shape of x, addend? (what "
        "it is added to; its type is that of the result).",
    .inputs = {3, 4},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kWide,
    .hostInputs = bit(2),
    .inferShape = inferGradShape,
    .noGradientReason = "second derivatives are not built",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(3),
    .traffic = {.base = 3, .updates = 0, .moves = true},
};

}  // namespace stepscope::ops
