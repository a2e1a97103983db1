#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferStopGradientShape(ShapeContext& c) {
  c.setOutputType(0, c.inputType(0));
  return {};
}

}  // namespace

extern constexpr OpDef kStopGradientOp{
    .name = "StopGradient",
    .domain = kInternalDomain,
    .doc = "y = x, the same memory; no gradient goes back (PyTorch's detach, which stepscope_capture keeps)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferStopGradientShape,
    .noGradientReason = "the model detaches the value here",
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .view = true,
};

}  // namespace stepscope::ops
