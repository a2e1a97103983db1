// Where the elements that Pad adds come from.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::reference {

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

// Attribute `mode`. Error: another word.
Result<PadMode> padMode(const KernelSpec& spec);
// The position of the data that position i, counted from the data's first, copies; -1 = the constant. `extent` > 0 unless
// the mode is constant.
std::int64_t padSource(PadMode mode, std::int64_t i, std::int64_t extent);

}  // namespace stepscope::reference
