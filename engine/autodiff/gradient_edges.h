// Where gradients flow. One edge predicate (differentiableEdge) decides everywhere: forward reach from the trained values,
// backward reach from the loss, which inputs a rule is asked for, the missing rules, and the report of cut edges.
//
// Reach is told as one flag per value id, for ids below Graph::valueCapacity().
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

// Values reachable from `from` along differentiable edges.
std::vector<bool> forwardReach(const Graph& graph, const std::vector<ValueId>& from, const OpRegistry& ops);

// Values from which `loss` is reachable along differentiable edges.
std::vector<bool> backwardReach(const Graph& graph, ValueId loss, const OpRegistry& ops);

// Which of `candidates` reach the loss through differentiable edges.
std::vector<bool> reachesLoss(const Graph& graph, ValueId loss, const std::vector<ValueId>& candidates,
                              const OpRegistry& ops);

// Every edge at which a gradient stops; `forward` reaches from `trained`, `backward` to the loss.
std::vector<CutEdge> cutEdges(const Graph& graph, const std::vector<bool>& forward, const std::vector<bool>& backward,
                              const std::vector<ValueId>& trained, const OpRegistry& ops);

// All missing rules between `trained` and `loss` at once, before anything is built.
std::vector<MissingRule> checkGradientRules(const Graph& graph, ValueId loss, const std::vector<ValueId>& trained,
                                            const OpRegistry& ops);

}  // namespace stepscope
