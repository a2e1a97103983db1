// Why a step may differ from PyTorch's: a table of causes, each with the pattern of differences that it leaves.
#pragma once

#include "engine/ir/graph.h"
#include "engine/lab/golden_check.h"

namespace stepscope {

// Fills in `cause` of the rows that differ, where a pattern fits. `graph`: the imported one. `rows`: of the batch; 0 when
// that is not known.
void findCauses(const Graph& graph, std::int64_t rows, GoldenReport& report);

}  // namespace stepscope
