// "Does not fit" is said before the run, with the peak and its owners.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/plan/plan.h"
#include "kernels/status.h"

namespace stepscope {

// What one process can have at most: the machine's memory, or less where a control group says so. Bytes; 0 unknown.
std::int64_t machineMemoryBytes();

// What a plan for the device of that name (option device) can have at most: the room of the device where it says how much
// that is, else the memory of the machine. Bytes; 0 unknown.
std::int64_t deviceMemoryBytes(const std::string& device);

// Whether state, batch and arena of `plan` are at most `limit` bytes (0 = what the machine has; then `besides` counts too:
// bytes that binding took and the plan does not know, as primitives and what kernels keep, and the arena does not where it
// is in the room of a device). Before the arena is packed its lower bound counts. Error: kOutOfMemory, with the need, the
// limit, the peak's instruction and the bytes of each class of buffers there.
Status checkFits(const ExecutionPlan& plan, std::int64_t limit, std::int64_t besides = 0);

// What the room of its device, which is asked now, leaves for the arena of `plan`: less than 0 where state and constants
// alone are too large. State that the plan writes counts twice where work ends later than its call, since a step that fails
// is taken back. None: the device does not say what it has.
std::optional<std::int64_t> arenaRoom(const ExecutionPlan& plan, const Device& device);

// Whether that is enough. Error: kOutOfMemory, with the device, the need, the room and the same of the peak.
Status checkRoom(const ExecutionPlan& plan, const Device& device);

}  // namespace stepscope
