// Engine structures as snapshot messages.
#pragma once

#include "engine/exec/executor.h"
#include "engine/ir/graph.h"
#include "engine/snapshot/graph.pb.h"
#include "engine/snapshot/plan.pb.h"
#include "engine/snapshot/run.pb.h"
#include "engine/snapshot/tensor.pb.h"
#include "engine/train/trained_set.h"

namespace stepscope {

snapshot::Graph toSnapshot(const Graph& graph, const std::string& phase, const std::vector<ParameterChoice>& parameters,
                           ValueId loss);
snapshot::Plan toSnapshot(const Executor& executor);
// Colour group of a node: "matmul", "normalization", … as graph.proto says.
std::string nodeCategory(const Node& node);
snapshot::TensorStatistics tensorStatistics(const TensorView& view);
// The contents of a slice (empty = everything), cut to `limit` elements from the outer axes on, so that rows stay whole as
// long as they can. Error: a slice that does not fit; it names `out.name`.
Status addContents(const TensorView& view, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& extent,
                   std::int64_t limit, snapshot::TensorData& out);

}  // namespace stepscope
