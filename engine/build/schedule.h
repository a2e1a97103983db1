// Learning rate over updates. Update k = 0 is the first one, and already uses the schedule's value.
//
//   warm-up     k < W:  (k + 1) / W
//   constant    1
//   linear      (T - k) / (T - W)
//   cosine      (1 + cos(pi (k - W) / (T - W))) / 2
//   polynomial  ((T - k) / (T - W))^2
//   step        0.1 ^ floor(3 (k - W) / (T - W))
//
// with T the number of updates in all; past T the last value holds (0 for linear, cosine and polynomial).
#pragma once

#include "engine/build/options.h"

namespace stepscope {

double scheduleFactor(const TrainOptions& options, std::int64_t update);

}  // namespace stepscope
