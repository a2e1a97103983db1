// A second gradient of the scores, of a penalty on them for instance, is added while the gradient of the cross entropy is
// written: the sum of both takes no pass of its own over rows times classes. Runs once extents are known, because the kernel
// adds where the classes are the last axis.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseLossGradient(Graph& graph, PassContext& context);

}  // namespace stepscope
