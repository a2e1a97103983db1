#include "engine/passes/drop_zero_bias.h"

#include "engine/passes/pattern.h"

namespace stepscope {
namespace {

// The value whose elements are all that is in `value`, behind ops that repeat or retype them.
ValueId contentsOf(const Graph& graph, ValueId value) {
  for (;;) {
    const Node* maker = nullptr;
    for (const char* op : {"Expand", "Cast", "CastLike", "Identity", "Reshape"})
      if (maker == nullptr) maker = producerOf(graph, value, op);
    if (maker == nullptr) return value;
    value = maker->input(0);
  }
}

bool isZeros(const Graph& graph, const Inference& inference, ValueId bias) {
  const ValueId contents = contentsOf(graph, bias);
  if (graph.value(contents).role == ValueRole::kInitializer) return false;
  const Tensor* known = inference.constant(contents);
  if (known == nullptr || !isFloating(known->dtype())) return false;
  for (std::int64_t i = 0; i < known->elements(); ++i)
    if (elementAsDouble(known->view(), i) != 0) return false;
  return true;
}

}  // namespace

Status dropZeroBias(Graph& graph, PassContext& context) {
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if ((!isOp(node, "Conv") && !isOp(node, "ConvTranspose")) || !node.input(2) ||
        !isZeros(graph, context.inference, node.input(2)))
      continue;
    graph.mutableNode(id).inputs.resize(2);
    graph.logChange(id);
    context.match();
  }
  return {};
}

}  // namespace stepscope
