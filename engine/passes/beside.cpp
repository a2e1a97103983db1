#include "engine/passes/beside.h"

#include <utility>

#include "engine/ops/op_def.h"

namespace stepscope {

NodeId addBeside(Graph& graph, NodeId of, std::string_view op, std::vector<ValueId> inputs, std::vector<std::string> outputs,
                 Attributes attributes, std::string_view domain) {
  const NodeId made = graph.addNode(graph.node(of).name + "/" + std::string(op), std::string(domain), std::string(op),
                                    std::move(inputs), std::move(outputs), std::move(attributes));
  const Node& whole = graph.node(of);
  Node& part = graph.mutableNode(made);
  part.sinceVersion = kInternalOpset;
  part.phase = whole.phase;
  part.predicates = whole.predicates;
  part.provenance = whole.provenance;
  part.provenance.sources = {of};
  part.provenance.pass = graph.pass();
  return made;
}

ValueId emitBeside(Graph& graph, NodeId of, std::string_view op, std::vector<ValueId> inputs, Attributes attributes,
                   std::string_view domain) {
  std::string name = graph.node(of).name + "/" + std::string(op);
  return graph.node(addBeside(graph, of, op, std::move(inputs), {std::move(name)}, std::move(attributes), domain)).output(0);
}

void Replacements::replace(ValueId from, ValueId to) {
  values_[from] = to;
  names_.emplace_back(to, graph_.value(from).name);
}

void Replacements::apply() {
  graph_.replaceAllUses(values_);
  graph_.removeNodes(removed_);
  for (auto& [value, name] : names_) graph_.renameValue(value, std::move(name));
}

ValueId takeOver(Graph& graph, NodeId node, ValueId result, std::string_view suffix) {
  const NodeId former = graph.value(result).producer;
  const auto place = static_cast<std::size_t>(graph.value(result).outputIndex);
  graph.moveOutput(result, node, 0);
  return graph.addOutput(former, graph.value(result).name + "_" + std::string(suffix), place);
}

void putBehind(Graph& graph, ValueId y, NodeId reader, std::string_view suffix) {
  const std::vector<ValueId> inputs = graph.node(reader).inputs;
  const ValueId result = graph.node(reader).output(0);
  graph.replaceAllUses(y, result);
  graph.mutableNode(reader).inputs = inputs;
  const std::string name = graph.value(y).name;
  graph.renameValue(y, name + "/" + std::string(suffix));
  graph.renameValue(result, name);
}

}  // namespace stepscope
