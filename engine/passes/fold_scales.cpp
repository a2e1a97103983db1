#include "engine/passes/fold_scales.h"

#include <algorithm>

#include "engine/passes/pattern.h"
#include "engine/passes/product_node.h"
#include "engine/passes/scalar.h"

namespace stepscope {

Status foldScales(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  const Readers readers(graph);
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
      if (readers.single(scale->of)) {
        before->alpha = static_cast<float>(before->alpha * scale->factor);
        writeProduct(graph, id, Node(graph.node(producer)), *before);
        gone.push_back(producer);
        context.match();
        continue;
      }
      context.miss(id, "the product before it is read unscaled too");
    }
    // Before products that alone read it.
    const auto uses = readers.of(node.output(0));
    const auto foldable = [&](const Use& use) {
      if (use.input > 1) return false;
      const Node& reader = graph.node(use.node);
      return readProduct(graph, reader).has_value() && reader.predicates == node.predicates;
    };
    if (uses.empty() || !std::any_of(uses.begin(), uses.end(), foldable)) continue;
    if (readers.isKept(node.output(0)) || !std::all_of(uses.begin(), uses.end(), foldable)) {
      context.miss(id, "something else than matrix products reads it");
      continue;
    }
    const ValueId scaled = node.output(0);
    for (const Use& use : uses) {
      auto product = readProduct(graph, graph.node(use.node));
      ValueId& operand = use.input == 0 ? product->a : product->b;
      if (operand != scaled) continue;
      operand = scale->of;
      product->alpha = static_cast<float>(product->alpha * scale->factor);
      writeProduct(graph, use.node, Node(graph.node(use.node)), *product);
    }
    context.match();
  }
  graph.removeNodes(gone);
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
