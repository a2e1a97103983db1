// The sum of the squares of a tensor at the speed of memory: norms of gradients are taken in every step.
#pragma once

#include "kernels/tensor.h"

namespace stepscope::cpu {

// Of contents in host memory; 0 for what holds no floating numbers. In f64, so that the square of the largest f32 is finite
// and what is not finite stays so, in an order that does not depend on `threads`.
double sumOfSquares(const TensorView& view, int threads);

}  // namespace stepscope::cpu
