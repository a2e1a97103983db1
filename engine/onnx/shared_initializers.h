// Parameters that were separate in the module but are one in the file.
#pragma once

#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/reader.h"

namespace stepscope {

// Exporters that merge initializers of equal contents tie parameters that must be trained apart (all zero biases become
// one). Warns for every float initializer of rank 1 or more that nodes of different modules use and whose elements are all
// equal (or, for rank 1, not known): a deliberate tie, such as embedding and decoder, holds random numbers, and a
// module that is called again is one module. Names the modules.
std::vector<LoadWarning> sharedInitializerWarnings(const Graph& graph);

}  // namespace stepscope
