// An accumulation that is under way, and the settings that it can go on with: a round of micro steps gives the mean of its
// gradients, each of which is divided by option accumulate, so the number must stay until the update.
#pragma once

#include "engine/build/options.h"
#include "engine/state/state.h"

namespace stepscope {

// Error kInvalidArgument (option accumulate): the present round began with another number.
Status checkRound(const TrainOptions& options, const StateCounters& counters);

}  // namespace stepscope
