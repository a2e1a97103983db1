#include "engine/passes/pattern.h"

namespace stepscope {

const Node* producerOf(const Graph& graph, ValueId value, std::string_view op) {
  const NodeId node = value ? graph.value(value).producer : NodeId{};
  return node && isOp(graph.node(node), op) ? &graph.node(node) : nullptr;
}

void becomeLike(Graph& graph, NodeId target, const Node& model, std::vector<ValueId> inputs,
                std::span<const NodeId> absorbed) {
  const Node like = model;  // it may be the target, or move when that is copied
  Node& node = graph.mutableNode(target);
  node.domain = like.domain;
  node.op = like.op;
  node.attrs = like.attrs;
  node.inputs = std::move(inputs);
  for (const NodeId id : absorbed) node.provenance.sources.push_back(id);
  node.provenance.pass = graph.pass();
  graph.logChange(target);
}

Readers::Readers(const Graph& graph) : graph_(&graph), uses_(graph.uses()), kept_(graph.valueCapacity(), false) {
  for (const ValueId out : graph.outputs()) kept_[static_cast<std::size_t>(out.index)] = true;
  for (const StateUpdate& update : graph.stateUpdates) kept_[static_cast<std::size_t>(update.next.index)] = true;
}

}  // namespace stepscope
