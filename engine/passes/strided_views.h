// Parts of a value that Slice, Split and Transpose would copy are read where they lie: matrix products and attention take
// them as strided views (kernels/strided_view.h).
//
//   q, k, v = Split(qkv), Reshape to heads;  Product(q, k), …   →   Product(qkv, qkv, viewA, viewB), …
//
// Every reader of every part has to see strides, through Reshapes and further Slices, Splits and Transposes; else the copy
// is made anyway and nothing is gained. Refused too: what makes more products of fewer rows, or on the CPU gives a product
// to another routine, which is slower and rounds otherwise (right operands by columns in batches of two axes: scores of
// heads, while attention is not fused); operands that kernels convert whole (float16 on the CPU, attention in other types
// than float32 and float64); parts that would keep more memory alive than they have. Runs on numbers for extents, after
// fold_transposes and after all passes that match products.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status stridedViews(Graph& graph, PassContext& context);

}  // namespace stepscope
