// A Gather of neighbouring places is a Slice: it copies runs, and its gradient fills what it left with zeros instead of
// adding row by row.
//
//   Gather(x, [2, 3, 4])            → Slice(x, 2, 5)          also with another distance: [0, 2, 4], [3, 2, 1]
//   Gather(x, Range(start, n, d))   → Slice(x, start, n, d)   start and d are known, n is an extent
//
// Runs before merge_slices, which may find that such slices cover the axis.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status gatherToSlice(Graph& graph, PassContext& context);

}  // namespace stepscope
