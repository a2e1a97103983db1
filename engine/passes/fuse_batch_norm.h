// BatchNormalization with what follows it: Relu(BatchNormalization(x)) and Relu(BatchNormalization(x) + z) become
// FusedBatchNormalization, and BatchNormalizationGrad behind ReluGrad becomes FusedBatchNormalizationGrad. Each spares
// passes over tensors as large as x. Post-grad, when it is known which of the values between are read by the backward phase;
// after fuse_relu_gradient.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseBatchNorm(Graph& graph, PassContext& context);

}  // namespace stepscope
