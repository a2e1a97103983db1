#include "engine/passes/fuse_swish.h"

#include "engine/passes/pattern.h"
#include "engine/passes/scalar.h"

namespace stepscope {

Status fuseSwish(Graph& graph, PassContext& context) {
  Inference& inference = context.inference;
  const Readers readers(graph);
  struct Match {
    NodeId product, sigmoid;
    ValueId x;
    double alpha;
  };
  std::vector<Match> matches;
  for (const NodeId id : graph.order()) {
    const Node& sigmoid = graph.node(id);
    if (!isOp(sigmoid, "Sigmoid")) continue;
    const ValueId gate = sigmoid.output(0);
    const NodeId scaling = graph.value(sigmoid.input(0)).producer;
    const auto scale = scaling ? readScale(graph, inference, graph.node(scaling)) : std::nullopt;
    const auto made = [&](ValueId x) { return x == sigmoid.input(0) || (scale && scale->of == x); };
    // A sigmoid that gates something else is no near miss: most do.
    const Node* product = nullptr;
    ValueId x;
    for (const Use& use : readers.of(gate)) {
      if (use.input == SIZE_MAX) continue;
      const Node& reader = graph.node(use.node);
      if (isOp(reader, "Mul") && made(reader.input(1 - use.input))) product = &reader, x = reader.input(1 - use.input);
    }
    if (!product) continue;
    if (!readers.single(gate))
      context.miss(id, "'" + graph.value(gate).name + "' is read elsewhere too");
    else if (product->predicates != sigmoid.predicates)
      context.miss(id, "the product belongs to another branch of If");
    else
      matches.push_back({product->id, id, x, x == sigmoid.input(0) ? 1.0 : scale->factor});
  }
  for (const Match& match : matches) {
    Node& node = graph.mutableNode(match.product);
    node.domain = "com.microsoft";
    node.op = "QuickGelu";
    node.inputs = {match.x};
    node.attrs = {{"alpha", static_cast<float>(match.alpha)}};
    node.provenance.sources.push_back(match.sigmoid);
    node.provenance.pass = graph.pass();
    graph.logChange(match.product);
    context.match();
  }
  if (context.result.matches > 0) graph.removeDeadNodes();
  return {};
}

}  // namespace stepscope
