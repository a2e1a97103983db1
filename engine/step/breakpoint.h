// When a run stops: conditions on the instruction that comes next, and on the values that one has just made.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/snapshot/worker.pb.h"
#include "kernels/status.h"

namespace stepscope {

class Executor;

// "VALUE FIELD OP NUMBER", e.g. "loss max > 10", "h.0.act nan > 0". Fields: min max mean std norm zeros nan inf value.
// It is tested where an instruction makes the value; of a parameter or another state, where it makes the next contents.
struct ValuePredicate {
  std::string value, field, op;
  double number = 0;
};
Result<ValuePredicate> parsePredicate(const std::string& text);
bool holdsFor(const ValuePredicate& predicate, const TensorView& contents);
// Whether `made` is the value of that name, or the next contents of the state of that name.
bool isNamed(const Graph& graph, ValueId made, const std::string& name);

// Reason to stop before instruction i (node, op, phase, instruction breakpoints); empty when there is none.
std::string breakBefore(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int instruction,
                        int* id);

// What a walk knows of numbers that are not finite, by value id.
struct KnownNumbers {
  std::vector<bool> expectedInf;  // infinities come from an infinite input of the instruction, such as an attention mask
  std::vector<bool> told;         // a run has stopped for them, or for what the value was computed from
  void forget(std::size_t values) {
    expectedInf.assign(values, false);
    told.assign(values, false);
  }
};

// Reason to stop after instruction i, which has computed: NaN, a new infinity, a predicate on one of its outputs. A run
// stops once for one cause: not for what follows from numbers that it has stopped for. Keeps `known` up to date.
std::string breakAfter(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int instruction,
                       KnownNumbers& known, int* id);

// Reason to stop after instruction i: a predicate on a value that no instruction of the plan makes, which i is the first to
// read. For plans whose parameters somebody else changes, between two steps.
std::string breakOnRead(const Executor& executor, const std::vector<snapshot::Breakpoint>& breakpoints, int instruction,
                        int* id);

}  // namespace stepscope
