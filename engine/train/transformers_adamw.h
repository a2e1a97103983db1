// AdamW as the library transformers had it, as a graph of option optimizer-graph (engine/build/optimizer_graph.h).
#pragma once

#include "engine/ir/graph.h"
#include "engine/onnx/onnxruntime_optimizer.h"

namespace stepscope {

// State exp_avg and exp_avg_sq. w -= lr·sqrt(1 - beta2^t)/(1 - beta1^t)·m/(sqrt(v) + epsilon), then w -= lr·decay·w; without
// bias correction the factor is lr. Source: huggingface.co/docs/transformers, `AdamW`.
Graph transformersAdamw(const OnnxruntimeOptimizer& optimizer);

}  // namespace stepscope
