// The floating inputs through which an op passes no gradient although it has a rule for others, each with the reason. An op
// without any rule says why in OpDef::noGradientReason.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "engine/ops/op_def.h"

namespace stepscope {

struct StopInput {
  std::string_view op;  // of whichever domain
  std::size_t input = 0;
  std::string_view name, reason;
  // Whether a trained value behind it loses something: the result does depend on the contents of this input.
  bool loses = true;
};

std::span<const StopInput> stopInputs();
// The entry of input i of the op, or nullptr.
const StopInput* findStopInput(const OpDef& op, std::size_t input);

}  // namespace stepscope
