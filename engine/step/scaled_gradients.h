// What people are told of scaled gradients that overflow or vanish (engine/build/loss_scale.h has the rule).
#pragma once

#include "engine/build/builder.h"
#include "engine/exec/executor.h"
#include "engine/step/step_context.h"

namespace stepscope {

// An alert for an update that was skipped: the first gradient that overflowed, in the order of the step, or the parameter
// that is not finite itself. `next`: the loss scale from here on. To be called before the step is committed.
void tellOfSkippedUpdate(const Executor& executor, const SymbolicStep& step, StepContext& context, const LossScale& next);

// Whether every gradient of the step is zero at a loss scale below 1; an alert, unless they were so `before`.
bool tellOfVanishedGradients(const Executor& executor, const SymbolicStep& step, StepContext& context, bool before);

}  // namespace stepscope
