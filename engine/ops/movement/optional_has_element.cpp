#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferShape(ShapeContext& c) {
  c.setOutput(0, DType::kBool, Shape{});
  return {};
}

}  // namespace

constexpr OpDef kOptionalHasElementOp{
    .name = "OptionalHasElement",
    .doc = "Whether an optional holds a value; true for a plain value, false for an absent input.",
    .inputs = {0, 1},
    .outputs = {1, 1},
    .inferShape = inferShape,
    .noGradientReason = "bool result",
    .sequences = true,
};

}  // namespace stepscope::ops
