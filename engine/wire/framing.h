// Length-prefixed messages over file descriptors: uint32 little-endian, then that many bytes. Blocking; one reader and one
// writer at a time per descriptor.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/status.h"

namespace stepscope {

inline constexpr std::uint32_t kLargestMessage = std::uint32_t{1} << 30;

// The next message; kNotFound at a clean end of the stream, kCorrupt when it ends inside one or announces more than 1 GiB.
// Memory grows with what arrives, not with what is announced.
Result<std::string> readFrame(int fd);
Status writeFrame(int fd, const std::string& bytes);

}  // namespace stepscope
