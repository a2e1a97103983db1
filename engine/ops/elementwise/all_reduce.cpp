#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// Any number of tensors of one type, which are sent together. Ranks differ in what they hold, never in shapes.
Status inferShape(ShapeContext& c) {
  for (std::size_t i = 0; c.hasOutput(i); ++i) {
    if (!c.hasInput(i)) return c.error("output " + std::to_string(i) + " has no input; expected one for each");
    c.setOutput(i, c.inputDType(i), c.inputShape(i));
  }
  return {};
}

// What a rank adds to the sums of all comes back from all of them.
Status allReduceGradient(GradientContext& g) {
  std::vector<std::size_t> wanted;
  std::vector<ValueId> dy;
  for (std::size_t i = 0; i < g.node().outputs.size(); ++i)
    if (g.node().outputs[i] && g.needs(i)) {
      wanted.push_back(i);
      dy.push_back(g.dyOrZeros(i));
    }
  const auto dx = g.emit(kInternalDomain, "AllReduce", dy, dy.size(), {{"average", g.attrs().integer("average", 0)}});
  for (std::size_t k = 0; k < wanted.size(); ++k) g.setGradient(wanted[k], dx[k]);
  return {};
}

}  // namespace

extern constexpr OpDef kAllReduceOp{
    .name = "AllReduce",
    .domain = kInternalDomain,
    .doc = "y_i = sum over the ranks of x_i, divided by their number with average = 1; added in the order of the ranks",
    .inputs = {1, kMany},
    .outputs = {1, kMany},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferShape,
    .gradient = allReduceGradient,
    .differentiableInputs = kAllInputs,
    .differentiableOutputs = kAllInputs,
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
};

}  // namespace stepscope::ops
