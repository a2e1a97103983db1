// Rewrites sequences and optionals of known length into plain values, so that nothing after it knows of them:
// SplitToSequence → Split (keepdims=0: and Squeeze), SequenceAt → Identity of the element, ConcatFromSequence → Concat
// (new_axis=1: of Unsqueezed elements), SequenceLength and OptionalHasElement → Constant; nodes that only build sequences
// go.
//
// Runs after a first `infer`, which tells the sizes of parts and the positions, and before the second one; after lower_if,
// so a sequence that leaves an If is a Select per element. Nodes that stay keep their ids and the names of their outputs.
// What the graph takes and gives: an optional input is one that is fed, under its name; a sequence input xs becomes the
// inputs xs.0, xs.1 … that are read of it, a sequence output the outputs ys.0, ys.1 …. Errors: kUnsupported with the node
// and the reason where a length or position is not a known number, or where another op reads a sequence; kInvalidArgument
// for a position outside the sequence.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are nodes that were rewritten or removed; a graph without sequences keeps its version.
Status lowerSequences(Graph& graph, PassContext& context);

}  // namespace stepscope
