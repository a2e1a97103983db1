#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferModShape(ShapeContext& c) {
  SS_TRY(binary(c));
  foldContents(c, c.attrs().integer("fmod", 0) != 0 ? fmodDims : modDims);
  return {};
}

Status modGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.reduceTo(g.dy(0), g.x(0)));
  if (g.needs(1)) {  // y = a - b q with q constant almost everywhere
    const ValueId q = g.op("Round", {g.div(g.sub(g.x(0), g.y(0)), g.x(1))});
    g.setGradient(1, g.neg(g.reduceTo(g.mul(g.dy(0), q), g.x(1))));
  }
  return {};
}

}  // namespace

extern constexpr OpDef kModOp{
    .name = "Mod",
    .sinceVersion = 13,
    .doc = "y = a - b floor(a / b), or with attribute fmod = 1 the rest of a division that truncates",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferModShape,
    .gradient = modGradient,
    .differentiableInputs = bit(0) | bit(1),
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
};

}  // namespace stepscope::ops
