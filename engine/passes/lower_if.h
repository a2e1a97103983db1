// Puts both branches of every If into the graph: nodes of a branch get a predicate (condition, expected), and the If becomes
// one Select per output, so exactly one branch runs and the planner may share memory between them.
//
// Runs after `inline` (a function may hold an If) and raise_opset, before `infer`. An If whose condition is constant keeps
// both branches here; fold_constants later removes the one that never runs.
// An If in the body of a loop waits until unroll_loops has written the body out. So does one whose branches deal with
// sequences or optionals: which of them runs often follows from ranks (torch.hstack), and the other would not fit. Then,
// where `infer` knows the condition, the branch that runs stands in its place. Errors: an If without two branches of equal
// output count.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are nodes of If.
Status lowerIf(Graph& graph, PassContext& context);

// The same for those that waited; after an `infer`.
Status lowerRemainingIf(Graph& graph, PassContext& context);

}  // namespace stepscope
