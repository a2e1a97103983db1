// Shape rules of the ops that draw numbers.
#pragma once

#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// The element type that attribute `name` gives; `fallback` when it is absent. Error: a type that this build does not carry.
Result<DType> attributeType(const ShapeContext& c, std::string_view name, DType fallback);
// Output 0 of floating attribute dtype and of attribute shape.
Status randomFromShape(ShapeContext& c);
// Output 0 shaped like input 0, of floating attribute dtype or the input's type.
Status randomLikeInput0(ShapeContext& c);

}  // namespace stepscope::ops
