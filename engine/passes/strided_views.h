// Parts of a value that Slice, Split and Transpose would copy are read where they lie: matrix products, attention, and
// elementwise nodes and their chains, and Concat take them as strided views (kernels/strided_view.h).
//
//   q, k, v = Split(qkv), Reshape to heads;  Product(q, k), …   →   Product(qkv, qkv, viewA, viewB), …
//   a, b = Split(x);  Pointwise(a, b), Concat(b, …)             →   Pointwise(x, x, view0, view1), Join(x, …, view0)
//
// Every reader of every part has to see strides, through Reshapes and further Slices, Splits and Transposes; else the copy
// is made anyway and nothing is gained. Norms, Softmax, Conv and Pad see none: what they read so takes
// less than 0.3 % of the step of a transformer or a convolution network (tests/bench/RESULTS.md), and where it is a
// Transpose, their rows would have no neighbours. Refused
// too: what makes more products of fewer rows, or on the CPU gives a product to another routine, which rounds otherwise
// (rows of one matrix that lie apart); operands that kernels convert whole (float16 on the CPU, chains of low types there,
// attention in other types than float32 and float64); elements of chains that have few neighbours; what chains read beside
// convolutions, which may lie in another layout; parts that would keep more memory alive than they have. Runs on numbers for
// extents, after fold_transposes and after all passes that match products or elementwise nodes.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status stridedViews(Graph& graph, PassContext& context);

}  // namespace stepscope
