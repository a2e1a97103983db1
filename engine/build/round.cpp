#include "engine/build/round.h"

#include <fmt/format.h>

#include "engine/build/option_values.h"

namespace stepscope {

Status checkRound(const TrainOptions& options, const StateCounters& counters) {
  if (counters.micro == 0 || counters.roundOf == options.accumulate) return {};
  // A file of an older build does not say how long its round is.
  if (counters.roundOf == 0 && counters.micro < options.accumulate) return {};
  if (counters.roundOf == 0)
    return invalidOption("accumulate",
                         fmt::format("found {}; step {} comes after {} micro steps of an update; expected more than {}",
                                     options.accumulate, counters.step, counters.micro, counters.micro));
  const std::int64_t last = counters.step + counters.roundOf - counters.micro - 1;
  return invalidOption(
      "accumulate",
      fmt::format("found {}; step {} comes after {} of the {} micro steps of an update; expected {} until "
                  "the update is complete, which is after step {}",
                  options.accumulate, counters.step, counters.micro, counters.roundOf, counters.roundOf, last));
}

}  // namespace stepscope
