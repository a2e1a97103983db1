// Scaled gradients: sums of them that meet another scale, and what people are told of those that overflow or vanish
// (engine/build/loss_scale.h has the rule).
#pragma once

#include "engine/build/builder.h"
#include "engine/exec/executor.h"
#include "engine/step/step_context.h"

namespace stepscope {

// A sum carries the loss scale of its round, which another set-up may change in the middle of it: sums come to the scale of
// the coming step. Before anything of the step is kept. Errors: those of State::bring.
Status settleSums(const Executor& executor, const SymbolicStep& step, StepContext& context);

// An alert for an update that was skipped: the first gradient that overflowed, in the order of the step, or the parameter
// that is not finite itself. `next`: the loss scale from here on. To be called before the step is committed.
void tellOfSkippedUpdate(const Executor& executor, const SymbolicStep& step, StepContext& context, const LossScale& next);

// Whether every gradient of the step is zero at a loss scale below 1; an alert, unless they were so `before`.
bool tellOfVanishedGradients(const Executor& executor, const SymbolicStep& step, StepContext& context, bool before);

}  // namespace stepscope
