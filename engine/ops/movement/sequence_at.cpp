#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferShape(ShapeContext& c) {
  if (c.inputType(0).kind != ValueKind::kSequence) return c.error("input is no sequence");
  c.setOutput(0, c.inputDType(0), c.inputShape(0));
  return {};
}

}  // namespace

constexpr OpDef kSequenceAtOp{
    .name = "SequenceAt",
    .doc = "The tensor at a position of a sequence; negative positions count from the end.",
    .inferShape = inferShape,
    .noGradientReason = "sequences are lowered to lists of values before the gradient",
    .sequences = true,
};

}  // namespace stepscope::ops
