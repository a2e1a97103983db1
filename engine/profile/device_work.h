// What a device did in a step, as a message; and by which rung the option record.rung asks for it.
#pragma once

#include <string_view>

#include "engine/snapshot/run.pb.h"
#include "kernels/activity.h"

namespace stepscope {

// Of the option's name, one of its choices.
ActivityRung rungCalled(std::string_view name);

// `activity` has the host's clock and the order of calls (placeOnHostClock). Work of no instruction is left out.
snapshot::DeviceWork workOf(const Activity& activity, const ActivitySource::Rung& rung);

}  // namespace stepscope
