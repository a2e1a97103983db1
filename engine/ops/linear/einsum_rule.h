// What Einsum and its gradient cost.
#pragma once

#include "engine/ops/op_def.h"

namespace stepscope::ops {

// For each point of the space of all letters one operation for each operand: the products, and the sum.
double einsumFlops(const OpShapes& s);
// Of EinsumGrad: the gradient of the result takes the place of the operand that is differentiated.
double einsumGradFlops(const OpShapes& s);

}  // namespace stepscope::ops
