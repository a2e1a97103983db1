// What this machine has, for `doctor`, the worker and the project file.
#pragma once

#include "engine/snapshot/run.pb.h"

namespace stepscope::cli {

snapshot::MachineInfo machineInfo();

}  // namespace stepscope::cli
