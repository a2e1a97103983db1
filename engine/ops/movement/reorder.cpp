#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferReorderShape(ShapeContext& c) { return shape_rules::sameAsInput0(c); }

}  // namespace

constexpr OpDef kReorderOp{
    .name = "Reorder",
    .domain = kInternalDomain,
    .doc = "y = x; the two may lie in memory in different layouts.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferReorderShape,
    .noGradientReason = "made by assign_layouts when the gradient is there",
    .differentiableInputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
