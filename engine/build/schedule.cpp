#include "engine/build/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stepscope {

double scheduleFactor(const TrainOptions& o, std::int64_t update) {
  const std::int64_t warmup = o.warmupSteps;
  if (update < warmup) return static_cast<double>(update + 1) / static_cast<double>(warmup);
  if (o.lrSchedule == "constant") return 1;
  const std::int64_t total =
      o.totalSteps > 0 ? o.totalSteps : std::max<std::int64_t>(1, (o.startStep + o.steps) / o.accumulate);
  const double length = static_cast<double>(std::max<std::int64_t>(1, total - warmup));
  const double done = std::min(1.0, static_cast<double>(update - warmup) / length);
  if (o.lrSchedule == "linear") return 1 - done;
  if (o.lrSchedule == "cosine") return 0.5 * (1 + std::cos(std::numbers::pi * done));
  if (o.lrSchedule == "polynomial") return (1 - done) * (1 - done);
  return std::pow(0.1, std::floor(3 * std::min(done, 1 - 1e-9)));
}

}  // namespace stepscope
