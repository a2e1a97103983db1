// Checks that QuantizeLinear and DequantizeLinear share.
#pragma once

#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// Scale (input 1) is a scalar, one number per extent of `axis`, or one per block of `block_size` along it.
Status checkScale(ShapeContext& c);
Status requireSameShape(ShapeContext& c, std::size_t a, std::size_t b);

}  // namespace stepscope::ops
