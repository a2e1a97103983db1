#include "engine/passes/fuse_cross_entropy.h"

#include "engine/passes/pattern.h"

namespace stepscope {

Status fuseCrossEntropy(Graph& graph, PassContext& context) {
  const Readers readers(graph);
  std::vector<NodeId> gone;
  for (const NodeId id : std::vector<NodeId>(graph.order())) {
    const Node& loss = graph.node(id);
    const bool entropy = isOp(loss, "SoftmaxCrossEntropyLoss");
    if (!entropy && !isOp(loss, "NegativeLogLikelihoodLoss")) continue;
    const Node* logarithms = producerOf(graph, loss.input(0), "LogSoftmax");
    if (!logarithms) continue;
    const auto& shape = graph.value(loss.input(0)).type.shape;
    const std::int64_t axis = logarithms->attrs.integer("axis", -1);
    std::string condition;
    if (!shape || shape->size() < 2)
      condition = "the rank of the scores is not known";
    else if (axis != 1 && axis != 1 - static_cast<std::int64_t>(shape->size()))
      condition = "LogSoftmax runs along another axis than the classes";
    else if (!readers.single(loss.input(0)))
      condition = "the logarithms are read elsewhere too";
    else if (logarithms->predicates != loss.predicates)
      condition = "LogSoftmax belongs to another branch of If";
    if (!condition.empty()) {
      context.miss(id, condition);
      continue;
    }
    const NodeId source = logarithms->id;
    const ValueId scores = logarithms->input(0);
    graph.setInput(id, 0, scores);
    Node& target = graph.mutableNode(id);
    target.op = "SoftmaxCrossEntropyLoss";
    target.provenance.sources.push_back(source);
    target.provenance.pass = graph.pass();
    graph.logChange(id);
    gone.push_back(source);
    context.match();
  }
  graph.removeNodes(gone);
  return {};
}

}  // namespace stepscope
