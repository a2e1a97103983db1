// Inputs that a training step feeds itself, by name.
#pragma once

#include <string_view>

#include "engine/ir/graph.h"

namespace stepscope {

// Whether `name` is that of a scalar which the session writes with every micro step (optimizer.h, loss_scale.h), so that no
// data feeds it: "stepscope.learning_rate", "stepscope.learning_rate.<group>", "stepscope.update" and others.
bool isStepInput(std::string_view name);

// kUnsupported where an imported model brings an input of such a name: data would not reach it.
Status checkStepInputs(const Graph& imported);

}  // namespace stepscope
