// "Does not fit" is said before the run, with the peak and its owners.
#pragma once

#include <cstdint>
#include <string>

#include "engine/plan/plan.h"
#include "kernels/status.h"

namespace stepscope {

// What one process can have at most: the machine's memory, or less where a control group says so. Bytes; 0 unknown.
std::int64_t machineMemoryBytes();

// What a plan for the device of that name (option device) can have at most: the memory of the device where it says how much
// it has of its own, else that of the machine. Bytes; 0 unknown.
std::int64_t deviceMemoryBytes(const std::string& device);

// Whether state, batch and arena of `plan` are at most `limit` bytes (0 = what the machine has; then `besides` counts too:
// bytes that binding took and the plan does not know, as primitives and what kernels keep). Before the arena is
// packed its lower bound counts. Error: kOutOfMemory, with the need, the limit, the peak's instruction and the bytes of each
// class of buffers there.
Status checkFits(const ExecutionPlan& plan, std::int64_t limit, std::int64_t besides = 0);

}  // namespace stepscope
