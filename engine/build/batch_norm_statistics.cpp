#include "engine/build/batch_norm_statistics.h"

#include <vector>

namespace stepscope {

Status openBatchNorm(Graph& graph, Inference& inference, std::size_t& opened) {
  const auto isState = [&](const Node& node, std::size_t slot) {
    return node.input(slot) && graph.value(node.input(slot)).role == ValueRole::kInitializer;
  };
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if (!node.domain.empty() || node.op != "BatchNormalization" || node.attrs.integer("training_mode", 0) != 0 ||
        !isState(node, 3) || !isState(node, 4))
      continue;
    const std::string mean = graph.value(node.input(3)).name, variance = graph.value(node.input(4)).name;
    graph.mutableNode(id).attrs.set("training_mode", std::int64_t{1});
    graph.addOutput(id, mean + "_next", 1);
    graph.addOutput(id, variance + "_next", 2);
    SS_TRY(inference.inferNode(id));
    ++opened;
  }
  return {};
}

void addStatisticsUpdates(Graph& graph) {
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.domain.empty() || node.op != "BatchNormalization" || node.attrs.integer("training_mode", 0) == 0) continue;
    for (const std::size_t slot : {1u, 2u})
      if (node.output(slot) && node.input(slot + 2) && graph.value(node.input(slot + 2)).role == ValueRole::kInitializer)
        graph.stateUpdates.push_back({node.input(slot + 2), node.output(slot)});
  }
}

}  // namespace stepscope
