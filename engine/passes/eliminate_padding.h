// Computes the tokens alone that count: everything that works on each token by itself runs without padded ones.
//
//   y = MatMul(x [B, S, H], w)   becomes   y = PadAndUnflatten(MatMul(FlattenAndUnpad(x, kept), w), kept)
//
// `kept` is an input that the pass adds, "<ids>.kept_tokens" int64 [K]: for every batch the engine fills it with the tokens
// that are no padding, those whose labels count, the first of every row, and up to K with padded ones
// (engine/build/kept_rows.h). Padded tokens go before the embeddings are looked up and come back, as zeros, only where nodes
// put tokens side by side: in front of attention, which masks them. From there on they go again. Dropout becomes a
// DropoutPart: random numbers stay those of the place. Loss and gradients are the same but for rounding: token_flow.h says
// what is proved of the graph, and what is refused.
//
// Off by default: sums over rows have another order. Needs a batch to judge by; whether it is worth it is decided for every
// batch (engine/build/rows_choice.h). Runs before the gradient, after sparse_labels and what recognises norms and
// activations, and before fuse_attention, which works on what comes back.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

inline constexpr std::string_view kKeptTokensSuffix = ".kept_tokens";

Status eliminatePadding(Graph& graph, PassContext& context);

}  // namespace stepscope
