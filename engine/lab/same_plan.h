// Whether two plans do the same.
#pragma once

#include "engine/build/builder.h"

namespace stepscope {

// The same instructions with the same operands, kernels, threads and memory, and looked at alike, whatever their nodes are
// called. False for plans that only number their buffers in another way.
bool samePlan(const Variant& a, const Variant& b);

}  // namespace stepscope
