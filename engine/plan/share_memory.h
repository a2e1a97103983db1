// Whose memory the results of a plan are: views of an input, in place of one that nobody reads any more, written over the
// state whose next version they are, or their own.
#pragma once

#include "engine/ops/op_registry.h"
#include "engine/plan/plan.h"

namespace stepscope {

// Fills Buffer::shares, owner, sharing, home and refusals, and Instruction::view. Needs the first and last uses of buffers.
// Lifetimes of owners are not lengthened yet. `inPlace`: option memory.inplace.
void shareMemory(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, bool inPlace);

}  // namespace stepscope
