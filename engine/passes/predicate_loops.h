// Writes out Loop and Scan whose number of iterations is computed: as many iterations as the option loop.max_iterations
// allows, each under the predicate that it runs, as the branches of If are. Iteration k runs where all before it did and
// the condition and the number of iterations allow it; a carried value is Select(runs, what the iteration gave, what it had
// before), and ConcatTaken puts the collected values of those together that ran. LoopBound, on everything that leaves the
// loop, is the error of a loop that would go on beyond the last iteration written out.
//
// A number of iterations that follows from the extents of the batch (Keras, TensorFlow: the length of a sequence) is known
// once a batch has bound them: fold_constants of phase `specialise` then removes the predicates of the iterations that run
// and the nodes of the others, so that the plan of every signature has exactly its iterations. What the data decide
// (decoders) stays under predicates: the plan has memory for every iteration whose extents are known, values whose extents
// change from one iteration to the next live in the dynamic region, and an iteration that does not run costs one test per
// node. The gradient is that of any other graph: the iterations that ran, last to first.
//
// A part of unroll_loops, which calls it where a round found no loop of known count, and no If that lower_if could settle is
// left: what can be settled without predicates is settled first. Loops that follow from one written out just now wait for
// the next round, which may know their counts. Matches are loops. Blocked: a graph that would grow beyond
// kMostUnrolledNodes with fewer than two iterations of a loop, a loop that never ends. Errors: those of unroll_loops.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

inline constexpr std::string_view kPredicateLoopsPass = "predicate_loops";  // edits and nodes bear it

// Most iterations of a loop whose number is computed, where no option says.
inline constexpr std::int64_t kMostLoopIterations = 128;

Status predicateLoops(Graph& graph, PassContext& context);

}  // namespace stepscope
