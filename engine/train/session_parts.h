// Small things that the files of Session share.
#pragma once

#include <cstdint>

namespace stepscope {

// Largest resident set of the process so far, in bytes.
std::int64_t residentPeakBytes();

}  // namespace stepscope
