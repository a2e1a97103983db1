#include "engine/passes/transpose_to_reshape.h"

#include <algorithm>

#include "engine/passes/pattern.h"

namespace stepscope {

Status transposeToReshape(Graph& graph, PassContext& context) {
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if (!isOp(node, "Transpose")) continue;
    const auto& shape = graph.value(node.input(0)).type.shape;
    const auto dims = shape ? knownDims(*shape) : std::nullopt;
    if (!dims) {
      context.miss(id, "its extents are not known");
      continue;
    }
    std::vector<std::int64_t> perm = node.attrs.integers("perm");
    for (std::size_t axis = dims->size(); perm.size() < dims->size(); --axis)  // absent: the axes in reverse
      perm.push_back(static_cast<std::int64_t>(axis) - 1);
    if (std::ranges::find(*dims, 1) == dims->end()) continue;  // it moves elements, or nothing
    std::vector<std::int64_t> moved, target;
    for (const std::int64_t axis : perm) {
      const std::int64_t extent = (*dims)[static_cast<std::size_t>(axis)];
      target.push_back(extent);
      if (extent != 1) moved.push_back(axis);
    }
    if (!std::ranges::is_sorted(moved)) {
      context.miss(id, "it moves axes of more than one element");
      continue;
    }
    const std::vector<ValueId> inputs{node.input(0), graph.addConstant("shape", Tensor::ints(target))};
    Node& reshape = graph.mutableNode(id);
    reshape.op = "Reshape";
    reshape.inputs = inputs;
    reshape.attrs = {};
    if (std::ranges::find(target, 0) != target.end()) reshape.attrs.set("allowzero", std::int64_t{1});
    reshape.provenance.pass = graph.pass();
    graph.logChange(id);
    context.match();
  }
  return {};
}

}  // namespace stepscope
