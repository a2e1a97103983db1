#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferBitShiftShape(ShapeContext& c) {
  const std::string direction = c.attrs().text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return c.error("attribute direction is '" + direction + "'; 'LEFT' or 'RIGHT'");
  return binary(c);
}

}  // namespace

extern constexpr OpDef kBitShiftOp{
    .name = "BitShift",
    .sinceVersion = 11,
    .doc =
        "y = a << b or a >> b, by attribute direction; a shift by the width or more gives 0 (-1 for a negative number to "
        "the right)",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferBitShiftShape,
    .noGradientReason = kIntegerResult,
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
};

}  // namespace stepscope::ops
