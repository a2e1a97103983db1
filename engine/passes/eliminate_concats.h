// A Slice or Split that takes back what a Concat joined reads the part itself.
//
//   y = Concat(a, b);  Slice(y, where b lies) → b        Split(y, as it was joined) → a, b
//
// The Concat goes when nothing else reads it. Runs before merge_slices, which makes one Split of slices.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status eliminateConcats(Graph& graph, PassContext& context);

}  // namespace stepscope
