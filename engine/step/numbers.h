// Numbers of a step that are not finite: whether its loss, its gradients and the watched values hold one, and where the
// first came from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/exec/executor.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope {

class Stepper;

// What a run looks for.
struct NumberWatch {
  bool nan = false, inf = false;
  bool everywhere = false;  // in every value of forward and backward pass
  bool stop = false;        // the step is taken back to be walked through, and stands where the number came from
  bool any() const { return nan || inf; }
  // "NaN", "Inf", or nothing when the number is none that is looked for.
  std::string find(double number) const;
};

// Euclidean norm of all gradients together, before clipping, when the next instruction is `position`; nothing when one of
// them is not in memory there. Sums are f64, in an order that does not depend on the number of threads. `squares`: of
// gradients whose memory has been given away.
std::optional<double> gradientNormAt(const Executor& executor, const std::vector<ValueId>& gradients, int position,
                                     const std::map<ValueId, double>& squares);

// Whether `made` becomes a parameter, a running statistic or another state: its axes are not those of the batch.
bool isNextState(const Graph& graph, ValueId made);

// Of an output of `instruction`, the one that ran last, which holds what `watch` looks for: code "nan" or "inf"; `value` and
// `sample` name the row of the batch where the batch brought it in, else the output and its first row. When the instruction
// made none, the alert tells `otherwise` of the loss.
snapshot::Alert numberAlert(const Stepper& stepper, const NumberWatch& watch, int instruction, const std::string& otherwise);

}  // namespace stepscope
