#include "engine/passes/fold_scales.h"

#include <algorithm>

#include "engine/passes/product_node.h"
#include "engine/passes/scalar.h"

namespace stepscope {

Result<PassResult> foldScales(Graph& graph, Inference& inference) {
  PassResult result;
  std::vector<bool> isOutput(graph.valueCapacity(), false);
  for (const ValueId out : graph.outputs()) isOutput[static_cast<std::size_t>(out.index)] = true;
  for (const StateUpdate& update : graph.stateUpdates) isOutput[static_cast<std::size_t>(update.next.index)] = true;
  const auto uses = graph.uses();
  const auto usesOf = [&](ValueId id) -> const std::vector<Use>& { return uses[static_cast<std::size_t>(id.index)]; };
  std::vector<NodeId> gone;
  const std::vector<NodeId> order = graph.order();
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const auto scale = readScale(graph, inference, node);
    if (!scale) continue;
    // After a product that nothing else reads.
    const NodeId producer = graph.value(scale->of).producer;
    auto before = producer ? readProduct(graph, graph.node(producer)) : std::nullopt;
    if (before && !before->bias && before->open() && graph.node(producer).predicates == node.predicates) {
      if (usesOf(scale->of).size() == 1 && !isOutput[static_cast<std::size_t>(scale->of.index)]) {
        before->alpha = static_cast<float>(before->alpha * scale->factor);
        writeProduct(graph, id, Node(graph.node(producer)), *before);
        gone.push_back(producer);
        ++result.matches;
        continue;
      }
      result.nearMisses.push_back({id, "the product before it is read unscaled too"});
    }
    // Before products that alone read it.
    const auto& readers = usesOf(node.output(0));
    const auto foldable = [&](const Use& use) {
      if (use.input > 1) return false;
      const Node& reader = graph.node(use.node);
      return readProduct(graph, reader).has_value() && reader.predicates == node.predicates;
    };
    if (readers.empty() || !std::any_of(readers.begin(), readers.end(), foldable)) continue;
    if (isOutput[static_cast<std::size_t>(node.output(0).index)] || !std::all_of(readers.begin(), readers.end(), foldable)) {
      result.nearMisses.push_back({id, "something else than matrix products reads it"});
      continue;
    }
    const ValueId scaled = node.output(0);
    for (const Use& use : readers) {
      auto product = readProduct(graph, graph.node(use.node));
      ValueId& operand = use.input == 0 ? product->a : product->b;
      if (operand != scaled) continue;
      operand = scale->of;
      product->alpha = static_cast<float>(product->alpha * scale->factor);
      writeProduct(graph, use.node, Node(graph.node(use.node)), *product);
    }
    ++result.matches;
  }
  graph.removeNodes(gone);
  if (result.matches > 0) graph.removeDeadNodes();
  return result;
}

}  // namespace stepscope
