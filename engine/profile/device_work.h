// What a device did in a step, as a message.
#pragma once

#include "engine/snapshot/run.pb.h"
#include "kernels/activity.h"

namespace stepscope {

// `activity` has the host's clock and the order of calls (placeOnHostClock). Work of no instruction is left out.
snapshot::DeviceWork workOf(const Activity& activity, const ActivitySource::Rung& rung);

}  // namespace stepscope
