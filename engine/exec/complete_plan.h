// What binding would make of a plan, without its memory: workspaces and offsets.
#pragma once

#include "engine/plan/plan.h"
#include "kernels/device.h"

namespace stepscope {

// Makes every kernel, asks it for its workspace and lets it go, then packs the arena: afterwards `plan` has the arena that
// an Executor of it would allocate. Nothing of the arena, the state or the batch is allocated. Errors: no kernel for a node,
// named.
Status completePlan(ExecutionPlan& plan, const Graph& graph, Backend backend, const Operators& operators, Device& device,
                    bool reuse, const Cancel& cancel = {});

}  // namespace stepscope
