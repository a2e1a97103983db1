// Infers the whole graph anew: types, symbolic shapes, known contents (see infer.h).
//
// Stands first in the rounds of lowerings, which need its facts and make nodes without any, and once more behind
// lower_sequences. Where nothing was edited since it ran, it does nothing.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Reports no matches: a round in which only this pass ran changed nothing. Error: the first contradiction, naming the node.
Status inferTypes(Graph& graph, PassContext& context);

}  // namespace stepscope
