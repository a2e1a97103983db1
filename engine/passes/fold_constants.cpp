#include "engine/passes/fold_constants.h"

namespace stepscope {
namespace {

std::size_t resolvePredicates(Graph& graph, const Inference& inference) {
  std::size_t matches = 0;
  std::unordered_map<ValueId, ValueId> replacements;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.domain == kInternalDomain && node.op == "Select") {
      if (const Tensor* condition = inference.constant(node.input(0))) {
        replacements[node.output(0)] = node.input(elementAsInt(condition->view(), 0) != 0 ? 1 : 2);
        ++matches;
      }
    }
    if (node.predicates.empty()) continue;
    std::vector<Predicate> open;
    for (const Predicate& predicate : node.predicates) {
      const Tensor* condition = inference.constant(predicate.condition);
      // A predicate that is constantly false leaves a node that nothing live reads once the Select is gone.
      if (!condition || (elementAsInt(condition->view(), 0) != 0) != predicate.expected) open.push_back(predicate);
    }
    if (open.size() == node.predicates.size()) continue;
    graph.mutableNode(id).predicates = std::move(open);
    graph.logChange(id);
    ++matches;
  }
  graph.replaceAllUses(replacements);
  return matches;
}

}  // namespace

Status foldConstants(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  context.result.matches += resolvePredicates(graph, inference);
  std::unordered_map<ValueId, ValueId> replacements;
  std::vector<std::pair<ValueId, std::string>> names;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.predicates.empty()) continue;
    for (const ValueId out : node.outputs) {
      if (!out) continue;
      const auto tensor = inference.sharedConstant(out);
      if (!tensor) continue;
      const ValueId constant = graph.addConstant(graph.value(out).name + "_folded", *tensor);
      replacements[out] = constant;
      names.emplace_back(constant, graph.value(out).name);
      context.match();
    }
  }
  graph.replaceAllUses(replacements);
  if (context.result.matches > 0) graph.removeDeadNodes();
  // The constant takes over the name that users know.
  for (const auto& [constant, name] : names)
    if (!graph.findValue(name)) graph.renameValue(constant, name);
  return {};
}

}  // namespace stepscope
