#include "engine/passes/fuse_gather_grad.h"

#include "engine/passes/pattern.h"

namespace stepscope {

Status fuseGatherGrad(Graph& graph, PassContext& context) {
  const Readers readers(graph);
  std::vector<NodeId> gone;
  const std::vector<NodeId> order = graph.order();
  for (const NodeId id : order) {
    const Node& sum = graph.node(id);
    if ((!isOp(sum, "Add") && !isOp(sum, "Sum")) || sum.inputs.size() != 2) continue;
    for (const std::size_t side : {1u, 0u}) {
      const ValueId gradient = sum.input(side), addend = sum.input(1 - side);
      const NodeId producer = graph.value(gradient).producer;
      if (!producer || graph.node(producer).domain != kInternalDomain || graph.node(producer).op != "GatherGrad") continue;
      const Node gather = graph.node(producer);
      std::string condition;
      if (gather.input(3))
        condition = "it is added to something already";
      else if (!readers.single(gradient))
        condition = "the gradient is read alone too";
      else if (gather.predicates != sum.predicates || gather.phase != sum.phase)
        condition = "the sum belongs to another phase or branch of If";
      else if (graph.value(addend).type.shape != graph.value(gradient).type.shape || addend == gradient)
        condition = "what it is added to has other extents";
      if (!condition.empty()) {
        context.miss(id, condition);
        continue;
      }
      becomeLike(graph, id, gather, {gather.input(0), gather.input(1), gather.input(2), addend}, {{producer}});
      gone.push_back(producer);
      context.match();
      break;
    }
  }
  graph.removeNodes(gone);
  return {};
}

}  // namespace stepscope
