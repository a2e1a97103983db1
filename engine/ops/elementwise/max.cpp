#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {

extern constexpr OpDef kMaxOp{
    .name = "Max",
    .doc = "y = largest of the inputs; ties share the gradient evenly",
    .inputs = {1, kMany},
    .outputs = {1, 1},
    .inferShape = foldedBinary<maxDims>,
    .gradient = evenShareGradient,
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0),
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
