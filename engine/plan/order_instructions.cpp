#include "engine/plan/order_instructions.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/ops/op_def.h"
#include "engine/plan/early_collectives.h"

namespace stepscope {
namespace {

// Collectives of the backward phase as soon as what they send is there, so that it need not be kept; those that send state
// stay in front of their first reader, so that what they bring need not be. One after another in graph order, which is the
// same on all ranks, while the order of the nodes around them may differ.
std::vector<NodeId> withEarlyCollectives(const Graph& graph, const OpRegistry& ops, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> collectives, order;
  for (const NodeId id : nodes) {
    const OpDef* op = ops.find(graph.node(id));
    if (!op || op->sideEffect != SideEffect::kCollective || graph.node(id).phase != Phase::kBackward) continue;
    collectives.push_back(id);
  }
  if (collectives.empty()) return nodes;
  std::set<NodeId> apart(collectives.begin(), collectives.end()), missing;
  for (const NodeId id : nodes) missing.insert(id);
  std::size_t next = 0;
  const auto ready = [&](NodeId id) {
    const auto producer = [&](ValueId input) { return input ? graph.value(input).producer : NodeId{}; };
    const Few<ValueId>& inputs = graph.node(id).inputs;
    return std::ranges::any_of(inputs, [&](ValueId input) { return producer(input).valid(); }) &&
           std::ranges::none_of(inputs, [&](ValueId input) { return missing.contains(producer(input)); });
  };
  const auto put = [&](NodeId id) {
    order.push_back(id);
    missing.erase(id);
  };
  for (const NodeId id : nodes) {
    if (apart.contains(id)) {
      // Its own place: what comes behind may read it.
      while (missing.contains(id)) put(collectives[next++]);
      continue;
    }
    put(id);
    while (next < collectives.size() && ready(collectives[next])) put(collectives[next++]);
  }
  return order;
}

}  // namespace

bool accumulates(const Node& node) { return node.domain == kInternalDomain && node.op == "Accumulate"; }

std::vector<Instruction> orderedInstructions(const Graph& graph, const OpRegistry& ops, bool overlap) {
  const auto stageOf = [](const Node& node) { return node.phase == Phase::kOptimizer ? 2 : accumulates(node) ? 1 : 0; };
  std::vector<Instruction> instructions;
  instructions.reserve(graph.order().size());
  for (const int stage : {0, 1, 2}) {
    std::vector<NodeId> nodes;
    for (const NodeId id : graph.order())
      if (stageOf(graph.node(id)) == stage) nodes.push_back(id);
    if (stage == 0) nodes = withEarlyCollectives(graph, ops, nodes);
    if (overlap && stage != 1) nodes = delayCollectives(graph, ops, nodes, stage == 0);
    for (const NodeId id : nodes) {
      Instruction instruction;
      instruction.node = id;
      instruction.phase = graph.node(id).phase;
      instruction.updateEntry = stage == 2;
      instructions.push_back(std::move(instruction));
    }
  }
  return instructions;
}

}  // namespace stepscope
