// Forward only: what `stepscope run` does. The planned executor runs what has a plan; a model whose extents are only known
// while it runs is interpreted node by node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/train/session.h"

namespace stepscope {

// Graph outputs in their order, then `fetch`; an output that was not computed is an invalid tensor.
Result<std::vector<std::pair<std::string, Tensor>>> runForward(Session& session, const std::vector<std::string>& fetch);

}  // namespace stepscope
