// When the memory of a value is written by somebody else: until then its contents can be read.
#pragma once

#include <vector>

#include "engine/plan/plan.h"

namespace stepscope {

// The first instruction after the one that makes the value, or reads state, that writes over its memory.
struct Overwritten {
  int instruction = -1;  // -1: nobody writes over it in this step
  int by = -1;           // the buffer that is written; a workspace where that is one
};

// By buffer. A view has the contents of its input and loses them with it; an output in place of an input writes over it.
// Instructions under conditions of If count as if they ran. Needs the offsets of a packed plan. O(n log n).
std::vector<Overwritten> overwritten(const ExecutionPlan& plan);

}  // namespace stepscope
