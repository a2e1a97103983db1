// What this machine has, for `doctor`, the worker and the project file.
#pragma once

#include <string>

#include "engine/snapshot/run.pb.h"

namespace stepscope::cli {

snapshot::MachineInfo machineInfo();
// How this process was started, as one types it into a shell.
std::string commandLine();

}  // namespace stepscope::cli
