// Attention as one node that never stores the matrix of scores: stepscope.FusedAttention, with a gradient that computes them
// again, tile by tile.
//
//   s = q · k^T [· c] [cap · Tanh(s / cap)] [+ mask | Where(mask, s, number)];
//   p = Softmax(s) [zeros in rows that are all -inf] [Dropout];  y = p · v
//
// How exporters write this is said by attention.pattern, and by the file that option attention.patterns names.
// Keys and values that an Expand repeats for groups of heads (grouped queries) are read without the copies, where both are
// repeated alike; else with them.
// Transposes of q, k, v and of the result go into the node: it reads and writes them where they lie. Constant factors of q
// and k go into its scale. Queries that pass eliminate_padding brought back behind the last token of a row are left out, as
// keys are that a mask drops. Memory falls by heads · m · n numbers for every layer and reader; products rise by a seventh.
// Off by default: a person who steps through attention may want to see its probabilities. Runs before the gradient, whose
// nodes it saves too, and before assign_precision.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseAttention(Graph& graph, PassContext& context);

}  // namespace stepscope
