#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferScatterElementsShape(ShapeContext& c) {
  SS_TRY(indexType(c, 1));
  SS_TRY(sameType(c, 0, 2));
  if (c.rankKnown(1) && c.rankKnown(2)) SS_TRY(c.unifyShapes(*c.inputShape(1), *c.inputShape(2), "indices and updates"));
  const std::optional<Shape> data = c.inputShape(0);
  if (data) {
    SS_TRY(c.axis(c.attrs().integer("axis", 0), *data));
    if (c.rankKnown(1) && c.inputShape(1)->size() != data->size())
      return c.error("data " + shapeText(*data) + " and indices " + shapeText(*c.inputShape(1)) + " differ in rank");
  }
  c.setOutput(0, c.inputDType(0), data);
  if (!data || data->size() != 1 || c.attrs().text("reduction", "none") != "none") return {};
  auto contents = knownContents(c, 0);
  const auto places = knownContents(c, 1), updates = knownContents(c, 2);
  const auto numbers = places ? knownDims(*places) : std::nullopt;
  if (!contents || !numbers || !updates || updates->size() != numbers->size()) return {};
  for (std::size_t k = 0; k < numbers->size(); ++k) {
    SS_ASSIGN(const std::size_t at, pick(c, (*numbers)[k], k, contents->size()));
    (*contents)[at] = (*updates)[k];
  }
  c.setContents(0, std::move(*contents));
  return {};
}

Status scatterElementsGradient(GradientContext& g) {
  const std::int64_t axis = g.attrs().integer("axis", 0);
  return scatterGradient(g, {.gather =
                                 [&](ValueId data) {
                                   return g.op("GatherElements", {data, g.x(1)}, {{"axis", axis}});
                                 },
                             .scatter =
                                 [&](ValueId data, ValueId updates, const char* reduction) {
                                   return g.op("ScatterElements", {data, g.x(1), updates},
                                               {{"axis", axis}, {"reduction", std::string(reduction)}});
                                 }});
}

}  // namespace

constexpr OpDef kScatterElementsOp{
    .name = "ScatterElements",
    .sinceVersion = 18,
    .doc =
        "x with updates[i] written (or added, multiplied, min, max) at i with indices[i] on `axis`; the last writer wins.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferScatterElementsShape,
    .gradient = scatterElementsGradient,
    .differentiableInputs = bit(0) | bit(2),
    .traffic = {.base = 0, .updates = 2, .moves = true},
};

}  // namespace stepscope::ops
