// Engine structures as snapshot messages.
#pragma once

#include "engine/build/trained_set.h"
#include "engine/exec/executor.h"
#include "engine/ir/graph.h"
#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

snapshot::Graph toSnapshot(const Graph& graph, const std::string& phase, const std::vector<ParameterChoice>& parameters,
                           ValueId loss, const OpRegistry& ops);
snapshot::Plan toSnapshot(const Executor& executor);
// In the order of the plan, of each node that it runs: what its kernel says that its bits depend on.
std::vector<snapshot::Determinism> determinismOf(const Executor& executor);
// Colour group of a node: "matmul", "normalization", … as graph.proto says.
std::string nodeCategory(const Node& node, const OpRegistry& ops);

}  // namespace stepscope
