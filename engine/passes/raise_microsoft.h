// Rewrites operators of com.microsoft that say what public ops say into these, so that they have shape rule, gradient and
// kernels: Trilu and GridSample (as ONNX Runtime's exporter hooks for torch.onnx write them), TransposeMatMul, and what
// ORT's training passes leave in a saved graph: BatchNormInternal, LSTMTraining, GRUTraining, ReduceSumTraining,
// BiasDropout, Scale, ScaledSum. And what its optimiser writes for inference: FusedGemm, FusedConv, NhwcConv,
// EmbedLayerNormalization, and its forms of attention (microsoft_attention.h).
//
// Runs after `inline` and before raise_opset, which brings the results to the internal opset. Nodes keep their ids; helper
// nodes have the node as their source, its module path and predicates. Source: onnxruntime/docs/ContribOperators.md.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are nodes that were rewritten; without any the graph keeps its version.
Status raiseMicrosoft(Graph& graph, PassContext& context);

}  // namespace stepscope
