#include "engine/passes/select_dead_rows.h"

#include <limits>

namespace stepscope {
namespace {

const Node* throughCasts(const Graph& graph, ValueId& value) {
  while (const Node* cast = producerOf(graph, value, "Cast")) value = cast->input(0);
  const NodeId producer = graph.value(value).producer;
  return producer ? &graph.node(producer) : nullptr;
}

// Whether the condition holds in rows where every score is -inf, and in no other row whose softmax is finite.
bool saysDeadRow(const Graph& graph, const Inference& inference, ValueId condition, const Node& softmax) {
  if (const Node* isNaN = producerOf(graph, condition, "IsNaN")) return isNaN->input(0) == softmax.output(0);
  const Node* all = throughCasts(graph, condition);
  if (all == nullptr || !isOp(*all, "ReduceMin")) return false;
  ValueId each = all->input(0);
  const Node* masked = throughCasts(graph, each);
  if (masked == nullptr || !isOp(*masked, "Equal")) return false;
  for (const std::size_t i : {0u, 1u})
    if (masked->input(i) == softmax.input(0)) {
      // Exporters store the -inf as an initializer; whatever a person edits it to, the Where selects.
      const Tensor* number = inference.shapeConstant(masked->input(1 - i));
      return number != nullptr && number->elements() == 1 && isFloating(number->dtype()) &&
             elementAsDouble(number->view(), 0) == -std::numeric_limits<double>::infinity();
    }
  return false;
}

}  // namespace

ValueId selectedWithoutDeadRows(const Graph& graph, const Inference& inference, const Readers& readers,
                                const Node& softmax) {
  const ValueId s = softmax.output(0);
  if (readers.isKept(s)) return {};
  ValueId selected;
  for (const Use& use : readers.of(s)) {
    if (use.input == SIZE_MAX) return {};
    const Node& reader = graph.node(use.node);
    if (isOp(reader, "IsNaN") || reader.phase == Phase::kBackward) continue;
    if (!isOp(reader, "Where") || use.input != 2 || selected || reader.predicates != softmax.predicates ||
        !saysDeadRow(graph, inference, reader.input(0), softmax))
      return {};
    selected = reader.output(0);
  }
  return selected;
}

Status selectDeadRows(Graph& graph, PassContext& context) {
  const Readers readers(graph);
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if (node.domain != kInternalDomain || node.op != "SoftmaxGrad") continue;
    const Node* softmax = producerOf(graph, node.input(1), "Softmax");
    const ValueId selected =
        softmax != nullptr ? selectedWithoutDeadRows(graph, context.inference, readers, *softmax) : ValueId{};
    if (!selected || graph.value(selected).type.dtype != graph.value(node.input(1)).type.dtype) continue;
    graph.mutableNode(id).inputs[1] = selected;
    graph.logChange(id);
    context.match();
  }
  return {};
}

}  // namespace stepscope
