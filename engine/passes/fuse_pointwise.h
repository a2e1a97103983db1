// Chains of elementwise nodes become one Pointwise node: what lies between them never goes to memory. A group has one
// result; all readers of every other value of it are in it. Runs last: what is left of elementwise nodes after the passes
// that know more.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fusePointwise(Graph& graph, PassContext& context);

}  // namespace stepscope
