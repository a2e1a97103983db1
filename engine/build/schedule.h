// Learning rate over updates. Update k = 0 is the first one, and already uses the schedule's value.
//
//   warm-up     k < W:  (k + 1) / W
//   constant    1
//   linear      (T - k) / (T - W)
//   cosine      (1 + cos(pi (k - W) / (T - W))) / 2
//   polynomial  ((T - k) / (T - W))^2
//   step        0.1 ^ floor(3 (k - W) / (T - W))
//
// with T the number of updates in all; past T the last value holds (0 for linear, cosine and polynomial:
// an update with it is told as alert schedule_ended).
#pragma once

#include "engine/build/options.h"
#include "engine/state/state.h"

namespace stepscope {

double scheduleFactor(const TrainOptions& options, std::int64_t update);
// T of a run that goes on from these counters, where the options do not say it: the updates before and those of its `steps`,
// if they are all (stepsAreAll). Error kInvalidArgument (option total-steps): a schedule that needs T, and nobody knows it.
Status settleSchedule(TrainOptions& options, const StateCounters& counters);

}  // namespace stepscope
