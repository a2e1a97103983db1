#include "engine/snapshot/busy_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/snapshot/units.h"

namespace stepscope {

std::string busyText(const ProcessorTimes& times) {
  if (!times.busy()) return {};
  return fmt::format(
      "{:.0f} % of the processor time that the steps asked for was spent waiting for a core (computed {}, waited {}, in {} "
      "by the clock)",
      100 * times.waitShare(), units::time(times.cpu), units::time(times.wait), units::time(times.wall));
}

std::int64_t withoutCore(const ProcessorTimes& times, int threads, std::int64_t ns) {
  if (times.wall <= 0 || times.wait <= 0 || ns <= 0) return 0;
  const double share = static_cast<double>(times.wait) / static_cast<double>(times.wall) / std::max(1, threads);
  return std::llround(std::min(1.0, share) * static_cast<double>(ns));
}

std::string disturbedText(double waiting) {
  if (!peaksDisturbed(waiting)) return {};
  return fmt::format(
      "measured on a busy machine: its threads had no core for {:.0f} % of the time, so the machine may do more",
      100 * waiting);
}

}  // namespace stepscope
