// Writes out Loop and Scan whose number of iterations is known before the step: the nodes of the body once per iteration,
// the iteration number a constant, carried values handed from one to the next, scan outputs put together by Concat. Likewise
// SequenceMap over a sequence whose elements one node lists, once per element.
//
// Runs after an `infer`, which tells the counts, and before the next one; branches that stood in a body are for lower_if
// after it, sequences for lower_sequences. A count may follow from a loop before it or around it, so rounds repeat while
// they make progress; what is left then goes to predicate_loops. A condition that the body computes is followed iteration by
// iteration as long as inference knows it. A loop is blocked while its count or condition is not known, when it never runs
// and a scan output is read, and when the graph would grow beyond kMostUnrolledNodes. Errors: kInvalidArgument for a body
// whose inputs and outputs do not fit the node.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

inline constexpr std::size_t kMostUnrolledNodes = 1 << 16;

Status unrollLoops(Graph& graph, PassContext& context);

}  // namespace stepscope
