// The way back from lower_if: the nodes of both branches become bodies of an If again, for a file that other programs read.
//
// Every Select that lower_if made stands for an output of an If; its condition, and the nodes that run under it alone, are
// the branches. The deepest ones go first, so a branch may hold another If. Not a pass of the pipeline: writing a model for
// inference calls it on a graph whose values nobody plans any more. Errors: kUnsupported for a node that runs under a
// condition and belongs to no such Select.
#pragma once

#include "engine/ir/graph.h"
#include "kernels/status.h"

namespace stepscope {

Status raiseIf(Graph& graph);

}  // namespace stepscope
