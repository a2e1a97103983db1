// What the matrix-product ops share: shape rule, gradient, cost.
#pragma once

#include <initializer_list>
#include <string_view>

#include "engine/ops/gradient_context.h"
#include "engine/ops/op_def.h"
#include "engine/ops/shape_context.h"

namespace stepscope::ops {

// The named inputs that are there and of a known type have one type: kernels read them as such.
Status requireOneType(const ShapeContext& c, std::initializer_list<std::size_t> inputs);

// Output 0 = op(input a) · op(input b) of `dtype`, numpy rules, op = exchange of the last two axes where asked.
Status inferMatMul(ShapeContext& c, std::size_t a, std::size_t b, bool transA, bool transB, DType dtype);
// Extents of the product of operands of shape `left` and `right`. Errors: rank 0, inner or batch extents that contradict.
Result<Shape> productShape(ShapeContext& c, const Shape& left, const Shape& right);

// `shape` with its axes in the order of attribute `name` (ONNX Transpose's `perm`); as it is without the attribute. Errors:
// an order that is none of its axes.
Result<Shape> permutedShape(ShapeContext& c, const Shape& shape, std::string_view name);

// Extents of input `input` as its reader sees it: those of the view that attribute `view` picks of it
// (kernels/strided_view.h), with its axes in the order of attribute `perm`. The rank of the input is known. Errors: those of
// permutedShape, a view that is not within an input of known extents.
Result<Shape> seenShape(ShapeContext& c, std::size_t input, std::string_view view, std::string_view perm);
// The extents that attribute `view` picks of an operand of these; for costs.
Dims seenDims(std::span<const std::int64_t> dims, const Attributes* attrs, std::string_view view);

// Gradients of y = alpha · op(x0) · op(x1) to inputs 0 and 1:
//   dA = dY · op(B)^T,  dB = op(A)^T · dY  (operands exchanged where op transposes), summed over broadcast batch axes.
// With a rank-2 B and a longer A both are folded to matrices first, so that dB is one product and no batch of them.
Status matMulGradient(GradientContext& g, bool transA, bool transB, float alpha);

// 2·m·n·k of every batch, operands and result permuted as the attributes say.
double matMulFlops(const OpShapes& shapes);

}  // namespace stepscope::ops
