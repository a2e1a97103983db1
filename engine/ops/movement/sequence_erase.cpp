#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferShape(ShapeContext& c) {
  if (c.inputType(0).kind != ValueKind::kSequence) return c.error("input 0 is no sequence");
  c.setOutputType(0, c.inputType(0));
  return {};
}

}  // namespace

constexpr OpDef kSequenceEraseOp{
    .name = "SequenceErase",
    .doc = "A sequence without the tensor at a position, or without the last.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .inferShape = inferShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
};

}  // namespace stepscope::ops
