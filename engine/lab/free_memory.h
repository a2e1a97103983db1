// How much memory can still be taken, for what needs a state or all values of a step once more.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>

namespace stepscope {

// Bytes that programs can take now: what is free, and what the system gives back of its caches of files. At most what a
// control group allows this process.
std::int64_t freeMemoryBytes();

// The same as a text like /proc/meminfo says it; nothing where it does not.
std::optional<std::int64_t> availableBytes(std::istream& meminfo);

}  // namespace stepscope
