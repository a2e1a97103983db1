#include "engine/build/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stepscope {

double scheduleFactor(const TrainOptions& o, std::int64_t update) {
  const std::int64_t warmup = o.warmupSteps;
  if (update < warmup) return static_cast<double>(update + 1) / static_cast<double>(warmup);
  if (o.lrSchedule == "constant") return 1;
  const double length = static_cast<double>(std::max<std::int64_t>(1, o.totalSteps - warmup));
  const double done = std::min(1.0, static_cast<double>(update - warmup) / length);
  if (o.lrSchedule == "linear") return 1 - done;
  if (o.lrSchedule == "cosine") return 0.5 * (1 + std::cos(std::numbers::pi * done));
  if (o.lrSchedule == "polynomial") return (1 - done) * (1 - done);
  return std::pow(0.1, std::floor(3 * std::min(done, 1 - 1e-9)));
}

Status settleSchedule(TrainOptions& o, const StateCounters& counters) {
  if (o.lrSchedule == "constant" || o.totalSteps > 0) return {};
  if (!o.stepsAreAll)
    return invalidOption("total-steps",
                         fmt::format("found 0; expected the number of steps of the whole training, counted in updates, "
                                     "where lr-schedule is {}",
                                     o.lrSchedule));
  const std::int64_t start = counters.step > 0 ? counters.step : o.startStep;
  o.totalSteps = std::max<std::int64_t>(1, (start + o.steps) / o.accumulate);
  return {};
}

}  // namespace stepscope
