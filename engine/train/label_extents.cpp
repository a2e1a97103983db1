#include "engine/train/label_extents.h"

#include <algorithm>

#include "engine/passes/infer.h"

namespace stepscope {
namespace {

bool isOfLoss(const Node& node) { return node.name.starts_with("loss/") && node.provenance.modulePath == "loss"; }

const Node* readerOf(const Graph& graph, const UseTable& uses, ValueId value) {
  for (const Use& use : uses.of(value))
    if (use.input != SIZE_MAX && isOfLoss(graph.node(use.node))) return &graph.node(use.node);
  return nullptr;
}

}  // namespace

ValueId comparedOutput(const Graph& graph, ValueId input) {
  const UseTable uses = graph.uses();
  const Node* reader = readerOf(graph, uses, input);
  if (reader != nullptr && reader->op == "Reshape") reader = readerOf(graph, uses, reader->output(0));
  if (reader == nullptr || reader->inputs.size() < 2) return {};
  ValueId output = reader->input(0);
  // Scores of [B, S, V] are flattened too.
  const NodeId producer = graph.value(output).producer;
  if (producer && isOfLoss(graph.node(producer)) && graph.node(producer).op == "Reshape")
    output = graph.node(producer).input(0);
  return output;
}

std::optional<Dims> labelExtents(const Graph& graph, const Operators& operators, ValueId labels,
                                 const std::map<std::string, Dims>& inputs, const Batch& integers) {
  const ValueId output = comparedOutput(graph, labels);
  if (!output || !graph.value(labels).type.shape) return std::nullopt;
  Graph bound = graph;
  for (const auto& [name, dims] : inputs) bound.mutableValue(bound.findValue(name)).type.shape = shapeOf(dims);
  Inference inference(bound, operators);
  for (const auto& [name, tensor] : integers.arrays)
    inference.setConstant(bound.findValue(name), std::make_shared<const Tensor>(tensor));
  for (const NodeId id : bound.order()) {
    if (isOfLoss(bound.node(id))) break;
    if (!inference.inferNode(id)) return std::nullopt;
  }
  const auto shape = inference.shape(output);
  const auto dims = shape ? knownDims(*shape) : std::nullopt;
  if (!dims) return std::nullopt;
  const std::size_t rank = graph.value(labels).type.shape->size();
  if (dims->size() == rank) return dims;
  // Labels of cross entropy lack the axis of the classes: the last of up to three, else the second.
  if (dims->size() != rank + 1) return std::nullopt;
  Dims without = *dims;
  without.erase(without.begin() + (dims->size() <= 3 ? static_cast<std::ptrdiff_t>(dims->size()) - 1 : 1));
  return without;
}

}  // namespace stepscope
