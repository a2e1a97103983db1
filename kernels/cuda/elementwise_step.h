// The steps of elementwise chains for kernels of this folder: step_functions.h with the language that it is written in.
#pragma once

#include "kernels/cuda/body.h"
#include "kernels/cuda/step_functions.h"
#include "kernels/pointwise_program.h"

namespace stepscope::cuda {

static_assert(static_cast<int>(Step::kWhere) == static_cast<int>(PointwiseOp::kWhere));
static_assert(static_cast<int>(Step::kMax) == static_cast<int>(PointwiseOp::kMax));
static_assert(static_cast<int>(Step::kMish) == static_cast<int>(PointwiseOp::kMish));
static_assert(static_cast<int>(Step::kToFloat16) == static_cast<int>(PointwiseOp::kToFloat16));

}  // namespace stepscope::cuda
