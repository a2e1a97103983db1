#include "engine/passes/eliminate_no_ops.h"

#include <algorithm>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

bool sameType(const Graph& graph, ValueId a, ValueId b) {
  const ValueType &x = graph.value(a).type, &y = graph.value(b).type;
  return x.kind == ValueKind::kTensor && y.kind == ValueKind::kTensor && x.dtype == y.dtype && x.shape && y.shape &&
         *x.shape == *y.shape;
}

bool identityPermutation(const Node& node) {
  const auto perm = node.attrs.integers("perm");
  for (std::size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  return !perm.empty();
}

bool dropoutIsIdentity(const Node& node, const Inference& inference) {
  if (node.output(1)) return false;  // somebody wants the mask
  if (!node.input(2)) return true;   // training_mode defaults to false
  const Tensor* training = inference.constant(node.input(2));
  if (training && elementAsInt(training->view(), 0) == 0) return true;
  const Tensor* ratio = inference.shapeConstant(node.input(1));
  return ratio && elementAsDouble(ratio->view(), 0) == 0.0;
}

bool handsOn(const Graph& graph, const Node& node, const Inference& inference) {
  if (!node.input(0) || !node.output(0)) return false;
  if (node.domain == kInternalDomain) return node.op == "ReduceToShape" && sameType(graph, node.input(0), node.output(0));
  if (!node.domain.empty()) return false;
  if (node.op == "Identity") return true;
  if (node.op == "Dropout") return dropoutIsIdentity(node, inference);
  if (node.op == "Cast" || node.op == "CastLike")
    return graph.value(node.input(0)).type.dtype == graph.value(node.output(0)).type.dtype;
  if (node.op == "Reshape" || node.op == "Expand" || node.op == "Tile" || node.op == "Flatten" || node.op == "Slice" ||
      node.op == "Squeeze" || node.op == "Unsqueeze" || node.op == "Pad") {
    if (!sameType(graph, node.input(0), node.output(0))) return false;
    if (node.op == "Slice") {  // the same extents with a negative step reverse the elements
      const auto steps = node.input(4) ? inference.integers(node.input(4)) : std::vector<std::int64_t>{};
      return steps && std::all_of(steps->begin(), steps->end(), [](std::int64_t s) { return s == 1; });
    }
    if (node.op == "Pad") {  // the same extents may come from cropping one side and padding the other
      const auto pads = inference.integers(node.input(1));
      return pads && std::all_of(pads->begin(), pads->end(), [](std::int64_t p) { return p == 0; });
    }
    return true;
  }
  if (node.op == "Transpose") return identityPermutation(node);
  if (node.op == "Concat" || node.op == "Sum" || node.op == "Max" || node.op == "Min" || node.op == "Mean")
    return node.inputs.size() == 1;
  return false;
}

}  // namespace

Status eliminateNoOps(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  std::vector<bool> isOutput(graph.valueCapacity(), false);
  for (const ValueId out : graph.outputs()) isOutput[static_cast<std::size_t>(out.index)] = true;
  std::unordered_map<ValueId, ValueId> replacements;
  std::vector<NodeId> dead;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!handsOn(graph, node, inference)) continue;
    if (isOutput[static_cast<std::size_t>(node.output(0).index)]) {
      context.miss(id, "its result is an output of the graph");
      continue;
    }
    // A node of a branch hands on a value that may not exist when the branch did not run; only equal predicates are safe.
    const NodeId producer = graph.value(node.input(0)).producer;
    if (!node.predicates.empty() && (!producer || graph.node(producer).predicates != node.predicates)) {
      context.miss(id, "it belongs to a branch of If, its input does not");
      continue;
    }
    replacements[node.output(0)] = node.input(0);
    dead.push_back(id);
    context.match();
  }
  graph.replaceAllUses(replacements);
  graph.removeNodes(dead);
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
