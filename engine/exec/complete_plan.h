// What binding would make of a plan, without its memory: workspaces and offsets.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "engine/plan/plan.h"
#include "engine/plan/spec_table.h"
#include "kernels/device.h"

namespace stepscope {

// What kernels asked for, by what they are made from: plans that want the same kernels ask once.
struct KnownWorkspaces {
  SpecTable specs;
  std::map<std::pair<const KernelSpec*, bool>, std::int64_t> bytes;  // of a spec of `specs`, and whether it runs on the host
};

// Makes every kernel, asks it for its workspace and lets it go, then packs the arena: afterwards `plan` has the arena that
// an Executor of it would allocate. Nothing of the arena, the state or the batch is allocated. Errors: no kernel for a node,
// named. `known`: of plans for this device and backend; kernels that are in it are not made.
Status completePlan(ExecutionPlan& plan, const Graph& graph, Backend backend, const Operators& operators, Device& device,
                    bool reuse, const Cancel& cancel = {}, KnownWorkspaces* known = nullptr);

}  // namespace stepscope
