#include "engine/build/batch_norm_statistics.h"

#include <algorithm>
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

// A layer that is called twice is two nodes over the same statistics: the second goes on with what the first made of them,
// as long as both run under the same conditions; in branches each makes its own.
void addStatisticsUpdates(Graph& graph) {
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& node = graph.node(id);
    if (!node.domain.empty() || node.op != "BatchNormalization" || node.attrs.integer("training_mode", 0) == 0) continue;
    for (const std::size_t slot : {1u, 2u}) {
      const ValueId state = node.input(slot + 2), next = node.output(slot);
      if (!next || !state || graph.value(state).role != ValueRole::kInitializer) continue;
      const auto earlier = std::ranges::find_if(graph.stateUpdates, [&](const StateUpdate& update) {
        const NodeId producer = graph.value(update.next).producer;
        return update.state == state && producer && graph.node(producer).predicates == node.predicates;
      });
      if (earlier == graph.stateUpdates.end()) {
        graph.stateUpdates.push_back({state, next});
      } else {
        graph.setInput(id, slot + 2, earlier->next);
        earlier->next = next;
      }
    }
  }
}

}  // namespace stepscope
