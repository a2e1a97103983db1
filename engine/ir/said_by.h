// Errors of one node: its label in front of what a kernel or a rule says.
#pragma once

#include "engine/ir/graph.h"
#include "kernels/status.h"

namespace stepscope {

// `error` with "Op 'name': " in front of its message. Kernels and shape rules that ops share begin their messages with the
// op, which the label says already: that beginning is dropped.
Error saidBy(const Node& node, Error error);

}  // namespace stepscope
