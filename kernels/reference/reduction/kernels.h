// The kernels of this folder, one list per file; kernels.cpp joins them.
#pragma once

#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

#define SS_FAMILY(kernels, file) std::span<const KernelEntry> kernels();
#include "kernels/reference/reduction/kernels.inc"
#undef SS_FAMILY

}  // namespace stepscope::reference
