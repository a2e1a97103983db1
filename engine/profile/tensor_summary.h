// Statistics of a value in one pass: what a step records of parameters, gradients and outputs while it runs.
#pragma once

#include "engine/snapshot/tensor.pb.h"
#include "kernels/tensor.h"

namespace stepscope {

// Everything of TensorStatistics but the histogram. Sums are f64, over blocks of fixed size that are joined in order (Chan,
// Golub, LeVeque 1979), so the result is the same for any number of threads. A value of strings, or an absent one, has its
// count alone.
snapshot::TensorStatistics tensorSummary(const TensorView& view);

}  // namespace stepscope
