// How much of a plan's memory is really there.
#pragma once

#include <cstdint>

#include "engine/exec/executor.h"

namespace stepscope {

// Resident bytes of [data, data + bytes), by pages of the system; all of them where the system does not tell.
std::int64_t residentBytes(const void* data, std::int64_t bytes);

// Resident bytes of the state, the constants and the batch that the plan uses. The arena's are Executor::touchedBytes().
std::int64_t touchedPersistentBytes(const Executor& executor);

}  // namespace stepscope
