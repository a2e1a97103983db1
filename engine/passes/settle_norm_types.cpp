#include "engine/passes/settle_norm_types.h"

#include "engine/ops/op_def.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

bool isMixed(const Graph& graph, const Node& node) {
  if (!isOp(node, "LayerNormalization") || !node.input(0) || !node.input(1) || !node.output(0)) return false;
  const DType x = graph.value(node.input(0)).type.dtype, scale = graph.value(node.input(1)).type.dtype;
  return isFloating(x) && isFloating(scale) && x != scale;
}

NodeId addCast(Graph& graph, NodeId of, const char* suffix, ValueId x, DType to) {
  const Node node = graph.node(of);
  const NodeId made =
      graph.addNode(node.name + suffix, "", "Cast", {x}, {node.name + suffix}, {{"to", static_cast<std::int64_t>(to)}});
  Node& fresh = graph.mutableNode(made);
  fresh.sinceVersion = kInternalOpset;
  fresh.phase = node.phase;
  fresh.predicates = node.predicates;
  fresh.provenance = node.provenance;
  fresh.provenance.sources = {of};
  fresh.provenance.pass = graph.pass();
  return made;
}

}  // namespace

std::size_t settleNormTypes(Graph& graph) {
  std::vector<NodeId> order;
  std::size_t settled = 0;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    if (!isMixed(graph, graph.node(id))) {
      order.push_back(id);
      continue;
    }
    const ValueId x = graph.node(id).input(0), y = graph.node(id).output(0);
    const NodeId before = addCast(graph, id, "/x", x, graph.value(graph.node(id).input(1)).type.dtype);
    graph.mutableNode(id).inputs[0] = graph.node(before).output(0);
    graph.logChange(id);
    const NodeId behind = addCast(graph, id, "/y", y, graph.value(x).type.dtype);
    const ValueId result = graph.node(behind).output(0);
    graph.replaceAllUses(y, result);
    graph.mutableNode(behind).inputs[0] = y;
    const std::string name = graph.value(y).name;
    graph.renameValue(y, name + "/wide");
    graph.renameValue(result, name);
    for (const NodeId next : {before, id, behind}) order.push_back(next);
    ++settled;
  }
  if (settled > 0) graph.setOrder(std::move(order));
  return settled;
}

}  // namespace stepscope
