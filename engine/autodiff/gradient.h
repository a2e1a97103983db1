// Phase `gradient`: extends the graph by the backward phase.
//
// One edge predicate (differentiableEdge) decides everywhere: forward reach from the trained values, backward reach from the
// loss, which inputs a rule is asked for, and the report of cut edges. Rules come from the op files; contributions to one
// value are summed by one node in the order in which they were emitted, so the result is the same on every run.
//
// Keys (engine/ir/keys.h): what a rule emits up to setGradient(i), and since the call before, counts as the gradient of
// input i, in the order of emission; Graph::gradients lists d loss / d value for every value that has one.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/passes/infer.h"

namespace stepscope {

// Whether a gradient may flow from output `output` to input `input` of the node: both are floats, the op's table allows it,
// and the op has a rule (or should have one, or is unknown: checkGradientRules reports those).
bool differentiableEdge(const Graph& graph, const Node& node, std::size_t input, std::size_t output, const OpRegistry& ops);

// A node on the way from a trained value to the loss that cannot be differentiated.
struct MissingRule {
  NodeId node;
  std::string reason;              // "no gradient rule for 'Foo'", "unknown operator 'my.domain.Foo'"
  std::vector<NodeId> pathToLoss;  // nodes from this one (excluded) to the loss
};

// An edge where the gradient stops although a trained value lies before it; for the views.
struct CutEdge {
  NodeId node;
  std::size_t input = 0;
  std::string reason;  // "integer result", "stop edge", …
  // Trained values that lead here and lose a gradient that the loss depends on; empty where the slope is zero anyway, or the
  // model detaches the value itself.
  std::vector<ValueId> trained;
};

struct GradientRequest {
  ValueId loss;  // scalar or [1], float
  std::vector<ValueId> trained;
  double seed = 1;  // d loss / d loss: 1, or 1 / N when N micro steps are accumulated
  ValueId scale;    // a float32 scalar that the seed is multiplied by; absent: 1
};

struct GradientReport {
  std::vector<ValueId> gradients;  // per trained value; invalid where the loss does not depend on it
  std::vector<CutEdge> cuts;
};

// All missing rules at once, before anything is built.
std::vector<MissingRule> checkGradientRules(const Graph& graph, const GradientRequest& request, const OpRegistry& ops);

// Which of `candidates` reach the loss through differentiable edges.
std::vector<bool> reachesLoss(const Graph& graph, ValueId loss, const std::vector<ValueId>& candidates,
                              const OpRegistry& ops);

// Emits the backward phase. `inference` must be up to date; it is extended with the new values.
Result<GradientReport> buildGradient(Graph& graph, Inference& inference, const GradientRequest& request);

}  // namespace stepscope
