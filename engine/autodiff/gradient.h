// Phase `gradient`: extends the graph by the backward phase.
//
// Where gradients flow is said in gradient_edges.h. Rules come from the op files; contributions to one value are summed by
// one node in the order in which they were emitted, so the result is the same on every run.
//
// Keys (engine/ir/keys.h): what a rule emits up to setGradient(i), and since the call before, counts as the gradient of
// input i, in the order of emission; Graph::gradients lists d loss / d value for every value that has one.
#pragma once

#include <utility>
#include <vector>

#include "engine/autodiff/gradient_edges.h"
#include "engine/ir/graph.h"
#include "engine/passes/infer.h"

namespace stepscope {

struct GradientRequest {
  ValueId loss;  // scalar or [1], float
  std::vector<ValueId> trained;
  double seed = 1;  // d loss / d loss: 1, or 1 / N when N micro steps are accumulated
  ValueId scale;    // a float32 scalar that the seed is multiplied by; absent: 1
  // Values and the gradients that they begin with, in the place of the seed. The loss then says only where gradients flow.
  std::vector<std::pair<ValueId, ValueId>> outer;
  Cancel cancel = {};
};

struct GradientReport {
  std::vector<ValueId> gradients;  // per trained value; invalid where the loss does not depend on it
  std::vector<CutEdge> cuts;
};

// Emits the backward phase. `inference` must be up to date; it is extended with the new values. Errors: those of the rules;
// kCancelled, with the graph half done.
Result<GradientReport> buildGradient(Graph& graph, Inference& inference, const GradientRequest& request);

}  // namespace stepscope
