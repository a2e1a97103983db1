// An edit of a value by the user: logged with the place in the step, and replayed there.
#pragma once

#include "engine/ir/ids.h"
#include "kernels/tensor.h"

namespace stepscope {

struct SessionEdit {
  int position = 0;  // the instruction that would run next
  ValueId value;
  Tensor contents;  // the whole value after the edit
};

}  // namespace stepscope
