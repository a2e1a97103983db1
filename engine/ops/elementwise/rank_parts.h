// What the ops over parts of tensors share (kernels/rank_part.h): attributes `rank` and `ranks`.
#pragma once

#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// How many ranks there are. Errors: `ranks` below 1, a `rank` that is none of them.
Result<std::int64_t> ranksOf(const ShapeContext& c);
// The extents of a part of input `i`: one axis.
std::optional<Shape> partShape(ShapeContext& c, std::size_t i, std::size_t output, std::int64_t ranks);

}  // namespace stepscope::ops
