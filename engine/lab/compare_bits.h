// One micro step compared with itself.
#pragma once

#include "engine/snapshot/worker.pb.h"
#include "engine/step/stepper.h"

namespace stepscope {

// Runs the micro step twice from the present state and compares every value that the plan keeps, as soon as it is made;
// commits nothing. Errors are those of running; kCancelled after a cancel.
Result<snapshot::CompareReply> compareBits(Stepper& stepper, StepContext& context, const Batch& batch);

}  // namespace stepscope
