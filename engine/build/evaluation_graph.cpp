#include "engine/build/evaluation_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/class_loss.h"

namespace stepscope {
namespace {

Status dropOutputs(Graph& graph, const UseTable& uses, NodeId id, std::string_view purpose, std::string_view what) {
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    const auto& roots = graph.outputs();
    if (!uses.of(outputs[i]).empty() || std::ranges::find(roots, outputs[i]) != roots.end())
      return fail(ErrorCode::kUnsupported, fmt::format("{}: {}: {}", purpose, graph.node(id).label(), what));
    graph.removeValue(outputs[i]);
  }
  graph.mutableNode(id).outputs.resize(1);
  return {};
}

const Node* producerOf(const Graph& graph, ValueId value) {
  const NodeId made = value ? graph.value(value).producer : NodeId{};
  return made ? &graph.node(made) : nullptr;
}

}  // namespace

Status evaluateGraph(Graph& graph, std::string_view purpose) {
  const UseTable uses = graph.uses();
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if (!node.domain.empty()) continue;
    if (node.op == "Dropout") {
      SS_TRY(dropOutputs(graph, uses, id, purpose, "its mask is read; expected a Dropout that evaluation can do without"));
      Node& changed = graph.mutableNode(id);
      changed.inputs.resize(std::min<std::size_t>(1, changed.inputs.size()));
      changed.attrs = {};
    } else if (node.op == "BatchNormalization" && node.attrs.integer("training_mode", 0) != 0) {
      SS_TRY(
          dropOutputs(graph, uses, id, purpose, "its running statistics are read; expected them to be outputs of nobody"));
      graph.mutableNode(id).attrs.set("training_mode", std::int64_t{0});
    }
  }
  return {};
}

std::optional<ScoredLabels> scoredLabels(const Graph& graph, ValueId loss) {
  const Node* node = producerOf(graph, loss);
  while (node && node->domain.empty() && (node->op == "Cast" || node->op == "Identity" || node->op == "Squeeze"))
    node = producerOf(graph, node->input(0));
  if (!node || !isClassLoss(*node)) return std::nullopt;
  return ScoredLabels{node->input(0), node->input(1), ignoredLabel(graph, *node),
                      node->attrs.text("reduction", "mean") == "mean" && !node->input(2)};
}

}  // namespace stepscope
