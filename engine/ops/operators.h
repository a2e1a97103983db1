// Ops and the kernels that compute them: what inference, gradients, plans and executors look things up in. A session's are
// part of its Registry (build/registry.h); nothing below it knows more than these two.
#pragma once

#include "engine/ops/op_registry.h"
#include "kernels/kernel_registry.h"

namespace stepscope {

struct Operators {
  OpRegistry ops;
  KernelRegistry kernels;
};

// Those of the built-in lists, for tests and tools that have no session.
const Operators& builtInOperators();

}  // namespace stepscope
