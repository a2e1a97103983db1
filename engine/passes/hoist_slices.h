// Takes a part of a value before the nodes that make it: what throws data away late in the graph makes everything in front
// of it compute what nobody reads. Language models drop the last position of every sequence from the logits, classifiers
// read the first token of the last layer, masked language models the tokens that were masked.
//
//   Slice(MatMul(x, w), rows)                 → MatMul(Slice(x, rows), w)
//   Gather(LayerNormalization(a + f(a)), 0)   → Squeeze(LayerNormalization(Slice(a) + f(Slice(a))))
//   Gather(Reshape(Gelu(x), [B * S, H]), k)   → Gelu(Gather(Reshape(x, [B * S, H]), k))
//
// Slice along one axis, Gather by a number or a vector, ShrunkenGather, and GatherND that picks positions of each row move;
// what they pass is said op by op in slice_rules.h. A Reshape moves with the Gather that reads its rows: alone it is a view
// that costs nothing wherever it stands. Dropout becomes a DropoutPart, which draws the mask of the whole value, so that
// random numbers stay what they were.
//
// A node is passed when nothing else reads its result, or only equal parts of it are read; when the part is not larger; and,
// where several operands would be taken in part, when it is at most half. Views alone are not passed. Runs before the
// gradient, which then works on the parts, and after what recognises Gelu, Swish and norms in chains whose values have two
// readers.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status hoistSlices(Graph& graph, PassContext& context);

}  // namespace stepscope
