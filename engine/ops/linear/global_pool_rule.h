// Shape rule of the global pooling ops: [N, C, …] → [N, C, 1 …].
#pragma once

#include "engine/ops/linear/conv_rule.h"

namespace stepscope::ops {

Status inferGlobalPool(ShapeContext& c);

}  // namespace stepscope::ops
