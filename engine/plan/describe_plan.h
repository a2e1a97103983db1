// What a plan says of itself once memory is shared: the costs of its instructions, the classes of its buffers.
#pragma once

#include <vector>

#include "engine/ops/op_registry.h"
#include "engine/plan/plan.h"

namespace stepscope {

// Fills flops and bytes, which depend on whose memory the results are.
void describeInstructions(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops);

// Fills Buffer::bufferClass. Needs lifetimes, and where the phases begin. `trained`: parameters.
void classifyBuffers(ExecutionPlan& plan, const Graph& graph, const OpRegistry& ops, const std::vector<ValueId>& trained);

}  // namespace stepscope
