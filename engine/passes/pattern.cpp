#include "engine/passes/pattern.h"

namespace stepscope {

const Node* producerOf(const Graph& graph, ValueId value, std::string_view op) {
  const NodeId node = value ? graph.value(value).producer : NodeId{};
  return node && isOp(graph.node(node), op) ? &graph.node(node) : nullptr;
}

Readers::Readers(const Graph& graph) : graph_(&graph), uses_(graph.uses()), kept_(graph.valueCapacity(), false) {
  for (const ValueId out : graph.outputs()) kept_[static_cast<std::size_t>(out.index)] = true;
  for (const StateUpdate& update : graph.stateUpdates) kept_[static_cast<std::size_t>(update.next.index)] = true;
}

}  // namespace stepscope
