// Constants that float16 cannot hold. A number above 65504 is infinite in it, which few models mean.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Warns of the first number of `in`, an operand of `node` that is about to become `wanted`, that is finite and is not in
// float16. Nothing for other types, for values whose contents are not known, and for large tensors: those are weights, whose
// products say it. `hint`: what to do about it.
void tellOfOverflow(const Graph& graph, PassContext& context, const Node& node, ValueId in, DType wanted,
                    std::string_view hint);

}  // namespace stepscope
