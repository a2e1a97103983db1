// Parts that the movement ops' shape rules and gradients share.
#pragma once

#include <functional>
#include <span>

#include "engine/ops/gradient_context.h"
#include "engine/ops/movement/ops.h"
#include "engine/ops/op_def.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// Contents of more elements than this are not propagated: shape arithmetic is short, tables are not.
inline constexpr std::size_t kMaxContents = 1024;

// Input i as dims: propagated contents, or a small constant of integers or bools. Rank 0 or 1 only.
std::optional<Contents> knownContents(const ShapeContext& c, std::size_t i);
// Output 0 has the elements of input 0 in the same order: passes contents on when `shape` has rank 0 or 1.
void forwardContents(ShapeContext& c, const std::optional<Shape>& shape);

// Output 0 of `dtype` with the shape that input i contains; fresh symbols when only its length is known. Errors: a negative
// extent.
Status outputShapedByInput(ShapeContext& c, std::size_t i, DType dtype);
// outputShapedByInput with input 0's type: the rule of the gradients that are told the shape of the forward input.
Status gradientShapedByInput1(ShapeContext& c);
Status gradientShapedByInput2(ShapeContext& c);

// The axes, each in 0..rank-1. Errors: out of range, listed twice.
Result<std::vector<std::size_t>> uniqueAxes(const ShapeContext& c, const std::vector<std::int64_t>& axes, std::size_t rank);
// Errors when inputs a and b are present with different element types.
Status sameType(const ShapeContext& c, std::size_t a, std::size_t b);
// Errors when input i is present and neither int32 nor int64.
Status indexType(const ShapeContext& c, std::size_t i);
// Maps a known index of an axis to 0..extent-1. Errors name the position, the value and the valid range.
Result<std::size_t> pick(const ShapeContext& c, std::int64_t index, std::size_t position, std::size_t extent);
// Output 0 has the elements of a vector of known contents that these indices pick. Errors: those of pick().
Status pickContents(ShapeContext& c, const Contents& contents, std::span<const std::int64_t> indices);

// --- gradients of scatters, shared by ScatterElements and ScatterND

// The gather and the scatter that belong to the indices of the node.
struct ScatterOps {
  std::function<ValueId(ValueId data)> gather;
  std::function<ValueId(ValueId data, ValueId updates, const char* reduction)> scatter;
};
Status scatterGradient(GradientContext& g, const ScatterOps& ops);

}  // namespace stepscope::ops
