// Phase `attach loss`: finds the scalar output to minimise, or attaches a loss to an output.
//
// cross_entropy: mean over labels other than -100; the class axis is the last one for rank 2 and 3 (a language model's
// logits) and axis 1 above (PyTorch's convention for images). mse, l1: mean over elements. bce_with_logits: mean of max(x,
// 0) - x t + log(1 + exp(-|x|)). The labels input is added when the model has none of that name.
#pragma once

#include <memory>

#include "engine/build/options.h"
#include "engine/build/registry.h"
#include "engine/ir/graph.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct LossChoice {
  ValueId loss;
  std::string reason;
};

// The output that would be taken without options; invalid with a reason when there is none.
LossChoice proposeLoss(const Graph& graph);

// `registry`: what a loss graph may hold (loss_graph.h).
Result<LossChoice> attachLoss(Graph& graph, Inference& inference, const TrainOptions& options,
                              std::shared_ptr<const Registry> registry);

}  // namespace stepscope
