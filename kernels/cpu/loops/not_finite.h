// Whether numbers are finite, at the speed of the caches: a run that watches for NaN and Inf asks it of everything that a
// step computes.
#pragma once

#include "kernels/tensor.h"

namespace stepscope::cpu {

// An element of contents in host memory is NaN or infinite. False for what holds no floating numbers.
bool anyNotFinite(const TensorView& view);

}  // namespace stepscope::cpu
