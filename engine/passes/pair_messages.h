// Finds for each Recv the Send of the same ends and tag, and makes it the input: so a message is received behind what it is
// sent of, its type and extents are those of what is sent, and gradients find their way back. Where several have the same
// ends and tag, the first Recv is of the first Send, and so on.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Before `infer`, so that what a message is made of is known there. What is in loops and branches is not seen yet.
Status pairMessages(Graph& graph, PassContext& context);

// The rest, once loops are unrolled and branches are in the graph, in front of the last `infer`; attributes `dtype` go,
// because passes may change the type in which something is sent. Errors kInvalidArgument, naming the node: a Send or a Recv
// without the other; one of them in a branch that the other one is not in; a Send that waits for its own Recv, which would
// never come.
Status pairRemainingMessages(Graph& graph, PassContext& context);

}  // namespace stepscope
