// Rewrites the operators of opset 23 and later that stand for a part of a transformer as the public ops they mean, so that
// gradients, fusions and plans come with them:
//
//   Attention         softmax(softcap(scale · Q·Kᵀ) + mask) · V, with grouped heads (keys and values repeated), causal and
//                     sliding windows, padded and past keys; a query that may attend to nothing gets zeros
//   RotaryEmbedding   (cos·a − sin·b, sin·a + cos·b) of the halves (or neighbours) a, b of the first `rotary_embedding_dim`
//                     elements
//
// Masked scores become the lowest number of their type, not -inf: a row of nothing else keeps finite gradients. Runs after
// an `infer`, which tells ranks and heads, and before the next one. A node is blocked while the rank of an operand, its
// heads or their size are unknown. Source: onnx/docs/Operators.md with its errata of 1.23 (queries without keys give zeros,
// causal masks are aligned at the bottom right).
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status lowerAttention(Graph& graph, PassContext& context);

}  // namespace stepscope
