// The reference kernels of this group: functions of the spec and the call, listed in kernels.cpp.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::reference {

#define SS_KERNEL(domain, op, function, kind, file) Status function(const KernelSpec& spec, const KernelCall& call);
#include "kernels/reference/linear/kernels.inc"
#undef SS_KERNEL

}  // namespace stepscope::reference
