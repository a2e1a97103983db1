// What a person changed in the values of a step, and what a step would leave behind.
#pragma once

#include "engine/ir/ids.h"
#include "engine/state/state.h"

namespace stepscope {

// An edit of a value by a person: logged with its place in the step, and replayed there.
struct StepEdit {
  int position = 0;  // the instruction that would run next
  ValueId value;
  Tensor contents;  // the whole value after the edit
};

struct StepOutcome {
  double loss = 0, ns = 0;  // ns: sum over the instructions
  StateSnapshot state;
};

}  // namespace stepscope
