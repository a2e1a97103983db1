#include "engine/build/step_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace stepscope {

bool isStepInput(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"stepscope.first_micro", "stepscope.update", "stepscope.loss_scale",
                                                   "stepscope.loss_unscale", "stepscope.learning_rate"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("stepscope.learning_rate.") ||
         name.starts_with("stepscope.update.");
}

Status checkStepInputs(const Graph& imported) {
  for (const ValueId id : imported.inputs())
    if (const std::string& name = imported.value(id).name; isStepInput(name))
      return fail(
          ErrorCode::kUnsupported,
          fmt::format("input '{}': a training step feeds inputs of this name itself, so data does not reach it; expected "
                      "another name in the file",
                      name));
  return {};
}

}  // namespace stepscope
