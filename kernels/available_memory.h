// How much memory programs can take now.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>

namespace stepscope {

// Bytes that are free, and what the system gives back of its caches of files. Not limited to what a control group allows.
std::int64_t availableMemoryBytes();

// The same as a text like /proc/meminfo says it; nothing where it does not.
std::optional<std::int64_t> availableBytes(std::istream& meminfo);

}  // namespace stepscope
