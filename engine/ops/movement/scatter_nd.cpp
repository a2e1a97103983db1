#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferScatterNdShape(ShapeContext& c) {
  SS_TRY(indexType(c, 1));
  SS_TRY(sameType(c, 0, 2));
  const std::optional<Shape> data = c.inputShape(0), indices = c.inputShape(1);
  c.setOutput(0, c.inputDType(0), data);
  if (!data || !indices) return {};
  if (indices->empty()) return c.error("indices of rank 0; expected tuples on the last axis");
  const auto tuple = indices->back().asKnown();
  if (!tuple) return {};
  if (*tuple < 0 || *tuple > static_cast<std::int64_t>(data->size()))
    return c.error("tuples of " + std::to_string(*tuple) + " indices for data " + shapeText(*data));
  Shape expected(indices->begin(), indices->end() - 1);
  expected.insert(expected.end(), data->begin() + *tuple, data->end());
  if (c.rankKnown(2)) SS_TRY(c.unifyShapes(expected, *c.inputShape(2), "places of indices and updates"));
  if (data->size() != 1 || *tuple != 1 || c.attrs().text("reduction", "none") != "none") return {};
  auto contents = knownContents(c, 0);
  const auto updates = knownContents(c, 2);
  const auto numbers = c.integers(1);
  if (!contents || !numbers || !updates || updates->size() != numbers->size()) return {};
  for (std::size_t k = 0; k < numbers->size(); ++k) {
    SS_ASSIGN(const std::size_t at, pick(c, (*numbers)[k], k, contents->size()));
    (*contents)[at] = (*updates)[k];
  }
  c.setContents(0, std::move(*contents));
  return {};
}

Status scatterNdGradient(GradientContext& g) {
  return scatterGradient(g,
                         {.gather =
                              [&](ValueId data) {
                                return g.op("GatherND", {data, g.x(1)});
                              },
                          .scatter =
                              [&](ValueId data, ValueId updates, const char* reduction) {
                                return g.op("ScatterND", {data, g.x(1), updates}, {{"reduction", std::string(reduction)}});
                              }});
}

}  // namespace

constexpr OpDef kScatterNDOp{
    .name = "ScatterND",
    .sinceVersion = 18,
    .doc = "x with runs of updates written (or added, multiplied, min, max) at the index tuples; the last writer wins.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferScatterNdShape,
    .gradient = scatterNdGradient,
    .differentiableInputs = bit(0) | bit(2),
    .traffic = {.base = 0, .updates = 2, .moves = true},
};

}  // namespace stepscope::ops
