// Every op, in four groups as the kernels are. Adding an op adds its file and one line to the list.cpp of its group.
#pragma once

#include "engine/ops/op_def.h"

namespace stepscope::ops {

std::span<const OpDef* const> elementwiseOps();  // arithmetic, activations, comparisons, casts, random, optimizers
std::span<const OpDef* const> reductionOps();    // reductions, softmax, normalisation, losses
std::span<const OpDef* const> movementOps();     // shape, layout, indexing, sequences, control
std::span<const OpDef* const> linearOps();       // matmul, convolution, pooling, einsum, resize, recurrent

}  // namespace stepscope::ops
