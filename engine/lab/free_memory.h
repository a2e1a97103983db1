// How much memory can still be taken, for what needs a state or all values of a step once more.
#pragma once

#include <cstdint>

namespace stepscope {

// Bytes that programs can take now (kernels/available_memory.h), at most what a control group allows this process.
std::int64_t freeMemoryBytes();

}  // namespace stepscope
