// SPDX-License-Identifier: GPL-3.0-or-later
// The norm of all gradients of a step together, from the statistics that it recorded.
#pragma once

#include "engine/snapshot/run.pb.h"

namespace stepscope {

// Negative when the step recorded no gradients, or not one for each parameter; NaN when one of them holds what is not finite.
double gradientNorm(const snapshot::StepRecord& step);

}  // namespace stepscope
