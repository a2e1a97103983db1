// What is known of this machine without measuring it.
#pragma once

#include <string>

#include "engine/snapshot/run.pb.h"

namespace stepscope {

// Processor, cores, memory, GPU or why there is none; `version` of stepscope. Libraries are left to the program.
snapshot::MachineInfo machineFacts(const std::string& version);

}  // namespace stepscope
