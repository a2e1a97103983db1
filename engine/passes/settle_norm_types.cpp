#include "engine/passes/settle_norm_types.h"

#include "engine/passes/beside.h"
#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

bool isMixed(const Graph& graph, const Node& node) {
  if (!isOp(node, "LayerNormalization") || !node.input(0) || !node.input(1) || !node.output(0)) return false;
  const DType x = graph.value(node.input(0)).type.dtype, scale = graph.value(node.input(1)).type.dtype;
  return isFloating(x) && isFloating(scale) && x != scale;
}

NodeId addCast(Graph& graph, NodeId of, ValueId x, DType to) {
  return graph.value(emitBeside(graph, of, "Cast", {x}, {{"to", static_cast<std::int64_t>(to)}})).producer;
}

}  // namespace

Status settleNormTypes(Graph& graph, PassContext& context) {
  std::vector<NodeId> order;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    if (!isMixed(graph, graph.node(id))) {
      order.push_back(id);
      continue;
    }
    const ValueId x = graph.node(id).input(0), y = graph.node(id).output(0);
    const NodeId before = addCast(graph, id, x, graph.value(graph.node(id).input(1)).type.dtype);
    graph.mutableNode(id).inputs[0] = graph.node(before).output(0);
    graph.logChange(id);
    const NodeId behind = addCast(graph, id, y, graph.value(x).type.dtype);
    putBehind(graph, y, behind, "wide");
    for (const NodeId next : {before, id, behind}) order.push_back(next);
    context.match();
  }
  if (context.result.matches > 0) graph.setOrder(std::move(order));
  return {};
}

}  // namespace stepscope
