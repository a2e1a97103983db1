#include "engine/passes/fuse_relu_gradient.h"

#include <algorithm>

#include "engine/ops/op_def.h"

namespace stepscope {
namespace {

bool isZero(const Inference& inference, ValueId id) {
  const Tensor* tensor = id ? inference.constant(id) : nullptr;
  return tensor && tensor->elements() == 1 && isFloating(tensor->dtype()) && elementAsDouble(tensor->view(), 0) == 0;
}

}  // namespace

Status fuseReluGradient(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  for (const NodeId id : graph.order()) {
    const Node& where = graph.node(id);
    if (!where.domain.empty() || where.op != "Where" || !isZero(inference, where.input(1))) continue;
    const NodeId producer = graph.value(where.input(0)).producer;
    if (!producer) continue;
    const Node& mask = graph.node(producer);
    if (!mask.domain.empty() || mask.op != "LessOrEqual" || !isZero(inference, mask.input(1))) continue;
    const ValueType &y = graph.value(mask.input(0)).type, &dy = graph.value(where.input(2)).type;
    std::string condition;
    if (where.predicates != mask.predicates)
      condition = "the mask belongs to another branch of If";
    else if (y.dtype != dy.dtype || !y.shape || y.shape != dy.shape)
      condition = "y is " + y.text() + ", dy is " + dy.text() + "; expected the same";
    if (!condition.empty()) {
      context.miss(id, condition);
      continue;
    }
    Node& node = graph.mutableNode(id);
    node.provenance.sources.push_back(producer);
    node.provenance.pass = graph.pass();
    node.domain = kInternalDomain;
    node.op = "ReluGrad";
    node.inputs = {where.input(2), mask.input(0)};
    node.attrs = {};
    graph.logChange(id);
    context.match();
  }
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
