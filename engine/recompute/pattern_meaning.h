// What a pattern of another engine means among the patterns of this graph.
#pragma once

#include <string_view>

namespace stepscope {

// Whether `asked`, written with the operators of ONNX Runtime ("BiasGelu+", "FusedMatMul+Add+Reshape+"), stands for the same
// work as `own`, a pattern of this graph (RecomputeCandidate::pattern). Operators that are one here have the name that they
// have here (FastGelu and BiasGelu are Gelu: the sum with the bias belongs to the product; BitmaskDropout is Dropout,
// FusedMatMul and Gemm are MatMul), views do not count (Reshape, Squeeze …), and a chain of elementwise operators stands for
// a Pointwise. "block" means itself alone.
bool meansPattern(std::string_view asked, std::string_view own);

}  // namespace stepscope
