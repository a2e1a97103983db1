#include "engine/ir/recomputed_copy.h"

namespace stepscope {

NodeId addRecomputedCopy(Graph& graph, NodeId original, std::vector<ValueId> inputs, std::vector<std::string> outputs) {
  const Node source = graph.node(original);
  const NodeId id = graph.addNode(source.name + "_recompute", source.domain, source.op, std::move(inputs),
                                  std::move(outputs), source.attrs);
  Node& node = graph.mutableNode(id);
  node.sinceVersion = source.sinceVersion;
  node.phase = Phase::kRecompute;
  node.provenance = source.provenance;
  node.provenance.sources = {original};
  node.provenance.pass = graph.pass();
  node.provenance.forward = original;
  node.origin = {.kind = Origin::Kind::kRecomputed, .node = original};
  return id;
}

}  // namespace stepscope
