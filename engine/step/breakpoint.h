// When a run stops: conditions on the instruction that comes next, and on the values that one has just made.
#pragma once

#include <string>
#include <vector>

#include "engine/snapshot/worker.pb.h"
#include "kernels/status.h"

namespace stepscope {

class Executor;

// "VALUE FIELD OP NUMBER", e.g. "loss max > 10", "h.0.act nan > 0". Fields: min max mean std norm zeros nan inf value.
struct ValuePredicate {
  std::string value, field, op;
  double number = 0;
};
Result<ValuePredicate> parsePredicate(const std::string& text);

// Reason to stop before instruction i (node, op, phase, instruction breakpoints); empty when there is none.
std::string breakBefore(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int instruction,
                        int* id);

// Reason to stop after instruction i: NaN, a new infinity, a predicate on one of its outputs. `expectedInf[v]` is kept up to
// date: true for values whose infinities come from an infinite input of the instruction, such as an attention mask.
std::string breakAfter(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int instruction,
                       std::vector<bool>& expectedInf, int* id);

}  // namespace stepscope
