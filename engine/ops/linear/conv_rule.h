// Shape rules and costs that convolution and pooling ops share. Geometry: kernels/window.h.
#pragma once

#include "engine/ops/gradient_context.h"
#include "engine/ops/op_def.h"
#include "engine/ops/shape_context.h"
#include "kernels/window.h"

namespace stepscope::ops {

// Output extent of a window along one axis; symbols stay symbols.
Result<Dim> windowExtent(ShapeContext& c, const Window& window, std::size_t axis, const Dim& in, std::size_t output = 0);

// Output 0 = convolution of input `x` [N, C, …] with input `w` [M, C/group, k…] of `dtype`.
Status inferConv(ShapeContext& c, std::size_t x, std::size_t w, DType dtype);

// Output 0 (and 1, when present, as int64) = [N, C, out…] for a pooling of input 0.
Status inferPool(ShapeContext& c);

// Output 0 = input 0's dtype with the shape whose contents input `i` holds. `rank` is that of the result.
Status inferFromShapeInput(ShapeContext& c, std::size_t i, std::size_t rank);

// Error unless input 0 has rank `least` or more (unknown rank passes).
Status requireRank(ShapeContext& c, std::size_t input, std::size_t least);

// 2 · |y| · |w| / M for y [N, M, …] and w [M, C/group, k…].
double convFlops(std::span<const std::int64_t> y, std::span<const std::int64_t> w);
// As above; where the node has the attribute `winograd` (passes/choose_winograd.h) what is executed: 36 products for each
// tile of 4 x 4 places of `tiled` [N, …, H, W], a tile cut off by the border being a whole one. Its transforms, additions
// for the most part, are not counted.
double convFlops(std::span<const std::int64_t> y, std::span<const std::int64_t> w, std::span<const std::int64_t> tiled,
                 const Attributes* attrs);

}  // namespace stepscope::ops
